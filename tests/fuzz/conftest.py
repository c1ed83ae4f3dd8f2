"""How many random programs to run."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--programs", type=int, default=300, help="the number of random programs")
