import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.views.examples import stream_layers
from tests.views.xml_rules import of_class, parsed, words
from xinfer_lab.device.records import Copy, Dispatch, HostWrite, Source, Span, View
from xinfer_lab.views.slot_history import slot_history
from xinfer_lab.views.slot_map import MOST_BANDS, slot_map


@settings(max_examples=40)
@given(st.integers(2, 9), st.integers(2, 5), st.integers(1, 3))
def test_a_ring_numbered_by_running_step_never_finds_another_layer(layers, pool, steps):
    uses = slot_history(stream_layers(layers=layers, pool=pool, steps=steps).stream)
    assert [(use.layer, use.slot, use.forward) for use in uses] == [
        (n % layers, n % pool, n // layers) for n in range(layers * steps)
    ]
    assert not [use for use in uses if use.wrong]


@pytest.mark.parametrize(("layers", "pool", "wrong"), [(28, 3, True), (7, 2, True), (6, 3, False), (28, 2, False)])
def test_a_ring_by_layer_index_is_found_out_unless_the_pool_divides_the_layers(layers, pool, wrong):
    stream = stream_layers(layers=layers, pool=pool, steps=3, ring=False).stream
    picture = slot_map(stream, title="t")
    assert any(use.wrong for use in slot_history(stream)) == wrong
    assert ("another layer than the one computed" in picture.alt) == wrong
    assert bool(of_class(parsed(picture), "badge")) == wrong


def test_alt_text_names_the_first_wrong_use():
    stream = stream_layers(layers=7, pool=3, steps=2, ring=False).stream
    alt = slot_map(stream, title="The ring").alt
    # Slot 0 has been refilled with layer 0 of the next pass, by layer index, when layer 6 is due.
    record = next(i for i, r in enumerate(stream) if isinstance(r, Dispatch) and r.params["layer"] == 6)
    assert alt == (
        "The ring. 7 layers over 2 forward passes through 3 slots, 14 uses. 1 of them finds another layer than the one "
        f"computed, first use 6 (record {record}): it computes layer 6 from slot 0, which holds layer 0."
    )


def test_the_table_has_a_row_for_each_use_and_says_what_each_slot_holds():
    picture = slot_map(stream_layers(layers=3, pool=2).stream, title="t")
    assert picture.columns == (
        "use",
        "forward pass",
        "computes layer",
        "from slot",
        "record",
        "slot 0 holds",
        "slot 1 holds",
    )
    assert [row[:4] + row[5:] for row in picture.table] == [
        ("0", "0", "0", "0", "layer 0 (in use)", "layer 1 (not used yet)"),
        ("1", "0", "1", "1", "layer 2 (not used yet)", "layer 1 (in use)"),
        ("2", "0", "2", "0", "layer 2 (in use)", "layer 1 (used before)"),
    ]


def _dispatch(slot, layer=None, label=""):
    views = {"w": View(f"slot[{slot}].mlp", 0, (4,), "uint8")}
    params = {} if layer is None else {"layer": layer}
    return Dispatch(queue="direct", kernel="decoder_layer", operands=views, params=params, label=label, call=0)


def _copy(slot, label=""):
    return Copy(queue="copy", dst=Span(f"slot[{slot}].mlp", 0, 4), src=Span("staging", 8, 4), call=0, label=label)


def test_an_uploads_layer_is_read_from_what_the_host_staged_where_no_label_says_it():
    def stage(layer):
        return HostWrite(dst=Span("staging", 8, 4), source=Source(f"model.layers.{layer}.mlp.up_proj.weight", 0, 4))

    uses = slot_history(
        [
            stage(4),
            stage(5),
            _copy(0),
            _dispatch(0, label="layer 4"),
            _copy(0, "layer 4"),
            _dispatch(0, label="layer 4"),
        ]
    )
    assert [(use.layer, use.contents[0].layer, use.wrong) for use in uses] == [(4, 5, True), (4, 4, False)]


def test_a_slot_that_nothing_was_uploaded_to_is_wrong():
    (use,) = slot_history([_dispatch(1, 0)])
    assert use.wrong
    picture = slot_map([_dispatch(1, 0)], title="t")
    assert "which holds nothing" in picture.alt and picture.table[0][-1] == "nothing (in use: wrong)"


def test_kernels_in_a_row_on_one_layer_are_one_use():
    assert len(slot_history([_copy(0, "layer 2"), _dispatch(0, 2), _dispatch(0, 2)])) == 1
    assert len(slot_history([_copy(0, "layer 2"), _dispatch(0, 2), _copy(0, "layer 2"), _dispatch(0, 2)])) == 2


def test_a_layer_that_nobody_names_is_not_called_wrong():
    uses = slot_history([_copy(0), _dispatch(0)])
    assert [use.wrong for use in uses] == [False]


def test_a_long_map_wraps_and_says_what_it_leaves_out():
    stream = stream_layers(layers=28, pool=3, steps=8).stream
    picture = slot_map(stream, title="t")
    columns = words(parsed(picture)).count("computes layer")
    assert columns == MOST_BANDS and len(picture.table) == 224
    assert picture.notes[0].endswith("of 224 uses are drawn; the table has them all (first, last choose others).")
    later = slot_map(stream, title="t", first=200, last=210)
    parsed(later)
    assert later.notes[0].startswith("10 of 224")


def test_a_stream_without_slots_gives_an_empty_map():
    picture = slot_map([], title="t")
    assert picture.alt == "t. No slot is ever used." and "no uses of a slot" in words(parsed(picture))


def test_the_same_stream_gives_the_same_bytes():
    stream = stream_layers(layers=7, pool=3, steps=2).stream
    assert slot_map(stream, title="t").svg == slot_map(stream, title="t").svg


def test_too_narrow_a_map_is_refused():
    with pytest.raises(ValueError, match="at least 320 pixels"):
        slot_map([], title="t", width=100)
