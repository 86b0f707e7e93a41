"""Lab 3's last run: the student's streamer on the device of threads, from the disk, measured and equal."""

from __future__ import annotations

import dataclasses

import pytest

from tests.models import tiny
from xinfer_lab.device.timeline import Timeline, TimelineEvent
from xinfer_lab.labs.lab3.given.own_machine import on_this_machine, rates
from xinfer_lab.residency.streaming import StreamingLayers
from xinfer_lab.residency.weights import LayerWeights


def test_it_says_what_was_measured_and_that_bytes_are_equal(capsys: pytest.CaptureFixture[str]) -> None:
    picture = on_this_machine(StreamingLayers, model=tiny(4))
    first, ratio, parity = capsys.readouterr().out.splitlines()
    assert " tokens; a layer is read in " in first and " and computed in " in first
    assert ratio.startswith("serial / streamed: ") and ratio.endswith(" on the virtual clock")
    assert parity == "streaming vs resident max abs diff = 0"
    assert "Measured on this machine" in picture._repr_html_() and "serial" in picture._repr_html_()


def test_a_streamer_with_wrong_layers_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    class Backwards(StreamingLayers):
        def ensure(self, layer: int) -> LayerWeights:
            held = super().ensure(layer)
            views = {**held.views, "input_layernorm.weight": held.views["post_attention_layernorm.weight"]}
            return dataclasses.replace(held, views=views)

    on_this_machine(Backwards, model=tiny(4))
    assert not capsys.readouterr().out.rstrip().endswith("diff = 0")


def test_rates_are_means_over_layers() -> None:
    events = [
        TimelineEvent(0, "copy", "copy", "copy a of layer 0", 0.0, 1.0),
        TimelineEvent(1, "copy", "copy", "copy b of layer 0", 1.0, 2.0),
        TimelineEvent(2, "direct", "copy", "upload tokens", 0.0, 9.0),
        TimelineEvent(3, "direct", "dispatch", "layer 0", 2.0, 5.0),
        TimelineEvent(4, "direct", "dispatch", "lm_head", 5.0, 9.0),
    ]
    timeline = Timeline(lanes=("direct", "copy"), events=tuple(events), flows=(), memory=(), clock="a test's")
    assert rates(timeline) == (2.0, 3.0)
