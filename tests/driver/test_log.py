"""What is compiled is told to `logging`, where a program listens."""

from __future__ import annotations

import logging
import subprocess
import sys

import numpy as np
import pytest

import tirlite as tl

n = tl.dim("n")


@tl.kernel
def doubled(x: tl.f32[n], y: tl.out[tl.f32[n]]):
    for i in range(n):
        y[i] = 2 * x[i]


def test_a_compiled_function_has_a_line_with_its_stages(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "tirlite"):
        kernel = tl.compile(doubled)
        kernel(np.ones(3, np.float32))
        kernel(np.ones(4, np.float32))
    (record,) = [each for each in caplog.records if each.name == "tirlite"]
    assert record.levelno == logging.DEBUG
    assert record.getMessage().startswith("compiled doubled (")
    assert "front end" not in record.getMessage()
    assert " ms" in record.getMessage()


def test_nothing_is_told_and_logging_not_loaded_otherwise() -> None:
    program = "import sys, tirlite as tl; import tirlite.driver.build as log; log.log_compiled('f', 'usual', [], '')"
    ran = subprocess.run(
        [sys.executable, "-c", program + "; print('logging' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert (ran.stdout, ran.stderr) == ("False\n", "")
