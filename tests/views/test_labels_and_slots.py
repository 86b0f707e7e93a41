import pytest

from tests.views.examples import stream_layers
from xinfer_lab.device.records import Copy, Dispatch, Signal, Span, View
from xinfer_lab.views.labels import layer_of, short_forms, slot_of_buffer
from xinfer_lab.views.slots import as_slot_of, slot_of_record, slots_of


@pytest.mark.parametrize(
    ("label", "layer"),
    [
        ("upload layer 12", 12),
        ("model.layers.3.mlp", 3),
        ("Layer_4", 4),
        ("layer[5]", 5),
        ("player 3", None),
        ("embed", None),
        ("", None),
    ],
)
def test_the_layer_is_read_from_a_label(label, layer):
    assert layer_of(label) == layer


@pytest.mark.parametrize(
    ("name", "slot"), [("slot[0].attention", 0), ("slot[11].mlp", 11), ("staging", None), ("slot", None)]
)
def test_the_slot_is_read_from_a_buffers_name(name, slot):
    assert slot_of_buffer(name) == slot


def test_labels_have_ever_shorter_forms():
    assert short_forms("upload  layer 3") == ("upload layer 3", "layer 3", "L3", "3")
    assert short_forms("layer 3") == ("layer 3", "L3", "3")
    assert short_forms("final norm") == ("final norm",)
    assert short_forms("") == ()


def test_a_copy_counts_for_the_slot_it_fills_or_empties():
    def copy(dst, src):
        return Copy(queue="copy", dst=Span(dst, 0, 4), src=Span(src, 0, 4), call=0)

    assert slot_of_record(copy("slot[1].mlp", "staging")) == 1
    assert slot_of_record(copy("readback", "slot[2].mlp")) == 2
    assert slot_of_record(copy("kv[0]", "staging")) is None


def test_a_kernel_counts_for_the_slot_it_reads():
    views = {"x": View("hidden", 0, (1,), "uint8"), "w": View("slot[3].attention", 0, (1,), "uint8")}
    assert slot_of_record(Dispatch(queue="direct", kernel="k", operands=views, call=0)) == 3
    assert slot_of_record(Signal(queue="direct", fence="f", value=1)) is None


def test_the_slots_of_a_stream_follow_the_ring():
    example = stream_layers(layers=7, pool=3, steps=2)
    slot = slots_of(example.stream)
    used = [slot(e.record) for e in example.timeline.events if e.kind == "dispatch"]
    assert used == [n % 3 for n in range(14)]


def test_slots_may_be_a_function_a_mapping_or_unknown():
    assert as_slot_of({3: 1})(3) == 1 and as_slot_of({3: 1})(4) is None
    assert as_slot_of(lambda record: record + 1)(1) == 2
    assert as_slot_of(None)(0) is None
