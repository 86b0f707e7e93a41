"""Opens the device that a command's options name."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass

import torch

from xinfer_lab.cli.faults import CommandError
from xinfer_lab.device.cuda import CudaDevice
from xinfer_lab.device.device import Device
from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.gpu_spec import GPU_SPECS, GpuSpec
from xinfer_lab.device.host_device import HostDevice
from xinfer_lab.device.schedules import open_schedule

__all__ = ["DeviceChoice", "check_cards", "gpu_spec"]

_DEFAULT_GPU = "laptop"
_NUMBERED = re.compile(r"cuda:\d{1,4}(,cuda:\d{1,4})*", re.ASCII)


def gpu_spec(name: str) -> GpuSpec:
    """The preset called ``name``. Raises `CommandError` for an unknown one."""
    try:
        return GPU_SPECS[name.lower()]
    except KeyError:
        raise CommandError(f"there is no GPU {name!r} among the presets; choose {', '.join(GPU_SPECS)}") from None


def check_cards(cards: int, layers: int) -> None:
    """Raise `CommandError` for more cards than a model has layers."""
    if cards > layers:
        raise CommandError(f"{layers} layers cannot be spread over {cards} cards; use {layers} cards or fewer")


@dataclass(frozen=True, kw_only=True)
class DeviceChoice:
    """``kind`` is "auto", "emulated", "host" (threads of this machine), "cuda", "cuda:INDEX", or several of these with
    commas between: cards that share the layers.

    ``schedule`` and ``gpu`` (whose figures the virtual clock has) are the emulated device's alone, and so is
    ``cards``, how many it has: "auto" means emulated where one is given. Raises `CommandError` for what does not exist
    or does not fit.
    """

    kind: str = "auto"
    schedule: str | None = None
    gpu: str | None = None
    cards: int = 1

    def __post_init__(self) -> None:
        if self.kind not in ("auto", "emulated", "host", "cuda") and not _NUMBERED.fullmatch(self.kind):
            raise CommandError(
                f"there is no device {self.kind!r}; choose auto, emulated, host, cuda, cuda:INDEX, or several "
                "cards, as cuda:0,cuda:1"
            )
        given = {"--schedule": self.schedule is not None, "--gpu": self.gpu is not None, "--devices": self.cards > 1}
        emulated_only = next((option for option, there in given.items() if there), "")
        if self.kind not in ("auto", "emulated") and emulated_only:
            several = ", or name the cards, as --device cuda:0,cuda:1" if emulated_only == "--devices" else ""
            raise CommandError(
                f"{emulated_only} belongs to the emulated device; leave it out, or choose --device emulated{several}"
            )
        try:
            open_schedule(self.schedule or "timed")
        except ValueError as error:
            raise CommandError(str(error)) from None
        gpu_spec(self.gpu or _DEFAULT_GPU)

    def open(self, *, memory: int | None = None, check: bool = True, measure: bool = False) -> Device:
        """The device, with a budget of ``memory`` bytes, collecting hazards. ``measure``: a CUDA device times commands.

        Raises `CudaUnavailable`.
        """
        if self.kind == "host":
            return HostDevice(memory=memory, check=check)
        if not self.on_cuda:
            spec, schedule = gpu_spec(self.gpu or _DEFAULT_GPU), self.schedule or "timed"
            return EmulatedDevice(spec=spec, schedule=schedule, memory=memory, check=check, nodes=self.cards)
        return CudaDevice(self.numbers, memory=memory, check=check, on_hazard="collect", measure=measure)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of the CUDA cards."""
        return tuple(int(number) for number in re.findall(r"\d+", self.kind)) or (0,)

    @property
    def nodes(self) -> int:
        """How many cards there are."""
        return len(self.numbers) if self.on_cuda else self.cards

    def one_card(self) -> DeviceChoice:
        """The same with the first card alone."""
        return dataclasses.replace(self, cards=1, kind=self.kind.partition(",")[0])

    @property
    def measured(self) -> bool:
        """Whether this device's times are measured, and not the virtual clock's."""
        return self.kind == "host" or self.on_cuda

    @property
    def on_cuda(self) -> bool:
        """Whether this names a CUDA device; "auto" does where there is one and nothing asks for the emulated device."""
        if self.kind != "auto":
            return self.kind not in ("emulated", "host")
        return self.schedule is None and self.gpu is None and self.cards == 1 and torch.cuda.is_available()
