"""Chat templates: the text that a model which was trained on conversations expects around a message.

A template is Jinja code that came with the weights, so it runs in Jinja's sandbox, with what transformers 5 offers it
and nothing else.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import jinja2
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from xinfer_lab.qwen2.errors import TokenizerError

__all__ = ["render_chat"]


class _Generation(Extension):
    """{% generation %} marks what a trainer counts; it changes no text."""

    tags = {"generation"}  # noqa: RUF012  as jinja2 declares it

    def parse(self, parser: Any) -> Any:
        """The statements in between."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Namespace(jinja2.utils.Namespace):
    """A namespace through which nothing of Python's inside can be reached."""

    def __init__(*args: Any, **named: Any) -> None:
        self, *given = args
        for name in dict(*given, **named):
            _refuse_inside(name)
        jinja2.utils.Namespace.__init__(self, *given, **named)

    def __setitem__(self, name: str, value: Any) -> None:
        _refuse_inside(name)
        super().__setitem__(name, value)


class _Dict:
    """`dict` for templates, without its attributes."""

    def __call__(self, *given: Any, **named: Any) -> dict[Any, Any]:
        return dict(*given, **named)

    def fromkeys(self, *given: Any) -> dict[Any, Any]:
        """As `dict.fromkeys`."""
        return dict.fromkeys(*given)


def _refuse_inside(name: Any) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise jinja2.exceptions.SecurityError(f"a namespace cannot hold {name!r}")


def _raise(message: str) -> None:
    raise jinja2.TemplateError(message)


def _tojson(
    value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
) -> str:
    # Jinja's own escapes HTML.
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def render_chat(template: str, messages: Sequence[Mapping[str, str]], special: Mapping[str, str]) -> str:
    """The text of a conversation, up to where the model's answer begins. `special`: the named special tokens, which the
    template may write. Raises TokenizerError for a template that fails or refuses the messages."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols]
    )
    environment.filters["tojson"] = _tojson
    environment.globals |= {
        "raise_exception": _raise,
        "strftime_now": lambda form: datetime.now().strftime(form),
        "dict": _Dict(),
        "namespace": _Namespace,
    }
    given = {**special, "tools": None, "documents": None, "add_generation_prompt": True}
    try:
        return environment.from_string(template).render(messages=[dict(message) for message in messages], **given)
    except Exception as error:  # the template is code of the checkpoint, and may fail in every way
        raise TokenizerError(f"the chat template fails: {type(error).__name__}: {error}") from None
