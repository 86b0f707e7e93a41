"""A model speaks through a student's engine, token by token, with the slots and the memory as they are at that moment.

In a notebook the picture is replaced as the text grows, and the last one stays when the kernel is gone.
"""

from __future__ import annotations

import html
import sys
from functools import partial
from pathlib import Path
from typing import Any

import torch

from xinfer_lab.device.emulated import EmulatedDevice
from xinfer_lab.device.errors import DeviceError, format_bytes
from xinfer_lab.device.records import Copy
from xinfer_lab.device.stream import CommandStream
from xinfer_lab.engine.assemble import Engine
from xinfer_lab.engine.loading import PartError, asked_by
from xinfer_lab.grading.keep import engine_folder
from xinfer_lab.models import trained_model
from xinfer_lab.qwen2.checkpoint import Checkpoint
from xinfer_lab.qwen2.sampling import sample
from xinfer_lab.qwen2.tokenizer import Tokenizer
from xinfer_lab.residency.errors import LayerOrderError
from xinfer_lab.residency.generate import Chooser, generate
from xinfer_lab.residency.model import QwenModel
from xinfer_lab.residency.parity import compare_logits, parity_line, run_fixed
from xinfer_lab.views.labels import layer_of, slot_of_buffer
from xinfer_lab.views.theme import HUES

__all__ = ["Speech", "speak"]


class Speech:
    """What is to be seen of a run: the text so far, the layer in each slot, and device memory beside the resident
    model's ``whole`` bytes."""

    def __init__(self, whole: int) -> None:
        self.whole, self.text, self.used = whole, "", 0
        self.slots: dict[int, int | None] = {}
        self._seen = 0

    def look(self, stream: CommandStream, used: int) -> None:
        """Take in what was submitted since the last look."""
        for record in map(stream.__getitem__, range(self._seen, len(stream))):
            slot = slot_of_buffer(record.dst.buffer) if isinstance(record, Copy) else None
            if slot is not None and isinstance(record, Copy):
                self.slots[slot] = layer_of(record.label)
        self._seen, self.used = len(stream), used

    def html(self) -> str:
        """The moment as HTML: text, slots, and memory as a bar, each also in words."""
        slots = "".join(_slot(number, layer) for number, layer in sorted(self.slots.items()))
        share = self.used / self.whole if self.whole else 0.0
        words = f"{format_bytes(self.used)} of device memory; the whole model would take {format_bytes(self.whole)}"
        return (
            '<div style="max-width:46rem"><blockquote style="white-space:pre-wrap;margin:0 0 .8rem;padding:.4rem 1rem;'
            f'border-left:4px solid {HUES[0]};font-size:1.05em">{html.escape(self.text)}</blockquote>'
            f'<div style="display:flex;gap:.6rem;flex-wrap:wrap">{slots}</div>'
            f'<div role="img" aria-label="{words}" style="height:.7rem;background:#8884;margin:.7rem 0 .3rem">'
            f'<div style="width:{share:.1%};height:100%;background:{HUES[0]}"></div></div>'
            f"<div>{words}</div></div>"
        )


def _slot(number: int, layer: int | None) -> str:
    held = "empty" if layer is None else f"layer {layer}"
    return (
        f'<div style="border:2px solid {HUES[number % len(HUES)]};border-radius:6px;padding:.25rem .8rem">'
        f"slot {number}: <strong>{held}</strong></div>"
    )


def speak(
    model: str | Path = "shakespeare",
    prompt: str = "ROMEO.\n",
    tokens: int = 80,
    *,
    pool: int = 2,
    temperature: float = 0.7,
    seed: int = 4,
    folder: Path | None = None,
) -> None:
    """Let ``model`` continue ``prompt`` through the engine in ``folder`` (by default where your checks keep parts).

    Shows the text as it comes; then says whose parts ran, and whether every logit equals the resident run's. ``model``
    is a trained model of the package by name, or a directory with a checkpoint. Where your checks
    kept nothing yet, all parts are the course's. A part that fails ends it in a sentence. Raises `RequestError` for a
    ``folder`` that is not there.
    """
    engine = Engine(folder or engine_folder(), lent=folder is None)
    path = Path(model) if Path(model).exists() else trained_model(str(model))
    tokenizer = Tokenizer.open(path)
    opening = torch.tensor([tokenizer.encode(prompt)], device="cpu")
    shape: Any = {"context": opening.shape[1] + tokens, "chunk": opening.shape[1]}
    with Checkpoint.open(path) as checkpoint:
        speech, draw = Speech(_resident_peak(checkpoint, shape)), torch.Generator().manual_seed(seed)
        choose = partial(sample, temperature=temperature, generator=draw)
        try:
            # Checked: fresh memory is filled with NaN, so that no byte is right because an earlier run left it there.
            with EmulatedDevice() as device:
                weights, source = engine.weights(checkpoint), engine.streaming(pool)
                with QwenModel(weights, device, source, **shape) as streamed:
                    logits, fed = _say(streamed, tokenizer, opening, tokens, choose, speech)
        except (_NoNumbers, PartError, DeviceError, LayerOrderError) as error:
            print(f"Stopped: {error}{asked_by(error)}")
            print(engine.told())
            return
        with EmulatedDevice(check=False) as device:
            resident = run_fixed(lambda on: QwenModel.load(checkpoint, on, **shape), device, fed)
    _, difference = compare_logits(resident.logits, logits)
    print(parity_line(difference))
    print(engine.told())


class _NoNumbers(Exception):
    """Logits are NaN or infinite, so that no token can be chosen."""

    def __str__(self) -> str:
        return "some logits are no numbers. A part read bytes that had not been copied yet."


def _resident_peak(checkpoint: Checkpoint, shape: Any) -> int:
    with EmulatedDevice(check=False) as device, QwenModel.load(checkpoint, device, **shape):
        return device.memory.use().peak


def _say(
    model: QwenModel, tokenizer: Tokenizer, opening: torch.Tensor, tokens: int, choose: Chooser, speech: Speech
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Generate and show; the logits of each pass, and the tokens that it was given."""
    logits: list[torch.Tensor] = []
    fed, screen, text, device = [opening], _Screen(), tokenizer.stream(), model.device

    def noted(seen: torch.Tensor) -> torch.Tensor:
        if not seen.isfinite().all():
            raise _NoNumbers
        logits.append(seen.unsqueeze(1).clone())
        return choose(seen)

    speech.text = tokenizer.decode(opening[0].tolist())
    for token in generate(model, opening, tokens, noted):
        fed.append(token[:, None])
        new = text.add(int(token))
        speech.text += new
        speech.look(device.stream, device.memory.use().used)
        screen.update(speech, new)
    screen.end()
    # The last token was chosen and not read again.
    return logits, fed[:-1]


class _Screen:
    """A notebook's output that is replaced, or a terminal that text is added to."""

    def __init__(self) -> None:
        ipython = sys.modules.get("IPython")
        self._notebook = ipython is not None and ipython.get_ipython() is not None
        self._handle: Any = None

    def update(self, speech: Speech, new: str) -> None:
        """Show ``speech``; ``new`` is what it has more than before."""
        if not self._notebook:
            sys.stdout.write(speech.text if self._handle is None else new)
            sys.stdout.flush()
            self._handle = True
            return
        from IPython import display as shown

        page: Any = shown.HTML(speech.html())  # type: ignore[no-untyped-call]
        if self._handle is None:
            self._handle = shown.display(page, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._handle.update(page)

    def end(self) -> None:
        if not self._notebook:
            sys.stdout.write("\n")
