"""What holds for every test: one torch thread a worker, hypothesis without deadlines, and what is left out is said
aloud.
"""

import gc
import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

# Workers already use every core. Set before torch is imported, and inherited by the processes that tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A worker holds thousands of tests and large libraries, and each collection looks through them: a tenth of all time.
gc.set_threshold(50_000, 20, 50)

# No test depends on wall-clock time; CI draws the same examples on every run.
settings.register_profile("xinfer-lab", deadline=None, derandomize=bool(os.environ.get("CI")), print_blob=True)
settings.load_profile("xinfer-lab")


@pytest.fixture
def small_heap() -> Iterator[None]:
    """For what collects garbage again and again: it does not look through a whole run's tests and libraries."""
    gc.freeze()
    yield
    gc.unfreeze()


KINDS = {
    "cuda": "CUDA tests not run: {} (on a machine with a GPU: pytest -m cuda)",
    "browser": "Browser tests not run: {} (left out, or no Chromium was found: apt install chromium, or set CHROMIUM)",
    "bubblewrap": "Tests of isolation not run, for want of a working bubblewrap: {} (Debian: apt install bubblewrap)",
}


class LeftOut:
    """Counts the tests that are left out for want of a device or a program, and says so at the end.

    With xdist the workers collect, and only the controller reports.
    """

    def __init__(self) -> None:
        self.counts = dict.fromkeys(KINDS, 0)

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        for kind in KINDS:
            self.counts[kind] += sum(item.get_closest_marker(kind) is not None for item in items)

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


def bubblewrap_works() -> bool:
    from xinfer_lab.course.sandbox import open_sandbox

    return open_sandbox("auto").isolated


def pytest_configure(config: pytest.Config) -> None:
    """Counts from the start of the session."""
    config.pluginmanager.register(LeftOut(), "left-out")


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory):
    """Small checkpoints and their resident runs, shared by the tests of a worker."""
    from tests.models import Models  # imports torch, which has to see the environment set above

    return Models(tmp_path_factory.mktemp("models"))
