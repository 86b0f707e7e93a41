"""The table of kernels and what it says about records."""

import dataclasses

import pytest
import torch

from tests.device_programs import kernels
from xinfer_lab.device.errors import KernelError
from xinfer_lab.device.kernels import Access, KernelTable, closure_kernel
from xinfer_lab.device.records import Copy, Dispatch, Free, HostRead, HostWrite, Signal, Source, Span, View


def dispatch(**operands):
    return Dispatch(queue="direct", kernel="fold", operands=operands, call=1)


def test_a_kernel_is_found_by_name():
    table = kernels()
    assert table["fold"].name == "fold" and "fold" in table and "other" not in table and list(table) == ["fold", "fail"]
    with pytest.raises(KernelError, match="'other'; registered: fail, fold"):
        table["other"]


def test_a_name_is_registered_once():
    table = kernels()
    assert table.register(table["fold"]) is table["fold"]
    with pytest.raises(KernelError, match="'fold' is registered already"):
        table.register(dataclasses.replace(table["fold"], workspace=lambda operands, params: 1))


def test_a_table_starts_as_a_copy():
    base = kernels()
    table = KernelTable(base)
    table.register(closure_kernel("more", lambda: None))
    assert "more" in table and "more" not in base


@pytest.mark.parametrize(
    ("record", "access"),
    [
        (
            Copy(queue="q", dst=Span("a", 0, 4), src=Span("b", 4, 4), call=1),
            Access((Span("b", 4, 4),), (Span("a", 0, 4),)),
        ),
        (HostWrite(dst=Span("a", 0, 4), source=Source("s", 0, 4)), Access((), (Span("a", 0, 4),))),
        (HostRead(src=Span("a", 0, 4)), Access((Span("a", 0, 4),), ())),
        (Free(buffer="a"), Access()),
        (Signal(queue="q", fence="f", value=1), Access()),
    ],
)
def test_what_a_record_touches(record, access):
    assert kernels().access(record) == access


def test_what_a_dispatch_touches_is_what_its_kernel_declares_each_time():
    table = kernels()
    for offset in (0, 16, 0):
        total, weight = View("a", offset, (2,), "float32"), View("b", 0, (2,), "float32")
        record = dispatch(total=total, weight=weight)
        for same in (record, dataclasses.replace(record, call=2)):
            assert table.access(same) == Access((total.span, weight.span), (total.span,))


def test_two_tables_know_different_kernels_of_one_name():
    other = KernelTable()
    other.register(closure_kernel("fold", lambda *tensors: None))
    record = dispatch(total=View("a", 0, (2,), "float32"), weight=View("b", 0, (2,), "float32"))
    assert kernels().access(record) != other.access(record) == Access()


def test_a_function_as_a_kernel_gets_its_tensors_in_order_and_declares_them():
    got = []
    kernel = closure_kernel("closure f.1", lambda *tensors: got.extend(tensors))
    views = {
        "read0": View("a", 0, (2,), "uint8"),
        "read1": View("b", 0, (3,), "uint8"),
        "write0": View("c", 0, (4,), "uint8"),
    }
    tensors = {name: torch.zeros(view.shape) for name, view in views.items()}
    kernel.run(tensors, {})
    assert [tensor.numel() for tensor in got] == [2, 3, 4]
    assert kernel.access(views, {}) == Access((views["read0"].span, views["read1"].span), (views["write0"].span,))
    assert (kernel.cost(views, {}).bytes, kernel.workspace(views, {})) == (9, 0)
