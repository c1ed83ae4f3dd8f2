"""Every construct of Python either means something in a kernel or is refused in words of its own, in `refused/*.err`.

`TIRLITE_UPDATE_GOLDEN=1 python -m pytest tests/dsl/test_refused.py` writes the files anew.
"""

from __future__ import annotations

import ast
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from every import every

import tirlite as tl

n = tl.dim("n")
GOLDEN = Path(__file__).parent / "refused"
HEADER = 'n = tl.dim("n")\n\n@tl.kernel\ndef f(x: tl.f32[n], y: tl.f32[n]):\n'
LOOP = "for i in range(n):\n    {}"

# For each kind of node a body with it, or None for what means something.
STATEMENTS: dict[type[ast.stmt], str | None] = {
    ast.FunctionDef: "def g(): pass",
    ast.AsyncFunctionDef: "async def g(): pass",
    ast.ClassDef: "class A: pass",
    ast.Return: "return x",
    ast.Delete: "del x",
    ast.AsyncFor: "async for i in x: pass",
    ast.AsyncWith: "async with x: pass",
    ast.Match: "match x:\n    case 1: pass",
    ast.Raise: "raise ValueError",
    ast.Try: "try:\n    pass\nexcept ValueError:\n    pass",
    ast.TryStar: "try:\n    pass\nexcept* ValueError:\n    pass",
    ast.Import: "import os",
    ast.ImportFrom: "from os import path",
    ast.Global: "global q",
    ast.Nonlocal: "nonlocal q",
    ast.Break: "break",
    ast.Continue: "continue",
    **dict.fromkeys((ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For, ast.While, ast.If, ast.With, ast.Assert)),
    **dict.fromkeys((ast.Expr, ast.Pass)),
    **({ast.TypeAlias: "type X = int"} if sys.version_info >= (3, 12) else {}),
}
EXPRESSIONS: dict[type[ast.expr], str | None] = {
    ast.NamedExpr: "(a := 3)",
    ast.Lambda: "lambda: 1",
    ast.Dict: "{1: 2}",
    ast.Set: "{1}",
    ast.List: "[1]",
    ast.Tuple: "(1, 2)",
    ast.ListComp: "[i for i in range(3)]",
    ast.SetComp: "{i for i in range(3)}",
    ast.DictComp: "{i: i for i in range(3)}",
    ast.GeneratorExp: "(i for i in range(3))",
    ast.Await: "await x",
    ast.Yield: "yield x",
    ast.YieldFrom: "yield from x",
    ast.JoinedStr: "f'{n}'",
    ast.Starred: "tl.exp(*x)",
    ast.Slice: "x[0:2]",
    **dict.fromkeys((ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.IfExp, ast.Compare, ast.Call, ast.Constant)),
    **dict.fromkeys((ast.Attribute, ast.Subscript, ast.Name)),
    ast.FormattedValue: None,  # inside of JoinedStr
    **({ast.TemplateStr: "t'{n}'", ast.Interpolation: None} if sys.version_info >= (3, 14) else {}),
}
OTHERS = {
    "MatMult": "x[0] = x @ y",
    "Is": "x[0] = x is y",
    "IsNot": "x[0] = x is not y",
    "In": "x[0] = 1 in x",
    "NotIn": "x[0] = 1 not in x",
    "ForElse": LOOP.format("pass") + "\nelse:\n    pass",
    "WhileElse": "while x[0] > 0:\n    pass\nelse:\n    pass",
    "WithOther": "with x:\n    pass",
    "SeveralTargets": "(a, b), c = 1, 2",
    "StarredTarget": "a, *b = 1, 2",
    "InChain": "x[0] = 1 < 2 in (2, 3)",
    "Keywords": "x[0] = tl.exp(**x)",
    "Bytes": "x[0] = b'a'",
    "Complex": "x[0] = 1j",
    "Ellipsis": "x[0] = ...",
    "None": "x[0] = None",
}
CASES = {
    **{kind.__name__: body for kind, body in STATEMENTS.items() if body is not None},
    **{kind.__name__: f"x[0] = {value}" for kind, value in EXPRESSIONS.items() if value is not None},
    **OTHERS,
}


def test_each_kind_of_node_is_thought_of() -> None:
    assert set(ast.stmt.__subclasses__()) == set(STATEMENTS)
    deprecated = {"Num", "Str", "Bytes", "NameConstant", "Ellipsis"}
    assert {kind for kind in ast.expr.__subclasses__() if kind.__name__ not in deprecated} == set(EXPRESSIONS)


@every("name", CASES)
def test_a_refused_construct_is_told_with_what_to_write_instead(name: str) -> None:
    body = "\n".join(f"    {line}" for line in CASES[name].split("\n"))
    with pytest.raises(tl.KernelError) as caught:
        tl.parse(f"{HEADER}{body}\n")
    text = str(caught.value) + "\n"
    assert text.startswith("error[not-in-kernels]")
    assert "= help: " in text
    file = GOLDEN / f"{name}.err"
    if os.environ.get("TIRLITE_UPDATE_GOLDEN"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, "utf-8")
    assert text == file.read_text("utf-8")


def _nowhere() -> None: ...


_nowhere.__module__ = None  # as of what is made at run time


def calls_nowhere(y: tl.f32[4]):
    y[0] = _nowhere()


def test_a_function_without_a_module_is_one_that_a_kernel_cannot_use() -> None:
    with pytest.raises(tl.KernelError, match="foreign-value.*`_nowhere` is a Python function"):
        tl.kernel(calls_nowhere)


NO_DIVISOR = 0


def test_no_integer_is_divided_by_a_constant_that_is_zero() -> None:
    with pytest.raises(tl.KernelError, match="an integer is divided by 0"):

        @tl.kernel
        def updated(x: tl.i8[n]):
            x[0] %= NO_DIVISOR

    with pytest.raises(tl.KernelError, match="an integer is divided by 0"):

        @tl.kernel
        def cut_off(x: tl.i64[n]):
            x[0] = tl.truncmod(x[0], tl.i64(0))

    @tl.kernel
    def guarded(x: tl.i64[n], y: tl.f32[n]):
        x[0] = x[0] // NO_DIVISOR if NO_DIVISOR != 0 else 7
        y[0] = y[0] // NO_DIVISOR

    x, y = np.ones(1, np.int64), np.ones(1, np.float32)
    guarded(x, y)
    assert (x.tolist(), y.tolist()) == ([7], [np.inf])
    tl.parse(str(tl.parse("@tl.kernel\ndef read(x: tl.i64[4]):\n    x[0] = x[0] // 0")))
