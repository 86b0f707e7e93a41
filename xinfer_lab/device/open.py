"""`open_device`: the device that a program should use here."""

from __future__ import annotations

from typing import Any

import torch

from xinfer_lab.device.cuda import CudaDevice
from xinfer_lab.device.device import Device
from xinfer_lab.device.emulated import EmulatedDevice

__all__ = ["open_device"]


def open_device(kind: str = "auto", **options: Any) -> Device:
    """``"cuda"``, ``"cuda:1"``, ``"emulated"``, or ``"auto"``: CUDA where it is there, else emulated.

    ``options`` go to the device's constructor; with "auto", only options that all devices take make sense (``memory``,
    ``check``, ``on_hazard``). Raises `CudaUnavailable` for "cuda" without one, ValueError for another name.
    """
    if kind == "auto":
        kind = "cuda" if torch.cuda.is_available() else "emulated"
    if kind == "emulated":
        return EmulatedDevice(**options)
    name, _, index = kind.partition(":")
    if name == "cuda" and (index.isdecimal() or not index):
        return CudaDevice(int(index or 0), **options)
    raise ValueError(f"there is no device {kind!r}; choose auto, emulated, cuda or cuda:INDEX")
