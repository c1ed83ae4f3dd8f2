"""Each message of compiling and calling, as its user meets it: tests/messages/CODE.py fails with the text in CODE.err.

With TIRLITE_UPDATE_GOLDEN=1 in the environment, the texts are written anew.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import runpy
from pathlib import Path

import pytest

import tirlite as tl
import tirlite.codegen
import tirlite.driver
import tirlite.runtime
from tirlite.diag import Message

FOLDER = Path(__file__).resolve().parent.parent / "messages"
PACKAGES = (tirlite.codegen, tirlite.runtime, tirlite.driver)
MODULES = [f"{package.__name__}.{each.name}" for package in PACKAGES for each in pkgutil.iter_modules(package.__path__)]
CODES = [
    value.code
    for name in MODULES
    for value in vars(importlib.import_module(name)).values()
    if isinstance(value, type) and issubclass(value, Message) and value.__module__ == name
]


@pytest.mark.parametrize("code", CODES)
def test_the_message_reads_as_recorded(code: str) -> None:
    source, golden = FOLDER / f"{code}.py", FOLDER / f"{code}.err"
    with pytest.raises(tl.TirliteError) as caught:
        runpy.run_path(str(source))
    text = str(caught.value).replace(f"{FOLDER}{os.sep}", "") + "\n"
    if os.environ.get("TIRLITE_UPDATE_GOLDEN"):
        golden.write_text(text, "utf-8")
    assert caught.value.code == code
    assert text == golden.read_text("utf-8")


def test_a_code_belongs_to_one_message() -> None:
    assert sorted(set(CODES)) == sorted(CODES)
