"""Settings that hold for all tests."""

import gc
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from compiled_once import compiled_once
from effort import effort, effort_at_most
from hypothesis import settings
from random_cases import IS_THOROUGH

from tirlite.codegen import Effort

_TESTS = Path(__file__).parent
_OF_PASSES = ("analysis", "driver", "graph", "rewrite", "schedules")
# Where tests are not about how code is made.
_OF_KERNELS = ("analysis", "graph", "kernels", "mutation", "rewrite", "schedules")

# The same examples in every run and no clock: a test fails for what the code does, not for the draw or a busy machine.
settings.register_profile("tirlite", deadline=None, derandomize=True)
settings.load_profile("tirlite")

# Tests try the compiler, not what an earlier run has left. Those of the cache have a folder of their own.
os.environ["TIRLITE_CACHE"] = "0"

# A twelfth of the time of a run went into looking for garbage, of which there is little. What waits for the next look
# takes some hundred megabytes at most.
gc.set_threshold(2_000_000, 20, 50)


def pytest_configure(config: pytest.Config) -> None:
    """Processes that tests start find modules compiled, also where Python is told to leave no such files about."""
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
        folder = TemporaryDirectory(prefix="tirlite-tests-")
        config.add_cleanup(folder.cleanup)
        os.environ["PYTHONPYCACHEPREFIX"] = folder.name


def pytest_collection_finish(session: pytest.Session) -> None:
    """What is there before the first test stays to the end, so that no collection need go through it."""
    gc.freeze()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """What is left at the end is not gone through once more, which takes each worker some seconds."""
    gc.freeze()


@pytest.fixture(autouse=True)
def little_effort(request: pytest.FixtureRequest) -> Iterator[None]:
    """In tests of tirlite's own passes, LLVM's simplify, but neither vectorize nor unroll: that is half of the time.

    There, and in those of kernels, no text is compiled twice. Thorough tests leave LLVM all that it does for users.
    """
    folder = request.path.relative_to(_TESTS).parts[0]
    with ExitStack() as settings:
        if folder in _OF_PASSES and not IS_THOROUGH:
            settings.enter_context(effort_at_most(Effort.LITTLE))
        if folder in _OF_KERNELS and not IS_THOROUGH:
            settings.enter_context(compiled_once())
        yield


@pytest.fixture
def without_effort() -> Iterator[None]:
    """LLVM does not try hard meanwhile: code computes the same, and is there sooner."""
    with effort(Effort.NONE):
        yield
