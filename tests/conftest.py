"""What holds for every test: one torch thread a worker, hypothesis without deadlines, and CUDA tests left out aloud."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

# Workers already use every core. Set before torch is imported, and inherited by the processes that tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# No test depends on wall-clock time; CI draws the same examples on every run.
settings.register_profile("xinfer-lab", deadline=None, derandomize=bool(os.environ.get("CI")), print_blob=True)
settings.load_profile("xinfer-lab")


class LeftOut:
    """Counts the CUDA tests that `-m` deselected. With xdist the workers collect, and only the controller reports."""

    def __init__(self) -> None:
        self.count = 0

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        self.count += sum(item.get_closest_marker("cuda") is not None for item in items)

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Iterator[None]:
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["cuda_left_out"] = self.count
        yield

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node) -> None:
        # Every worker collects all the tests, so their counts are equal.
        self.count = max(self.count, getattr(node, "workeroutput", {}).get("cuda_left_out", 0))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.count:
            terminalreporter.write_line(f"CUDA tests not run: {self.count} (on a machine with a GPU: pytest -m cuda)")


def pytest_configure(config: pytest.Config) -> None:
    """Counts from the start of the session."""
    config.pluginmanager.register(LeftOut(), "cuda-left-out")


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory):
    """Small checkpoints and their resident runs, shared by the tests of a worker."""
    from tests.models import Models  # imports torch, which has to see the environment set above

    return Models(tmp_path_factory.mktemp("models"))
