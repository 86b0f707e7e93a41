"""Finds out what this machine has, and what to do where something is missing."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import warnings
import webbrowser
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from xinfer_lab.device.errors import format_bytes

__all__ = ["CHECKS", "Finding", "find_all"]

_LEAST_DISK = 5 * 2**30
_LEAST_RAM = 4 * 2**30


@dataclass(frozen=True)
class Finding:
    """``what`` was looked for, what was ``found``, and what to do if that is not enough (``advice``, else '').

    ``status`` is "ok", "note" (something works less well), "missing" (something optional) or "required" (missing, and
    nothing works without it).
    """

    what: str
    status: str
    found: str
    advice: str = ""


def _python() -> Iterator[Finding]:
    yield Finding("Python", "ok", f"{platform.python_version()}, {platform.system()} {platform.machine()}")


def _package(name: str, status: str, purpose: str) -> Finding:
    try:
        return Finding(name, "ok", importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return Finding(name, status, "not installed", f"{purpose}: pip install {name}")


def _packages() -> Iterator[Finding]:
    for name in ("numpy", "safetensors"):
        yield _package(name, "required", "nothing works without it")
    yield _package("tokenizers", "missing", "for prompts as text")
    for name in ("jupyterlab", "nbgrader", "ipywidgets"):
        yield _package(name, "missing", "for the labs")


def _torch() -> Iterator[Finding]:
    try:
        torch: Any = importlib.import_module("torch")
    except Exception as error:  # a broken installation may raise anything
        said = (str(error).splitlines() or [""])[0]
        yield Finding(
            "torch", "required", f"cannot be imported ({said})", "nothing works without it: pip install torch"
        )
        return
    yield Finding("torch", "ok", str(torch.__version__))
    yield from _cuda(torch)
    yield from _links(torch)


def _cuda(torch: Any) -> Iterator[Finding]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        available = torch.cuda.is_available()
    instead = "the emulated device works without; "
    if available:
        for index in range(torch.cuda.device_count()):
            gpu = torch.cuda.get_device_properties(index)
            found = f"{gpu.name}, {format_bytes(gpu.total_memory)}, compute capability {gpu.major}.{gpu.minor}"
            yield Finding(f"GPU cuda:{index}", "ok", f"{found}, CUDA {torch.version.cuda}")
            yield _recorded(gpu.major)
    elif torch.version.cuda is None:
        advice = (
            "there is none for macOS"
            if sys.platform == "darwin"
            else "with an NVIDIA GPU, install a CUDA build of torch"
        )
        yield Finding("GPU", "missing", "none: this torch is built without CUDA", instead + advice)
    else:
        why = f" ({str(caught[-1].message).splitlines()[0]})" if caught else ""
        found = f"none: torch has CUDA {torch.version.cuda}, but finds no GPU{why}"
        yield Finding("GPU", "missing", found, instead + "with an NVIDIA GPU, install or update its driver")


def _links(torch: Any) -> Iterator[Finding]:
    """How cards reach each other, where there are several: what layers over several cards copy by."""
    cards = range(torch.cuda.device_count())
    if len(cards) < 2:
        return
    kinds = {(card.name, card.total_memory) for card in map(torch.cuda.get_device_properties, cards)}
    if len(kinds) > 1:
        yield Finding("cards together", "note", "not of one kind", "layers are spread over equal cards: name such ones")
    apart = [(a, b) for a in cards for b in cards if a != b and not torch.cuda.can_device_access_peer(a, b)]
    if apart:
        a, b = apart[0]
        found = f"cuda:{a} does not reach cuda:{b}" + (f", nor do {len(apart) - 1} more pairs" if apart[1:] else "")
        advice = "layers over several cards run, but what goes from card to card passes through host memory"
        yield Finding("peer access", "note", found, advice)
        return
    by = "NVLink" if _has_nvlink() else "PCIe"
    yield Finding("peer access", "ok", f"each of {len(cards)} cards reaches each other, by {by}")


def _has_nvlink() -> bool:
    """Whether the driver's own tool reports a working NVLink."""
    try:
        said = subprocess.run(
            ["nvidia-smi", "nvlink", "--status"], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return "GB/s" in said.stdout


def _recorded(major: int) -> Finding:
    """Whether command lists that repeat are replayed as CUDA graphs; see `xinfer_lab.device.graphs`."""
    slow = "decode steps run without: the same bytes, but small models wait for the host"
    try:
        triton = importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        advice = f"{slow}; on Linux, pip install triton"
        return Finding("CUDA graphs", "note", "not used: Triton is not installed", advice)
    if major < 8:
        return Finding("CUDA graphs", "note", f"not used: compute capability {major}.x, and Triton needs 8.0", slow)
    return Finding("CUDA graphs", "ok", f"command lists that repeat are replayed, with kernels of Triton {triton}")


def _memory() -> Iterator[Finding]:
    memory = psutil.virtual_memory()
    found = f"{format_bytes(memory.total)}, {format_bytes(memory.available)} free; {os.cpu_count()} cores"
    short = "small models only: what streams has to fit into it"
    yield Finding("RAM", *(("note", found, short) if memory.available < _LEAST_RAM else ("ok", found)))
    limit = _locked_memory_limit()
    if limit is None:
        yield Finding("locked memory", "ok", "no limit")
    elif limit >= memory.total:
        yield Finding("locked memory", "ok", f"up to {format_bytes(limit)}")
    else:
        advice = "matters with a GPU only: if pinning fails, raise it (ulimit -l)"
        yield Finding("locked memory", "note", f"up to {format_bytes(limit)}", advice)


def _locked_memory_limit() -> int | None:
    """Bytes that this process may lock; None where there is no limit or no such notion."""
    try:
        import resource
    except ImportError:
        return None
    limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def _disk() -> Iterator[Finding]:
    for what, path in (("disk here", Path.cwd()), ("disk for temporary files", Path(tempfile.gettempdir()))):
        free = shutil.disk_usage(path).free
        found = f"{format_bytes(free)} free"
        short = f"less than {format_bytes(_LEAST_DISK)}: make room before you fetch or make models"
        yield Finding(what, *(("note", found, short) if free < _LEAST_DISK else ("ok", found)))


def _sandbox() -> Iterator[Finding]:
    if sys.platform != "linux":
        yield Finding(
            "bubblewrap", "missing", "for Linux only", "only instructors need it: mark in a container or on Linux"
        )
        return
    if (program := shutil.which("bwrap")) is None:
        yield Finding(
            "bubblewrap", "missing", "not found", "only instructors need it, for marking: apt install bubblewrap"
        )
        return
    said = _try_sandbox(program)
    if said is None:
        yield Finding("bubblewrap", "ok", program)
    else:
        yield Finding(
            "bubblewrap", "note", f"{program} does not work: {said}", "only instructors need it: allow user namespaces"
        )


def _try_sandbox(program: str) -> str | None:
    """None if a process can be sandboxed here, else the first line of what bubblewrap says."""
    command = [program, "--unshare-all", "--ro-bind", "/", "/", "true"]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None if run.returncode == 0 else (run.stderr.splitlines() or ["no reason given"])[0]


_BROWSERS = ("firefox", "google-chrome", "chromium", "chromium-browser", "microsoft-edge")


def _browser() -> Iterator[Finding]:
    try:
        yield Finding("browser", "ok", str(getattr(webbrowser.get(), "name", "there is one")))
    except webbrowser.Error:
        advice = "JupyterLab prints an address: open it in a browser that reaches this machine"
        installed = next((name for name in _BROWSERS if shutil.which(name)), None)
        if installed is None:
            yield Finding("browser", "missing", "none found", advice)
        else:
            yield Finding("browser", "note", f"{installed} is there, but no display to open it on", advice)


CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    _python, _torch, _packages, _memory, _disk, _sandbox, _browser,
)  # fmt: skip
"""Every question, in the order in which the answers are shown."""


def find_all() -> list[Finding]:
    """The answers to all of `CHECKS`."""
    return [finding for check in CHECKS for finding in check()]
