"""Settings for tests of what measures: figures are there at once, and no test asserts a time."""

from collections.abc import Iterator

import pytest
from effort import effort

from tirlite.codegen import Effort


@pytest.fixture(autouse=True)
def no_effort() -> Iterator[None]:
    """LLVM does not optimise what is measured in this process."""
    with effort(Effort.NONE):
        yield
