import pytest

from tests.pool_programs import PAGE, Witness, kernels
from tests.views.xml_rules import of_class, parsed, words
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.paging.pool import HybridMemoryPool
from xinfer_lab.views.page_history import FrameContent, page_history
from xinfer_lab.views.page_map import MOST_BANDS, MOST_ROWS, page_map


def scan(frames=2, pages=3, rounds=2, write=False, size=PAGE, policy="lru"):
    """The stream of ``rounds`` scans over ``pages`` extents through ``frames`` frames."""
    device = EmulatedDevice(kernels=kernels())
    pool, witness = HybridMemoryPool(device, frames=frames, pages=64, page_bytes=PAGE, policy=policy), Witness(device)
    extents = [pool.create(size, f"layer {number}") for number in range(pages)]
    for extent in extents:
        pool.fill(extent, bytes(size))
    for _ in range(rounds):
        for extent in extents:
            pool.acquire(extent, write=write)
            witness.stamp(pool, extent, 1) if write else witness.peek(pool, extent, bytes(size))
            pool.release(extent)
    pool.close()
    return device.stream


def picture(stream, **options):
    return page_map(stream, title="t", page_bytes=PAGE, kernels=kernels(), **options)


def test_every_use_says_what_lies_in_every_frame_and_what_moved_before():
    uses = page_history(scan(), PAGE, kernels=kernels())
    assert [(use.what, use.frames, use.fetched, use.saved) for use in uses[:4]] == [
        ("peek layer 0", (1,), ("layer 0",), ()),
        ("peek layer 1", (0,), ("layer 1",), ()),
        ("peek layer 2", (1,), ("layer 2",), ()),
        ("peek layer 0", (0,), ("layer 0",), ()),
    ]
    assert uses[2].contents == {0: FrameContent("layer 1", used=True), 1: FrameContent("layer 2")}


def test_dirty_pages_and_their_way_home():
    uses = page_history(scan(frames=1, write=True), PAGE, kernels=kernels())
    assert [use.saved for use in uses] == [(), *(((f"layer {n % 3}",)) for n in range(5))]
    shown = picture(scan(write=True))
    assert "dirty: to be written back" in words(parsed(shown))
    assert "(used before, dirty)" in " ".join(cell for row in shown.table for cell in row)
    assert "dirty" not in " ".join(words(parsed(picture(scan()))))


def test_the_picture_says_in_words_and_as_a_table_what_it_shows():
    shown = picture(scan())
    assert shown.alt == (
        "t. 3 extents through 2 frames, 6 uses: 6 copies to the device, 0 copies back; 0 uses come without a "
        "copy to the device since the one before."
    )
    assert shown.columns == (
        "use",
        "what",
        "record",
        "fetched before",
        "written back before",
        "frame 0 holds",
        "frame 1 holds",
    )
    assert shown.table[2][:2] + shown.table[2][3:] == (
        "2", "peek layer 2", "layer 2", "", "layer 1 (used before)", "layer 2 (in use)",
    )  # fmt: skip
    assert not shown.notes


def test_a_policy_that_keeps_pages_shows_uses_without_copies():
    assert "6 uses come without a copy" in picture(scan(frames=3, rounds=3)).alt
    assert [use.fetched for use in page_history(scan(frames=3, rounds=2), PAGE, kernels=kernels())][3:] == [()] * 3


def test_frames_that_go_together_are_one_row():
    shown = picture(scan(frames=4, pages=3, size=2 * PAGE))
    assert shown.columns[5:] == ("frames 0-1 holds", "frames 2-3 holds")
    assert {"frames 0-1", "frames 2-3"} <= set(words(parsed(shown)))


def test_a_long_map_wraps_and_then_says_what_it_leaves_out():
    stream = scan(frames=3, pages=7, rounds=30)
    shown = picture(stream)
    columns = int((960 - 124 - 16) / 38)
    assert shown.notes[0].startswith(f"{columns * MOST_BANDS} of 210 uses are drawn")
    assert len(shown.table) == 210
    assert len([word for word in words(parsed(shown)) if word == "fetched before"]) == MOST_BANDS
    some = picture(stream, first=5, last=9)
    assert some.notes[0].startswith("4 of 210")
    many = picture(scan(frames=40, pages=40))
    assert many.notes == (f"{MOST_ROWS} of 40 rows of frames are drawn; the table has them all.",)


def test_nothing_to_draw_and_nowhere_to_draw_it():
    assert picture([]).alt == "t. No frame is ever used."
    assert of_class(parsed(picture([])), "paper")
    with pytest.raises(ValueError, match="at least 320 pixels"):
        picture([], width=200)


@pytest.mark.parametrize("theme", ["light", "dark", "auto"])
def test_each_theme_draws(theme):
    parsed(picture(scan(write=True), theme=theme))


def test_two_pages_with_the_same_number_are_told_apart_by_their_first_letter():
    device = EmulatedDevice(kernels=kernels())
    pool, witness = HybridMemoryPool(device, frames=3, pages=3, page_bytes=PAGE), Witness(device)
    for name in ("layer 0", "kv 0", "expert 0.1"):
        extent = pool.create(PAGE, name)
        pool.fill(extent, bytes(PAGE))
        pool.acquire(extent)
        witness.peek(pool, extent, bytes(PAGE))
        pool.release(extent)
    pool.close()
    drawn = words(parsed(picture(device.stream)))
    assert "L0" in drawn and "K0" in drawn and "0.1" in drawn
