"""Each message of the command line, as its user meets it: the command beside it fails with tests/messages/CODE.err.

With TIRLITE_UPDATE_GOLDEN=1 in the environment, the texts are written anew.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
from pathlib import Path

import pytest

import tirlite.bench
import tirlite.cli
import tirlite.cli.main
from tirlite.bench.main import main
from tirlite.diag import InternalError, Message

GOLDEN = Path(__file__).resolve().parent.parent / "messages"
MODULES = [
    f"{package.__name__}.{module.name}"
    for package in (tirlite.cli, tirlite.bench)
    for module in pkgutil.iter_modules(package.__path__)
]
CODES = [
    value.code
    for name in MODULES
    for value in vars(importlib.import_module(name)).values()
    if isinstance(value, type)
    and issubclass(value, Message)
    and value.__module__ == name
    and hasattr(value, "title")
    # Faults of tirlite have no command that shows them.
    and value.raises is not InternalError
]

KERNEL = "\n\n@tl.kernel\ndef {name}(x: tl.f32[1]):\n    x[0] = 0\n"
FILES = {
    "one.py": "import tirlite as tl" + KERNEL.format(name="smooth"),
    "two.py": "import tirlite as tl" + KERNEL.format(name="smooth") + KERNEL.format(name="sharpen"),
    "failing.py": 'import tirlite as tl\n\nraise RuntimeError("no luck today")\n',
    "lifetimes.csv": "id,lower,upper,size\na,0,2,8\n",
    "dot.pgm": "P2 1 1 255 7",
    "colour.pgm": "P6 1 1 255 abc",
}
MODEL = '<ir_version: 8, opset_import: ["": 18]> net (float[n] x) => (float[n] y) { y = Neg(x) }'
COMMANDS = {
    "cannot-write": "demo dot.pgm --out nowhere/corners.pgm",
    "failed-file": "show failing.py:smooth",
    "bad-plan-option": "plan lifetimes.csv --align 3",
    "bad-run-option": "run net.onnx --dim batch=many",
    "needs-pillow": "demo dot.pgm --out corners.png",
    "long-file-name": f"demo {'x' * 300}",
    "in-checkout": "bench compile --json",
    "no-kernel-file": "show won.py:smooth",
    "no-lifetimes-file": "plan lifetime.csv",
    "no-instances": "bench plans --instances nowhere",
    "no-kernel-named": "show one.py:smoth",
    "no-tables": "plan empty",
    "not-python-file": "show lifetimes.csv",
    "one-plan-only": "plan . --html plan.html",
    "too-little-memory": f"run vast.onnx --dim n={1 << 46}",
    "unknown-code": "explain unknwn-name",
    "unknown-format": "demo dot.pgm --out corners",
    "unknown-pass": "show one.py:smooth --after normalise",
    "unreadable-picture": "demo colour.pgm",
    "which-kernel": "show two.py",
}


@pytest.mark.parametrize("code", CODES)
def test_the_message_reads_as_recorded(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    if "vast.onnx" in COMMANDS[code]:
        parser = pytest.importorskip("onnx.parser")
        (tmp_path / "vast.onnx").write_bytes(parser.parse_model(MODEL).SerializeToString())
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    for module in ("PIL", "PIL.Image"):
        monkeypatch.setitem(sys.modules, module, None)
    run = tirlite.cli.main.main if code == "in-checkout" else main
    assert run(COMMANDS[code].split()) == 2
    shown = capsys.readouterr()
    golden = GOLDEN / f"{code}.err"
    if os.environ.get("TIRLITE_UPDATE_GOLDEN"):
        golden.write_text(shown.err, "utf-8")
    assert shown.out == ""
    assert shown.err.startswith(f"error[{code}]: ")
    assert shown.err == golden.read_text("utf-8")
