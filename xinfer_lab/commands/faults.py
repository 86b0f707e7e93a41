"""Which errors are the user's to mend, and the one sentence that says so. Everything else is a bug and keeps its traceback."""

from __future__ import annotations

__all__ = ["CommandError", "fault_sentence"]


class CommandError(ValueError):
    """What was asked for on the command line cannot be done; the message is for the user."""


def fault_sentence(error: BaseException) -> str | None:
    """One line for the user if ``error`` comes of bad input or of what this machine lacks; None for any other error."""
    message = _message(error)
    if message is None:
        return None
    line = " ".join("".join(char if char.isprintable() else " " for char in message).split())
    line = line or type(error).__name__
    return line if line.endswith((".", "!", "?")) else f"{line}."


def _message(error: BaseException) -> str | None:
    # The command line's own parser says what is wrong with an option by this method, wherever it keeps its classes.
    if callable(usage := getattr(error, "format_message", None)):
        return f"{usage().rstrip('.')}; {_help_hint(error)}"
    if isinstance(error, OSError):
        return _about_file(error)
    if isinstance(error, MemoryError) or "out of memory" in str(error) or "can't allocate memory" in str(error):
        return f"memory ran out ({str(error) or 'no details'}): free some, or use a smaller model, fewer slots or a shorter context"
    # Imported here: an option that is wrong must not wait for torch.
    from xinfer_lab.device.errors import DeviceError
    from xinfer_lab.qwen2.errors import ModelFileError
    from xinfer_lab.residency.errors import RequestError

    known = (CommandError, DeviceError, ModelFileError, RequestError)
    return str(error) if isinstance(error, known) else None


def _help_hint(error: BaseException) -> str:
    context = getattr(error, "ctx", None)
    return f"see {context.command_path if context is not None else 'xinfer-lab'} --help"


def _about_file(error: OSError) -> str:
    reason = error.strerror or str(error) or type(error).__name__
    return f"{error.filename}: {reason[:1].lower()}{reason[1:]}" if error.filename else reason
