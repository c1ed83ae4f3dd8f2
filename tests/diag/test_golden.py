"""Each message as its user meets it: tests/messages/CODE.py fails with the text in CODE.err.

With TIRLITE_UPDATE_GOLDEN=1 in the environment, the texts are written anew.
"""

from __future__ import annotations

import os
import runpy
from pathlib import Path

import pytest

import tirlite as tl

FOLDER = Path(__file__).resolve().parent.parent / "messages"
CODES = [file.stem for file in sorted(FOLDER.glob("*.py"))]


@pytest.mark.parametrize("code", CODES)
def test_the_message_reads_as_recorded(code: str) -> None:
    if code.startswith("onnx-"):
        pytest.importorskip("onnx")
    source, golden = FOLDER / f"{code}.py", FOLDER / f"{code}.err"
    with pytest.raises(tl.TirliteError) as caught:
        runpy.run_path(str(source))
    text = str(caught.value).replace(f"{FOLDER}{os.sep}", "") + "\n"
    if os.environ.get("TIRLITE_UPDATE_GOLDEN"):
        golden.write_text(text, "utf-8")
    assert caught.value.code == code
    assert text == golden.read_text("utf-8")
