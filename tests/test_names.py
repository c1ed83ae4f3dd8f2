"""The public names: those that load, those that `dir` lists and those that editors complete are the same."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import tirlite as tl

ROOT = Path(__file__).resolve().parent.parent
STUB = ast.parse((ROOT / "tirlite" / "__init__.pyi").read_text("utf-8"))


def stub_names() -> set[str]:
    imported = {a.asname for node in STUB.body if isinstance(node, ast.ImportFrom) for a in node.names if a.asname}
    assigned = {each.id for node in STUB.body if isinstance(node, ast.Assign) for each in node.targets}
    functions = {node.name for node in STUB.body if isinstance(node, ast.FunctionDef)}
    return {name for name in imported | assigned | functions if not name.startswith("_")}


def test_names_load_and_complete() -> None:
    assert stub_names() == set(dir(tl)) == set(tl.__all__)
    assert all(getattr(tl, name) is not None for name in dir(tl))


def test_each_word_says_what_it_is() -> None:
    words = [node for node in STUB.body if isinstance(node, ast.FunctionDef)]
    assert [node.name for node in words if not ast.get_docstring(node)] == []


def test_a_program_with_kernels_passes_a_strict_type_checker(tmp_path: Path) -> None:
    program = """
import tirlite as tl

n = tl.dim("n", max=64)


@tl.inline
def half(value: tl.ir.Expr) -> tl.ir.Expr:
    return value / 2


def build() -> tl.PrimFunc:
    return tl.parse("@tl.kernel\\ndef f(x: tl.f32[4]):\\n    pass")


made: tl.Kernel = tl.compile(build(), strategy="share")
rewritten = tl.passes.StorageRewrite(strategy="share")(build())
print(made.plan.total, rewritten, tl.exp(n), tl.alloc(tl.f32[n], scope="local"))
"""
    file = tmp_path / "program.py"
    file.write_text(program, "utf-8")
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), str(file)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stdout
