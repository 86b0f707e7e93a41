"""What holds for every test: one torch thread a worker, hypothesis without deadlines, a sample of the large families,
and a count of what is left out.
"""

import gc
import os
from collections.abc import Iterator
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, settings

from tests import left_out, sample

# Workers already use every core. Set before torch is imported, and inherited by the processes that tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# No check that a test runs keeps parts for an engine, in whatever folder the test runs.
os.environ["XINFER_LAB_ENGINE"] = ""

# A worker holds thousands of tests and large libraries, and each collection looks through them: a tenth of all time.
gc.set_threshold(50_000, 20, 50)

# No test depends on wall-clock time, and a slow machine is no fault. CI draws the same examples on every run.
settings.register_profile(
    "xinfer-lab",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),
    print_blob=True,
)
settings.load_profile("xinfer-lab")

# Its tests are imported by the file of each lab.
pytest.register_assert_rewrite("tests.bank_tests")


def pytest_configure(config: pytest.Config) -> None:
    for plugin in (left_out, sample):
        config.pluginmanager.register(plugin)


@pytest.fixture(scope="session", autouse=True)
def tests_may_answer() -> Iterator[None]:
    """An answer that a test defines is as good as one of a notebook's cells: its module may be used."""
    from xinfer_lab.grading import denial

    with patch.object(denial, "LIBRARIES", (*denial.LIBRARIES, "tests")):
        yield


@pytest.fixture
def small_heap() -> Iterator[None]:
    """For what collects garbage again and again: it does not look through a whole run's tests and libraries."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory):
    """Small checkpoints and their resident runs, shared by the tests of a worker."""
    from tests.models import Models  # imports torch, which has to see the environment set above

    return Models(tmp_path_factory.mktemp("models"))
