"""What the cyclic collector is left with after work without it, in processes of their own: it is the process's."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import gc
from tirlite.collection import collection_paused

{before}
with collection_paused():
    {inside}
    kept = [[]]
print(any(each is kept for each in gc.get_objects(generation=2)), gc.get_freeze_count() > 0, gc.isenabled())
"""


@pytest.mark.parametrize(
    ("before", "inside", "is_old", "is_frozen"),
    [
        ("", "import colorsys", True, False),  # what modules leave is old, and not frozen
        ("", "pass", False, False),  # without modules, all stays young
        ("gc.freeze()", "import colorsys", False, True),  # what a program has frozen stays so
    ],
)
def test_what_modules_leave_is_old(before: str, inside: str, is_old: bool, is_frozen: bool) -> None:
    program = PROGRAM.format(before=before, inside=inside)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == [str(is_old), str(is_frozen), "True"]
