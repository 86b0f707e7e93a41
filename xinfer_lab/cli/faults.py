"""Tells errors that the user can fix from bugs: the first end in one sentence, the others in a traceback."""

from __future__ import annotations

import re

__all__ = ["CommandError", "fault_sentence"]

_LONGEST = 1000
"""Characters of a sentence."""

_NO_MEMORY = re.compile("out of memory|can't allocate memory")
"""How torch says it: of a GPU, and of the host."""


class CommandError(ValueError):
    """What was asked for on the command line cannot be done; the message is for the user."""


def fault_sentence(error: BaseException) -> str | None:
    """One line for the user if ``error`` comes of bad input or of what this machine lacks; None for any other error.

    Empty where all has been said already.
    """
    message = _message(error)
    if message is None:
        return None
    line = " ".join("".join(char if char.isprintable() else " " for char in message).split())
    if len(line) > _LONGEST:  # what was given is quoted, and may be of any length
        line = f"{line[: _LONGEST // 2]} ... {line[-_LONGEST // 2 :]}"
    return line if not line or line.endswith((".", "!", "?")) else f"{line}."


def _message(error: BaseException) -> str | None:
    # The command line's own parser says what is wrong with an option by this method, wherever it keeps its classes.
    if callable(usage := getattr(error, "format_message", None)):
        # No command at all has shown the help, and there is nothing to add.
        return f"{said.rstrip('.')}; {_help_hint(error)}" if (said := str(usage())) else ""
    if isinstance(error, CommandError):
        return str(error)
    if isinstance(error, OSError):
        return _about_file(error)
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and _NO_MEMORY.search(str(error))):
        said = (str(error).splitlines() or ["no details"])[0]
        return f"memory ran out ({said}); free some, or use a smaller model, fewer slots or a shorter context"
    # Imported here: an option that is wrong must not wait for torch.
    from xinfer_lab.device.errors import DeviceError
    from xinfer_lab.engine.loading import asked_by
    from xinfer_lab.qwen2.errors import ModelFileError
    from xinfer_lab.residency.errors import RequestError

    if not isinstance(error, (DeviceError, ModelFileError, RequestError)):
        return None
    return f"{str(error) or type(error).__name__}{asked_by(error)}"


def _help_hint(error: BaseException) -> str:
    context = getattr(error, "ctx", None)
    return f"see {context.command_path if context is not None else 'xinfer-lab'} --help"


def _about_file(error: OSError) -> str:
    reason = error.strerror or str(error) or type(error).__name__
    return f"{error.filename}: {reason[:1].lower()}{reason[1:]}" if error.filename else reason
