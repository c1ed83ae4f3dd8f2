"""`show` prints a function and marks a node of it; notebooks get it as HTML."""

from __future__ import annotations

import pytest

import tirlite as tl
from tirlite.ir import Add, Allocate, Buffer, For, IfThenElse, Node, Store, Var, walk

TEXT = """\
n = tl.dim("n")

@tl.kernel
def f(x: tl.f32[n], y: tl.f32[n]):
    t = tl.alloc(tl.f32[n])
    for i in range(n):
        t[i] = (x[i] + y[i]) * tl.f32(2.0)
        if i == 0:
            y[i] = t[i]
        elif i == 1:
            y[i] = x[i]"""
FUNC = tl.parse(TEXT)


def first(kind: type[Node], number: int = 0) -> Node:
    return [node for node in walk(FUNC) if isinstance(node, kind)][number]


def marked(mark: Node | Buffer, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Each marked line as it stands between the carets' ends."""
    FUNC.show(mark)
    lines = capsys.readouterr().out.splitlines()
    found = []
    for above, line in zip(lines, lines[1:], strict=False):
        if line.strip() and set(line) <= set(" ^"):
            found.append(above[line.index("^") : len(line)])
    return found


def test_without_a_mark_the_program_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    FUNC.show()
    assert capsys.readouterr().out == f"{TEXT}\n"


@pytest.mark.parametrize(
    ("kind", "number", "text"),
    [
        (Add, 0, "(x[i] + y[i])"),
        (For, 0, "for i in range(n):"),
        (Allocate, 0, "t = tl.alloc(tl.f32[n])"),
        (Store, 1, "y[i] = t[i]"),
        (IfThenElse, 0, "if i == 0:"),
        (IfThenElse, 1, "elif i == 1:"),
    ],
)
def test_a_node_is_marked(kind: type[Node], number: int, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert marked(first(kind, number), capsys) == [text]


def test_a_buffer_and_a_variable_are_marked_wherever_they_stand(capsys: pytest.CaptureFixture[str]) -> None:
    FUNC.show(first(Allocate).buffer)
    assert capsys.readouterr().out.count("^") == 3
    FUNC.show(first(For).var)
    assert capsys.readouterr().out.count("^") == 1 + 3 + 1 + 2 + 1 + 2


def test_a_node_from_elsewhere_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    FUNC.show(Var("stranger"))
    assert capsys.readouterr().out == f"{TEXT}\n# the node is not in this function\n"


def test_a_kernel_shows_its_function(capsys: pytest.CaptureFixture[str]) -> None:
    tl.compile(FUNC).show()
    assert capsys.readouterr().out == f"{TEXT}\n"


def test_notebooks_get_html_without_markup_from_the_program() -> None:
    shown = FUNC._repr_html_()
    assert "<pre" in shown
    assert "tl.kernel" in shown
    kernel = tl.compile(FUNC)._repr_html_()
    for part in ("as written", "after the passes", "storage plan: 4*n bytes", "<svg"):
        assert part in kernel
    assert "&lt;Kernel f(x: f32[n], y: f32[n])&gt;" in kernel


def test_notebooks_are_told_what_is_wrong_with_a_plan() -> None:
    lines = ("@tl.kernel", "def g(x: tl.f32[8]):", '    t = tl.alloc(tl.f32[8], scope="local.UB")', "    t[0] = x[0]")
    shown = tl.compile(tl.parse("\n".join(lines)))._repr_html_()
    assert "error[unknown-memory]" in shown
    assert "as written" in shown
