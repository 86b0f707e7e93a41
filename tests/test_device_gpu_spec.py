"""The figures of GPUs."""

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xinfer_lab.device.gpu_spec import GPU_SPECS, GpuSpec
from xinfer_lab.device.kernels import Cost


@given(st.sampled_from([0.5, 1.0, 2.0, 1 / 3]), st.integers(1, 2**40), st.integers(1, 2**50), st.floats(1e-6, 10))
def test_a_lab_gpu_has_the_ratio_that_was_asked_for(ratio, layer_bytes, flops, transfer_time):
    cost = Cost(float(flops), 1e15)
    spec = GpuSpec.lab(ratio, layer_bytes=layer_bytes, layer_cost=cost, transfer_time=transfer_time)
    assert spec.copy_time(layer_bytes) == pytest.approx(transfer_time, rel=1e-12)
    assert spec.dispatch_time(cost) / spec.copy_time(layer_bytes) == pytest.approx(ratio, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "value"),
    [("ratio", 0), ("ratio", -1), ("ratio", math.nan), ("ratio", math.inf), ("layer_bytes", 0), ("transfer_time", 0)],
)
def test_a_lab_gpu_needs_sensible_figures(name, value):
    arguments = {"ratio": 1.0, "layer_bytes": 100, "layer_cost": Cost(1.0, 1.0), "transfer_time": 1.0, name: value}
    with pytest.raises(ValueError, match=f"{name} must be a positive, finite number"):
        GpuSpec.lab(arguments.pop("ratio"), **arguments)


def test_a_lab_layer_computes_something():
    with pytest.raises(ValueError, match="FLOPs"):
        GpuSpec.lab(1.0, layer_bytes=1, layer_cost=Cost(0.0, 1.0))


def test_a_copy_over_the_link_takes_latency_and_bytes_by_bandwidth():
    spec = GPU_SPECS["rtx4090"]
    assert spec.copy_time(25 * 10**9) == pytest.approx(1.00001)
    assert spec.copy_time(0) == spec.link_latency
    assert spec.copy_time(10**9, over_link=False) < spec.copy_time(10**9) / 10


def test_a_kernel_is_bound_by_computing_or_by_memory():
    spec = GPU_SPECS["h200"]
    assert spec.dispatch_time(Cost(spec.flops, 1.0)) == pytest.approx(1 + spec.launch_time)
    assert spec.dispatch_time(Cost(1.0, 2 * spec.memory_bandwidth)) == pytest.approx(2 + spec.launch_time)


def test_attention_may_have_a_rate_of_its_own():
    spec = dataclasses.replace(GPU_SPECS["h200"], launch_time=0.0)
    cost = Cost(3 * spec.flops, 1.0, pair_flops=spec.flops)
    assert spec.dispatch_time(cost) == pytest.approx(3)
    slower = dataclasses.replace(spec, pair_flops=spec.flops / 4)
    assert slower.dispatch_time(cost) == pytest.approx(2 + 4)


@pytest.mark.parametrize("spec", GPU_SPECS.values(), ids=GPU_SPECS)
def test_presets_are_sane(spec):
    # The order of magnitude in which every GPU of these years lies.
    assert 4 * 2**30 <= spec.memory_bytes <= 256 * 2**30
    assert 4e9 <= spec.link_bandwidth <= 64e9 < spec.memory_bandwidth <= 10e12
    assert 1e13 <= spec.flops <= 2e15
    assert 1e-6 <= spec.link_latency <= 1e-4 and 1e-6 <= spec.launch_time <= 1e-4
    assert 1e9 <= spec.host_bandwidth <= 100e9
