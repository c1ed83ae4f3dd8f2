"""Which random programs to run, and how."""

import pytest
from random_cases import IS_THOROUGH


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--programs", type=int, default=2000 if IS_THOROUGH else 60, help="the number of random programs")
    parser.addoption("--views", type=int, default=4 if IS_THOROUGH else 2, help="kernels called with random views")
    parser.addoption("--full-cross", action="store_true", help="each random program in all setups")
    parser.addoption("--seed", type=int, default=None, help="shrink the random program of this seed, if it fails")
