"""The figures of a GPU that the virtual clock works with."""

from __future__ import annotations

from dataclasses import dataclass

from xinfer_lab.device.kernels import Cost

__all__ = ["GPU_SPECS", "GpuSpec"]


@dataclass(frozen=True, slots=True)
class GpuSpec:
    """A GPU and its link to the host, as sustained (not datasheet) rates.

    Sizes in bytes, rates per second, times in seconds. ``flops`` is the dense half-precision rate; ``launch_time`` is
    added to each dispatch; ``link_latency`` to each copy over the link; ``host_bandwidth`` is one thread's memcpy into
    staging.
    """

    name: str
    memory_bytes: int
    link_bandwidth: float
    link_latency: float
    flops: float
    memory_bandwidth: float
    launch_time: float
    host_bandwidth: float

    def copy_time(self, size: int, *, over_link: bool = True) -> float:
        """Seconds that a copy of ``size`` bytes takes, over the link or inside device memory (read and written)."""
        if over_link:
            return self.link_latency + size / self.link_bandwidth
        return self.launch_time + 2 * size / self.memory_bandwidth

    def dispatch_time(self, cost: Cost) -> float:
        """Seconds that a kernel of ``cost`` takes: launch plus roofline, max(FLOPs / rate, bytes / bandwidth)."""
        return self.launch_time + max(cost.flops / self.flops, cost.bytes / self.memory_bandwidth)

    @classmethod
    def lab(cls, ratio: float, *, layer_bytes: int, layer_cost: Cost, transfer_time: float = 1e-3) -> GpuSpec:
        """A GPU on which T_comp / T_trans of one layer is ``ratio``.

        ``layer_bytes`` is what one layer uploads and ``layer_cost`` what it computes; its transfer takes
        ``transfer_time`` seconds. A toy layer on a real GPU's figures would show nothing but latency.
        """
        given = {"ratio": ratio, "layer_bytes": layer_bytes, "FLOPs": layer_cost.flops, "transfer_time": transfer_time}
        for name, value in given.items():
            if not 0 < value < float("inf"):
                raise ValueError(f"{name} must be a positive, finite number, not {value}")
        return cls(
            name=f"lab, T_comp / T_trans = {ratio:g}",
            memory_bytes=2**40,
            link_bandwidth=layer_bytes / transfer_time,
            link_latency=0.0,
            flops=layer_cost.flops / (ratio * transfer_time),
            memory_bandwidth=float("inf"),
            launch_time=0.0,
            host_bandwidth=float("inf"),
        )


GPU_SPECS = {
    "rtx4090": GpuSpec("RTX 4090", 24 * 2**30, 25e9, 10e-6, 150e12, 0.93e12, 5e-6, 10e9),
    "h200": GpuSpec("H200", 139 * 2**30, 55.2e9, 15e-6, 780e12, 4.3e12, 5e-6, 5e9),
    "laptop": GpuSpec("laptop (RTX 4060)", 8 * 2**30, 12e9, 10e-6, 40e12, 0.24e12, 8e-6, 8e9),
}
"""Presets. Sustained figures: H200 measured (PCIe 5 x16, see the benchmark page); the others from their vendors' peak
rates, taken at the share of peak that large copies and matrix products usually reach."""
