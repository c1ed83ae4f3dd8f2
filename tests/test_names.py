"""The public names: those that load, those that `dir` lists and those that editors complete are the same."""

from __future__ import annotations

import ast
import pydoc
import subprocess
import sys
from pathlib import Path

import tirlite as tl

ROOT = Path(__file__).resolve().parent.parent
STUB = ast.parse((ROOT / "tirlite" / "__init__.pyi").read_text("utf-8"))


def stub_names() -> set[str]:
    nodes = list(ast.walk(STUB))
    imported = {a.asname for node in nodes if isinstance(node, ast.ImportFrom) for a in node.names if a.asname}
    assigned = {each.id for node in STUB.body if isinstance(node, ast.Assign) for each in node.targets}
    bodies = [*STUB.body, *(each for node in STUB.body if isinstance(node, ast.If) for each in node.orelse)]
    defined = {node.name for node in bodies if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    return {name for name in imported | assigned | defined if not name.startswith("_") and name != "MYPY"}


def listed() -> set[str]:
    for node in STUB.body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


def test_names_load_and_complete() -> None:
    assert stub_names() == listed() == set(dir(tl)) == set(tl.__all__)
    assert all(getattr(tl, name) is not None for name in dir(tl))


def test_each_word_says_what_it_is() -> None:
    words = [node for node in STUB.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    assert [node.name for node in words if not ast.get_docstring(node)] == []
    shown = {name: pydoc.render_doc(getattr(tl, name), renderer=pydoc.plaintext) for name in tl.__all__}
    assert [name for name, text in shown.items() if "inside kernels alone" in text] == []
    assert "tl.exp(x, *, fast=False)\n    \n    e to the power x." in shown["exp"]


def test_the_options_of_a_kernel_are_explained_where_help_shows_them() -> None:
    from tirlite.record import parts_of
    from tirlite.rewrite.options import Options

    untold = {"webs", "check", "cache", "engine"}
    for function in (tl.compile, tl.kernel):
        text = pydoc.render_doc(function, renderer=pydoc.plaintext)
        assert [name for name in parts_of(Options) if f"`{name}`" not in text and name not in untold] == []


def test_a_program_with_kernels_passes_a_strict_type_checker(tmp_path: Path) -> None:
    program = """
from typing import Annotated

import tirlite as tl

n = tl.dim("n", max=64)


@tl.inline
def half(value):
    return value / 2


def build() -> tl.PrimFunc:
    return tl.parse("@tl.kernel\\ndef f(x: tl.f32[4]):\\n    pass")


@tl.kernel
@tl.allow("contract")
def smooth(x: tl.f32[n], y: tl.out[tl.f32[n]], gain: tl.f32):
    row = tl.alloc(tl.f32[n])
    for i in range(1, n - 1):
        row[i] = (x[i - 1] + x[i] + x[i + 1]) / 3
    for i in range(n):
        y[i] = half(row[i]) * gain


@tl.kernel
def scaled(x: Annotated[tl.array, tl.f32[n]], by: Annotated[float, tl.f32] = 2.0) -> None:
    for i in range(n):
        x[i] = x[i] * by


problem = tl.plan.Problem([tl.plan.Request("a", 4, (0, 2)), tl.plan.Request("b", 4 * n, [(0, 1), (2, 3)])])
print(smooth([1.0], gain=2.0).shape, smooth.plan.total)
made: tl.Kernel = tl.compile(build(), strategy="share")
rewritten = tl.passes.StorageRewrite(strategy="share")(build())
print(made.plan.total, rewritten, tl.exp(n), tl.alloc(tl.f32[n], scope="local"))
"""
    file = tmp_path / "program.py"
    file.write_text(program, "utf-8")
    # It takes what a run over the package has left in the checkout, if there was one.
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(file)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stdout
