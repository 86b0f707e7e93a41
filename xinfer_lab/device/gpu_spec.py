"""The figures of a GPU that the virtual clock works with."""

from __future__ import annotations

from dataclasses import dataclass

from xinfer_lab.device.kernels import Cost

__all__ = ["GPU_SPECS", "KERNEL_COPY", "GpuSpec"]

KERNEL_COPY = 2**20
"""Bytes up to which the direct queue copies from an upload heap by a kernel that reads the host's memory, as a D3D12
direct queue does. The engine that moves large copies is busy with those of the copy queue and takes turns: a pass's
tokens would wait there for a whole layer."""


@dataclass(frozen=True, slots=True)
class GpuSpec:
    """A GPU and its link to the host, as sustained (not datasheet) rates.

    Sizes in bytes, rates per second, times in seconds. ``flops`` is the dense half-precision rate; ``launch_time`` is
    added to each dispatch, and ``launch_gap`` for each launch that it is made of; ``link_latency`` to each copy over
    the link; ``host_bandwidth`` is the host's memcpy into staging; ``submit_time`` is what submitting a launch costs
    the host, which works ahead of the queues. ``kernel_copy``: bytes up to which a copy of the direct queue goes past
    the others on the link (`KERNEL_COPY`; 0: none does). ``pair_flops``: the rate at which attention works through
    pairs of a query and a key (0: as ``flops``); it stays below that of plain matrix products. ``peer_bandwidth``:
    from one card to another (0: through the host, over both their links).
    """

    name: str
    memory_bytes: int
    link_bandwidth: float
    link_latency: float
    flops: float
    memory_bandwidth: float
    launch_time: float
    host_bandwidth: float
    submit_time: float = 0.0
    kernel_copy: int = 0
    launch_gap: float = 0.0
    pair_flops: float = 0.0
    peer_bandwidth: float = 0.0

    def peer_time(self, size: int) -> float:
        """Seconds that ``size`` bytes take from one card to another."""
        if self.peer_bandwidth:
            return self.link_latency + size / self.peer_bandwidth
        return 2 * self.copy_time(size)

    def copy_time(self, size: int, *, over_link: bool = True) -> float:
        """Seconds that a copy of ``size`` bytes takes, over the link or inside device memory (read and written)."""
        if over_link:
            return self.link_latency + size / self.link_bandwidth
        return self.launch_time + 2 * size / self.memory_bandwidth

    def dispatch_time(self, cost: Cost) -> float:
        """Seconds that a kernel of ``cost`` takes: launches plus roofline, max(FLOPs / rate, bytes / bandwidth)."""
        launches = self.launch_time + self.launch_gap * cost.launches
        computing = (cost.flops - cost.pair_flops) / self.flops + cost.pair_flops / (self.pair_flops or self.flops)
        return launches + max(computing, cost.bytes / self.memory_bandwidth)

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
    "rtx4090": GpuSpec("RTX 4090", 24 * 2**30, 25e9, 10e-6, 150e12, 0.93e12, 5e-6, 10e9, 0.0, KERNEL_COPY),
    "h200": GpuSpec("H200", 139 * 2**30, 55.2e9, 15e-6, 545e12, 4.3e12, 5e-6, 5e9, 0.0, KERNEL_COPY, 0.0, 0.0, 388e9),
    "laptop": GpuSpec("laptop (RTX 4060)", 8 * 2**30, 12e9, 10e-6, 40e12, 0.24e12, 8e-6, 8e9, 0.0, KERNEL_COPY),
}
"""Presets. Sustained figures: H200 measured (PCIe 5 x16, see the benchmark page); the others from their vendors' peak
rates, taken at the share of peak that large copies and matrix products usually reach. The H200's ``flops`` are what
decoder layers of the 32B shape sustain over 8,192 tokens on a warm card; a single matrix product reaches 780e12 there.
Layers were not measured on the other two: expect less of them, too."""
