"""Parts of earlier labs where a later lab runs something ungraded: the student's if they passed, else the course's.

Each says on one line whose it is. Marking does not come here: it has no engine, and its answers may not import this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from xinfer_lab.engine.fitted import fitted
from xinfer_lab.engine.parts import Choice, find_parts
from xinfer_lab.grading.keep import engine_folder
from xinfer_lab.qwen2.config import Qwen2Config
from xinfer_lab.qwen2.layout import layer_layout

__all__ = ["my_layer_bytes", "with_my_parts"]


def my_layer_bytes() -> Callable[[Qwen2Config], int]:
    """Lab 1's `layer_bytes`, for a config as the package has it. Prints whose it is."""
    choice = _choice()
    own = choice.take("layer_bytes", lambda: None)
    print(_whose(choice))
    if own is None:
        return lambda config: layer_layout(config).weight_nbytes
    return lambda config: int(own(config.to_dict()))


def with_my_parts(ring: Any) -> Any:
    """``ring``, a class of layer sources from Lab 3 or 4, with the parts of earlier labs that it stands on: what
    uploads, and in Lab 4 what places a step. Prints whose they are."""
    choice = _choice()
    made = fitted(ring, choice)
    for name in ("copy_engine", "staging_ring"):
        choice.used[name] = choice.has("copy_engine") and choice.has(name)
    print(_whose(choice))
    return made


def _choice() -> Choice:
    return Choice(find_parts(engine_folder()))


def _whose(choice: Choice) -> str:
    parts: Mapping[str, bool] = choice.used
    said = [
        f"{words}: {', '.join(names)}"
        for words, names in (
            ("Yours, from earlier labs", [f"{name} ({_lab(choice, name)})" for name, own in parts.items() if own]),
            ("Lent by the course", [f"{name} ({_lab(choice, name)})" for name, own in parts.items() if not own]),
        )
        if names
    ]
    notes = [choice.parts[name].note for name in parts if choice.parts[name].status in ("changed", "open", "broken")]
    return ". ".join(said) + "." + "".join(f" {note}" for note in notes)


def _lab(choice: Choice, name: str) -> str:
    return f"Lab {choice.parts[name].lab.removeprefix('lab')}"
