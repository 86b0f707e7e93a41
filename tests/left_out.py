"""A pytest plugin that counts the tests left out, and says at the end how many, why, and how to run them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest

__all__ = ["LeftOut"]

KINDS = {
    "cuda": "CUDA tests not run: {} (on a machine with a GPU: pytest -m cuda)",
    "browser": "Browser tests not run: {} (left out, or no Chromium was found: apt install chromium, or set CHROMIUM)",
    "bubblewrap": "Tests of isolation not run, for want of a working bubblewrap: {} (Debian: apt install bubblewrap)",
    "search": "Searches not run: {} (make test-search, hours)",
    "slow": "Slow tests not run: {} (make test-all runs every test)",
}
"""By marker. A test that has several counts under the first."""


class LeftOut:
    """Counts the tests that are left out for want of a device, a program or time.

    With xdist the workers collect, and only the controller reports.
    """

    def __init__(self) -> None:
        self.counts = dict.fromkeys(KINDS, 0)

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        for item in items:
            kind = next((kind for kind in KINDS if item.get_closest_marker(kind)), None)
            # Where bubblewrap works, a test of isolation is left out for another reason, such as -k.
            if kind is not None and (kind != "bubblewrap" or not bubblewrap_works()):
                self.counts[kind] += 1

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        isolated = [item for item in items if item.get_closest_marker("bubblewrap")]
        if isolated and not bubblewrap_works():
            items[:] = [item for item in items if item not in isolated]
            config.hook.pytest_deselected(items=isolated)

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Iterator[None]:
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["left_out"] = self.counts
        yield

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node) -> None:
        # Every worker collects all the tests, so their counts are equal.
        counts = getattr(node, "workeroutput", {}).get("left_out", {})
        self.counts = {kind: max(count, counts.get(kind, 0)) for kind, count in self.counts.items()}

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for kind, count in self.counts.items():
            if count:
                terminalreporter.write_line(KINDS[kind].format(count))


@cache
def bubblewrap_works() -> bool:
    from xinfer_lab.course.sandbox import NoSandbox, open_sandbox

    try:
        return open_sandbox("bubblewrap").isolated
    except NoSandbox:
        return False


def pytest_configure(config: pytest.Config) -> None:
    """Counts from the start of the session."""
    config.pluginmanager.register(LeftOut())
