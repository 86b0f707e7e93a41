"""Formgrader's pages: what students wrote is sanitised, and the pages' policy runs no script of theirs.

nbgrader has no setting for either. nbgrader_config.py calls `protect`, and Formgrader reads that before it makes its
pages, so that they are protected wherever they are served. The scripts of nbgrader's own templates carry a nonce, which
is put into the templates' source: what is filled in later has none, and a browser does not run it.
"""

from __future__ import annotations

import re
import secrets
import sys
from base64 import b64encode
from collections.abc import Callable
from contextvars import ContextVar
from hashlib import sha256
from typing import Any

from jinja2 import BaseLoader, Environment, pass_context
from markupsafe import Markup

from xinfer_lab.course.feedback.safe import markdown

__all__ = ["POLICY", "markdown2html", "protect"]

POLICY = (
    "default-src 'none'; script-src 'nonce-{nonce}' 'unsafe-hashes' {handlers}; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)
FILES = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; sandbox; frame-ancestors 'self'"
"""For files out of a submission: a page among them is a stranger's page."""

HANDLERS = (
    "toggle_name(true);",
    "toggle_name(false);",
    "toggleAllNames()",
    "createAssignmentModal();",
    "createStudentModal();",
)
"""What nbgrader's templates have in ``onclick``. They show and hide, and take no words of a student's."""

NO_MATHJAX = (
    '<script nonce="{{ csp_nonce() }}">'
    'var MathJax = {Hub: {Startup: {signal: {Interest: tell => setTimeout(tell, 0, "End")}}}};</script>'
)
"""In the place of MathJax, which is another host's script: formulas need none, and the page waits for its last word."""

_NONCE: ContextVar[str] = ContextVar("nonce", default="")


@pass_context
def markdown2html(context: Any, source: str) -> Markup:
    """nbconvert's filter of this name: the Markdown of a cell, sanitised, with formulas that need no script."""
    return markdown(source, context.get("cell", {}).get("attachments"), below=0)


def protect() -> None:
    """Give Formgrader's pages their policy, if this process is a server that has them."""
    there = sys.modules.get("nbgrader.server_extensions.formgrader.formgrader")
    if there is None:
        return
    from nbgrader.server_extensions.formgrader.base import BaseHandler
    from nbgrader.server_extensions.formgrader.handlers import SubmissionFilesHandler

    extension: Any = there
    if isinstance(vars(BaseHandler).get("content_security_policy"), property):
        return  # configurations are read again and again
    BaseHandler.content_security_policy = property(lambda handler: _policy())
    SubmissionFilesHandler.content_security_policy = property(lambda handler: FILES)
    make_settings: Callable[..., None] = extension.FormgradeExtension.init_tornado_settings

    def init_tornado_settings(self: Any, webapp: Any) -> None:
        make_settings(self, webapp)
        for environment in (webapp.settings["nbgrader_exporter"].environment, webapp.settings["nbgrader_jinja2_env"]):
            _with_nonces(environment)

    extension.FormgradeExtension.init_tornado_settings = init_tornado_settings


def _policy() -> str:
    """The policy of one response. A tornado handler asks for it when it is made, in the context that it runs in."""
    _NONCE.set(secrets.token_urlsafe(16))
    handlers = (f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in HANDLERS)
    return POLICY.format(nonce=_NONCE.get(), handlers=" ".join(handlers))


def _with_nonces(environment: Environment) -> None:
    assert environment.loader is not None
    environment.loader = _Nonces(environment.loader)
    environment.globals["csp_nonce"] = _NONCE.get


class _Nonces(BaseLoader):
    """Templates whose scripts have the nonce of the response, without MathJax."""

    def __init__(self, loader: BaseLoader) -> None:
        self._loader = loader

    def get_source(self, environment: Environment, template: str) -> tuple[str, str | None, Callable[[], bool] | None]:
        """The source of ``template``."""
        source, name, fresh = self._loader.get_source(environment, template)
        source = re.sub(r"(?i)<script\b", '<script nonce="{{ csp_nonce() }}"', source)
        return source.replace("{{ mathjax() }}", NO_MATHJAX), name, fresh

    def list_templates(self) -> list[str]:
        """The loader's."""
        return self._loader.list_templates()
