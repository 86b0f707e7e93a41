"""The CUDA cards of a device, and copies from one to another: by peer access, else through pinned host memory.

A copy belongs to the queue that asks for it: it begins after what the queue was given before, and the queue goes on
once it has arrived. CUDA gives each stream one card, so the other card's end of a copy needs a stream of its own. It is
made here, one for each queue and card: on the card's default stream the copies of all queues would take turns.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch

from xinfer_lab.device.errors import CudaUnavailable, format_bytes
from xinfer_lab.device.gpu_spec import KERNEL_COPY
from xinfer_lab.device.graphs import OnStream
from xinfer_lab.device.pinned import PinnedMemory, seen_by_gpu
from xinfer_lab.device.tensors import POISON

__all__ = ["PeerCopies", "equal_cards"]

_free_ends: dict[torch.device, list[torch.cuda.Stream]] = {}
# torch has 32 streams a card and hands them out in turn: new ones for each device would soon be those of its queues.


def equal_cards(indices: Sequence[int]) -> tuple[torch.device, ...]:
    """The CUDA devices of these numbers, one for each node; a number may stand there twice. Raises `CudaUnavailable`
    where one is missing, or where they are not of one kind: each has the same share of the layers."""
    if not torch.cuda.is_available():
        raise CudaUnavailable(
            "torch finds no CUDA device here. Install a CUDA build of torch and a driver, or use the emulated device."
        )
    count = torch.cuda.device_count()
    for index in indices:
        if not 0 <= index < count:
            there = f"cuda:0 to cuda:{count - 1}" if count > 1 else "cuda:0"
            raise CudaUnavailable(f"there is no CUDA device cuda:{index}; this machine has {there}")
    found = [torch.cuda.get_device_properties(index) for index in indices]
    for index, card in zip(indices, found, strict=True):
        if (card.name, card.total_memory) != (found[0].name, found[0].total_memory):
            raise CudaUnavailable(
                f"cuda:{indices[0]} is {found[0].name} with {format_bytes(found[0].total_memory)}, and cuda:{index} is "
                f"{card.name} with {format_bytes(card.total_memory)}: each card gets the same share of the layers, so "
                "choose cards of one kind"
            )
    return tuple(torch.device("cuda", index) for index in indices)


class PeerCopies:
    """Copies between nodes. ``direct`` False: all of them go through host memory, as if no card reached another."""

    def __init__(self, *, direct: bool = True) -> None:
        self._direct = direct
        self._ends: dict[tuple[torch.cuda.Stream, torch.device], torch.cuda.Stream] = {}
        self._bounces: dict[tuple[torch.cuda.Stream, torch.device], PinnedMemory] = {}

    def all_reach(self, cards: Sequence[torch.device]) -> bool:
        """Whether each of ``cards`` is copied to from each without the host."""
        return self._direct and all(_reaches(target, source) for target in cards for source in cards)

    def copy(self, stream: torch.cuda.Stream, dst: torch.Tensor, src: torch.Tensor, *, poison: bool = False) -> None:
        """Copy ``src`` to ``dst``, bytes of two nodes, one of which is on the card of ``stream``, the queue's. The host
        goes on at once. With ``poison``, fill ``dst`` with NaN bytes first."""
        source, target = self._end(stream, src.device), self._end(stream, dst.device)
        if poison:
            if target is not stream:
                target.wait_stream(stream)
            with OnStream(target):
                dst.fill_(POISON)
        if self._direct and _reaches(dst.device, src.device):
            # torch copies on the current stream of the source's card, between two events: the copy waits for the
            # current stream of the target's card, which then waits for the copy. So both have to be set, and whichever
            # of them is the queue's own, the copy comes after what the queue had and before what it gets next.
            with OnStream(target), OnStream(source):
                dst.copy_(src, non_blocking=True)
        else:
            self._through_host(stream, source, target, dst, src)

    def _through_host(
        self,
        stream: torch.cuda.Stream,
        source: torch.cuda.Stream,
        target: torch.cuda.Stream,
        dst: torch.Tensor,
        src: torch.Tensor,
    ) -> None:
        # An event is recorded on its own stream's card; streams of any card may wait for it.
        bounce = self._bounce(stream, dst)
        if source is not stream:
            source.wait_stream(stream)
        with OnStream(source):
            bounce.copy_(src, non_blocking=True)
        if target is not source:
            target.wait_stream(source)
        with OnStream(target):
            if dst.numel() <= KERNEL_COPY:
                # Past the layers on the card's link: see `KERNEL_COPY`.
                torch.add(seen_by_gpu(bounce, dst.device), 0, out=dst)
            else:
                dst.copy_(bounce, non_blocking=True)
        if target is not stream:
            # The bounce buffer is written again by this queue's next copy alone, which begins after this one arrived.
            stream.wait_stream(target)

    def _bounce(self, stream: torch.cuda.Stream, dst: torch.Tensor) -> torch.Tensor:
        # One for each card that is copied to: its kernels read it only where it was pinned for them.
        held = self._bounces.get((stream, dst.device))
        if held is None or held.tensor.numel() < dst.numel():
            if held is not None:
                stream.synchronize()  # a copy may still use it
                held.close()
            with torch.cuda.device(dst.device):
                held = self._bounces[stream, dst.device] = PinnedMemory(dst.numel())
        return held.tensor[: dst.numel()]

    def _end(self, stream: torch.cuda.Stream, card: torch.device) -> torch.cuda.Stream:
        if card == stream.device:
            return stream
        if (stream, card) not in self._ends:
            free = _free_ends.setdefault(card, [])
            self._ends[stream, card] = free.pop() if free else torch.cuda.Stream(card)
        return self._ends[stream, card]

    def close(self) -> None:
        """Give the pinned memory back; no copy may still run."""
        for bounce in self._bounces.values():
            bounce.close()
        self._bounces.clear()
        for (_, card), end in self._ends.items():
            _free_ends[card].append(end)
        self._ends.clear()


@functools.cache
def _reaches(target: torch.device, source: torch.device) -> bool:
    return target == source or torch.cuda.can_device_access_peer(target.index, source.index)
