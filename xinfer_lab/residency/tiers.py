"""Host tiers: where streamed layers wait in host memory, and which of the ways a machine allows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import psutil

from xinfer_lab.device.device import Device
from xinfer_lab.device.errors import CudaUnavailable, format_bytes
from xinfer_lab.qwen2.layout import layer_layout, tensor_name
from xinfer_lab.residency.errors import RequestError
from xinfer_lab.residency.host import HostLayers, MappedLayers, PinnedLayers, StagedLayers
from xinfer_lab.residency.weights import ModelWeights

__all__ = ["HOST_MEMORY", "HostOpener", "choose_tier", "free_host_memory", "map_refusal", "open_host"]

HOST_MEMORY = ("auto", "pinned", "registered", "staged")
"""``pinned``: a pinned copy of the layers. ``registered``: the checkpoint's files, mapped and pinned as they are.
``staged``: a small pinned ring that each layer is copied into before each upload. ``auto``: see `choose_tier`."""


def free_host_memory() -> int:
    """Bytes of host memory that can still be had; pages of the file cache count as free."""
    return int(psutil.virtual_memory().available)


def map_refusal(device: Device, weights: ModelWeights, layers: Sequence[int]) -> str:
    """Why ``layers`` cannot be copied straight out of the files that hold them; '' if nothing speaks against it."""
    layout = layer_layout(weights.config)
    sources = {
        weights.locate(tensor_name(layer, place.name)).name
        for layer in layers
        for group in layout.groups
        for place in group.tensors
    }
    for source in sorted(sources):
        if why := device.map_refusal(source):
            return why
    size = sum(weights.nbytes(source) or 0 for source in sources)
    if device.torch_device.type == "cuda" and size > (free := free_host_memory()):
        return f"all of its {format_bytes(size)} would have to be in memory, of which {format_bytes(free)} are free"
    return ""


def choose_tier(device: Device, weights: ModelWeights, layers: Sequence[int]) -> tuple[str, str]:
    """The tier that ``auto`` stands for, and why, as a sentence ('' where there is nothing to say).

    On CUDA the files as they are, where they can be registered; else a pinned copy, if it fits into the memory that is
    free; else a staging ring. The emulated device pretends to a pinned copy; the device of threads reads files.
    """
    if device.torch_device.type != "cuda":
        return "registered" if device.copies_from_files and not map_refusal(device, weights, layers) else "pinned", ""
    if not (why := map_refusal(device, weights, layers)):
        return "registered", "The layers are copied straight out of their files (registered)."
    size, free = len(layers) * layer_layout(weights.config).nbytes, free_host_memory()
    if size < free:
        return "pinned", f"The layers are copied into pinned memory (pinned), since {why}."
    return "staged", (
        f"Each layer is staged before each upload, which is slower (staged): {why}, and a pinned copy of "
        f"{format_bytes(size)} does not fit into the {format_bytes(free)} of memory that are free."
    )


HostOpener = Callable[[Device, Sequence[int]], HostLayers]
"""Opens the host memory of some layers, given by their numbers, for a card; it counts along them."""


def open_host(
    tier: str | HostOpener,
    device: Device,
    weights: ModelWeights,
    layers: Sequence[int],
    *,
    depth: int = 2,
    on_layer: Callable[[int], None] | None = None,
    on_tier: Callable[[str], None] | None = None,
) -> HostLayers:
    """The host memory that ``layers`` wait in, by the tier's name, or as ``tier`` opens it; it counts along that list.

    ``depth``: layers that a staging ring has room for. ``on_tier(sentence)`` hears what ``auto`` came to. Raises
    ValueError for an unknown tier, `RequestError` for "registered" where that cannot be, and `CudaUnavailable` where
    host memory cannot be pinned.
    """
    if not isinstance(tier, str):
        return tier(device, layers)
    if tier not in HOST_MEMORY:
        raise ValueError(f"host_memory is one of {', '.join(HOST_MEMORY)}, not {tier!r}")
    layout = layer_layout(weights.config)
    automatic = tier == "auto"
    if automatic:
        tier, why = choose_tier(device, weights, layers)
        if why and on_tier is not None:
            on_tier(why)
    elif tier == "registered" and (why := map_refusal(device, weights, layers)):
        raise RequestError(
            f"the layers cannot be copied straight out of their files: {why}; choose --host-memory pinned or staged, "
            f"or auto, which takes the best that is possible"
        )
    if tier == "registered":
        try:
            return MappedLayers(device, layout, weights, layers)
        except CudaUnavailable as error:
            if not automatic:
                raise
            tier = "pinned"
            if on_tier is not None:
                on_tier(f"The layers are copied into pinned memory instead (pinned): {error}")
    if tier == "pinned":
        return PinnedLayers(device, layout, layers, on_layer)
    return StagedLayers(device, layout, depth, layers)
