"""Lab 6's explorations: the numbers that notebook and pictures show are the simulation's."""

from __future__ import annotations

from dataclasses import replace

from tests.notebooks import SOLUTIONS, read, text
from tools.lab6_pictures import host_steps
from xinfer_lab.device.gpu_spec import GPU_SPECS
from xinfer_lab.labs.lab6.given.steps import ONE_BY_ONE, RECORDED, links_picture, step_times, what_binds, with_cards
from xinfer_lab.qwen2.config import PUBLISHED

(SOURCE,) = (path for path in SOLUTIONS if path.parent.name.startswith("lab6"))


def test_the_explorations_show_the_simulations_figures() -> None:
    cells = {cell["id"]: text(cell) for cell in read(SOURCE)["cells"]}
    for times in host_steps().values():
        row = next(
            line
            for line in cells["binds-text"].splitlines()
            if f"({times.launches:,})" in line or f"layer ({times.launches})" in line
        )
        for seconds in (times.host, times.link, times.computing, times.step):
            assert f"{seconds * 1e3:.1f} ms" in row
        assert f"**{max(times.host, times.link) * 1e3:.1f} ms**" in row
    found = with_cards("7b", "rtx4090", 1)
    gains = " | ".join(f"{found[1].step / one.step:.2f}" for one in found.values())
    assert f"| times as fast as one card | {gains} |" in cells["links-text"]
    assert "on the busiest link, of 28 | 28 | 14 | 10 | 7 | 6 | 5 | 4 | 4 |" in cells["links-text"]
    assert found[8].binds == "the link" and found[8].step == found[7].step


def test_a_step_is_what_simulate_says_and_bound_by_the_longest_of_three() -> None:
    gpu = GPU_SPECS["h200"]
    assert {step_times(PUBLISHED["7b"], gpu, tokens=n).binds for n in (1, 8192)} == {"the link", "computing"}
    slow = replace(gpu, submit_time=1e-4)
    by_itself, recorded = (step_times(PUBLISHED["0.5b"], slow, launches=n) for n in (ONE_BY_ONE, RECORDED))
    assert by_itself.binds == "the host" and recorded.binds == "the link"
    assert by_itself.link == recorded.link and recorded.step < by_itself.step / 5
    for times in (by_itself, recorded):
        assert max(times.host, times.link, times.computing) <= 1.0001 * times.step
    words, picture = what_binds("0.5b", "h200", 1, 100, ONE_BY_ONE)
    assert "The host binds" in words and "the host submits" in picture.alt
    words, picture = links_picture("7b", "rtx4090", 2048, 5)
    assert words.startswith("5 cards: 2.16 times as fast as one.") and "computing binds" in words
    assert "5 cards: 2.16." in picture.alt


def test_pictures_say_in_words_what_they_show() -> None:
    cells = {cell["id"]: text(cell) for cell in read(SOURCE)["cells"]}
    for times in host_steps().values():
        assert f"{times.step * 1e3:.1f} ms" in cells["binds-text"].partition("](binds.svg)")[0]
