"""Ctrl-C while the program is being loaded: it ends, and prints nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

# Sends the signal at the moment at which a module is looked for.
PROGRAM = """
import os, runpy, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == MODULE:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

MODULE = sys.argv.pop(1)
sys.modules.pop(MODULE, None)
sys.meta_path.insert(0, Interrupting())
runpy.run_module("tirlite", run_name="__main__")
"""


@pytest.mark.parametrize(
    ("module", "code"),
    [
        pytest.param("tirlite.cli.show", -signal.SIGINT, id="a command"),
        pytest.param("tirlite.rewrite", 130, id="what a command needs"),
        pytest.param("datetime", 130, id="what numpy needs, which calls it an ImportError"),
    ],
)
def test_ctrl_c_while_modules_are_loaded_prints_nothing(module: str, code: int) -> None:
    # Where the tests run in the background, the shell has the signal ignored.
    program = f"import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n{PROGRAM}"
    arguments = [sys.executable, "-c", program, module, "explain"]
    ended = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, "", "")


def test_ctrl_c_that_is_ignored_stays_ignored() -> None:
    program = f"import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n{PROGRAM}"
    arguments = [sys.executable, "-c", program, "tirlite.cli.show", "explain", "bad-step"]
    ended = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0
    assert ended.stdout.startswith("bad-step")
