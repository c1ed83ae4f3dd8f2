"""What the kernel language means, construct by construct, as the IR that it becomes."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from every import every

import tirlite as tl
from tirlite import dsl, f32


def value(source: str, result: str = "f64") -> str:
    """The printed IR of an expression over x: f32[n], i: i32[n], b: u8[n], c: bool[n], k: i64."""
    func = tl.parse(
        'n = tl.dim("n")\n@tl.kernel\n'
        "def f(x: tl.f32[n], i: tl.i32[n], b: tl.u8[n], c: tl.bool_[n], k: tl.i64, r: tl.f64[n]):\n"
        f"    tl.call_extern('handle', 'f', {source})"
    )
    return str(func).partition('"f", ')[2][:-1]


@every(
    "source, printed",
    [
        # Literals are weak; types promote as in NumPy 2.
        ("x[0] + 1", "x[0] + tl.f32(1.0)"),
        ("1 / x[0]", "tl.f32(1.0) / x[0]"),
        ("i[0] + 1", "i[0] + tl.i32(1)"),
        ("i[0] + 1.0", "tl.f64(i[0]) + 1.0"),
        ("i[0] + True", "i[0] + tl.i32(1)"),
        ("c[0] + 1", "tl.i64(c[0]) + 1"),
        ("i[0] + x[0]", "tl.f64(i[0]) + tl.f64(x[0])"),
        ("b[0] + x[0]", "tl.f32(b[0]) + x[0]"),
        ("b[0] + i[0]", "tl.i32(b[0]) + i[0]"),
        ("k + i[0]", "k + tl.i64(i[0])"),
        ("i[0] / i[0]", "tl.f64(i[0]) / tl.f64(i[0])"),
        ("i[0] // 2", "i[0] // tl.i32(2)"),
        ("x[0] % 2", "x[0] % tl.f32(2.0)"),
        ("x[0] ** 3", "tl.pow(x[0], tl.f32(3.0))"),
        # As NumPy has it.
        ("x[0] ** 2", "x[0] * x[0]"),
        ("(x[0] - i[0]) ** 2.0", "(tl.f64(x[0]) - tl.f64(i[0])) * (tl.f64(x[0]) - tl.f64(i[0]))"),
        ("tl.exp(x[0]) ** 2", "tl.let(value, tl.exp(x[0]), value * value)"),
        ("x[0] ** 0.5", "tl.sqrt(x[0])"),
        ("x[0] ** -1", "tl.f32(1.0) / x[0]"),
        ("b[0] << i[0]", "tl.i32(b[0]) << i[0]"),
        ("~i[0] & 3 | 1 ^ 2", "~i[0] & tl.i32(3) | tl.i32(3)"),
        ("-x[0]", "-x[0]"),
        ("+x[0]", "x[0]"),
        ("not c[0]", "not c[0]"),
        # Literals among themselves are Python's matter.
        ("x[0] * (1 / 3)", "x[0] * tl.f32(0.33333334)"),
        ("2 ** 62 + 1", "4611686018427387905"),
        ("-7 // 2", "-4"),
        ("min(3, 2)", "2"),
        ("-0.0", "-0.0"),
        ("1 < 2", "True"),
        # Chains compute their middle once, but for indices.
        ("0 <= k < n", "0 <= k and k < n"),
        ("0 <= k - 1 < n", "0 <= k - 1 and k - 1 < n"),
        ("0 <= k // 2 < n", "tl.let(middle, k // 2, 0 <= middle and middle < n)"),
        ("0 <= x[0] < 1", "tl.let(middle, x[0], tl.f32(0.0) <= middle and middle < tl.f32(1.0))"),
        ("0 < k < n == 3", "0 < k and (k < n and n == 3)"),
        ("c[0] and k < 3 or not c[1]", "c[0] and k < 3 or not c[1]"),
        ("x[0] if c[0] else 0", "x[0] if c[0] else tl.f32(0.0)"),
        ("1 if c[0] else 0.5", "1.0 if c[0] else 0.5"),
        # Functions.
        ("min(x[0], 1, k)", "min(min(tl.f64(x[0]), 1.0), tl.f64(k))"),
        ("max(i[0], b[0])", "max(i[0], tl.i32(b[0]))"),
        ("abs(i[0])", "tl.abs(i[0])"),
        ("tl.exp(x[0])", "tl.exp(x[0])"),
        ("tl.exp(i[0])", "tl.exp(tl.f64(i[0]))"),
        ("tl.sqrt(2)", "tl.sqrt(2.0)"),
        ("tl.fma(x[0], 2, 1)", "tl.fma(x[0], tl.f32(2.0), tl.f32(1.0))"),
        ("tl.isnan(x[0])", "tl.isnan(x[0])"),
        ("tl.truncdiv(i[0], 2)", "tl.truncdiv(i[0], tl.i32(2))"),
        ("tl.select(c[0], x[0], 0)", "tl.select(c[0], x[0], tl.f32(0.0))"),
        ("tl.if_then_else(c[0], x[0], 0)", "x[0] if c[0] else tl.f32(0.0)"),
        ("tl.let(t, k + 1, t * t)", "tl.let(t, k + 1, t * t)"),
        # Casts.
        ("tl.f32(k)", "tl.f32(k)"),
        ("tl.f32(1)", "tl.f32(1.0)"),
        ("int(x[0])", "tl.i64(x[0])"),
        ("bool(k)", "tl.bool_(k)"),
        ("float(2)", "2.0"),
        ("tl.f32('nan')", 'tl.f32("nan")'),
        # Buffers and their shapes; vectors.
        ("x.shape[0]", "n"),
        ("x.dtype(3)", "tl.f32(3.0)"),
        ("x[tl.ramp(k, 1, 4)] * 2", "x[tl.ramp(k, 1, 4)] * tl.broadcast(tl.f32(2.0), 4)"),
        ("x[tl.checked(k)]", "x[tl.checked(k)]"),
        (
            "x[tl.masked(tl.ramp(k, 1, 4), tl.ramp(k, 1, 4) < 3)]",
            "x[tl.masked(tl.ramp(k, 1, 4), tl.ramp(k, 1, 4) < tl.broadcast(3, 4))]",
        ),
        ("tl.address_of(x[k])", "tl.address_of(x[k])"),
        ("tl.access_ptr(x, 0, n, 'r')", 'tl.access_ptr(x, 0, n, "r")'),
        ("x", "x"),
    ],
)
def test_expressions(source: str, printed: str) -> None:
    assert value(source) == printed


def body_of(source: str) -> str:
    lines = "\n".join(f"    {line}" for line in source.strip().splitlines())
    text = f'n = tl.dim("n")\n@tl.kernel\ndef f(x: tl.f32[n], i: tl.i32[n], s: tl.f32[()], k: tl.i64):\n{lines}'
    return "\n".join(line[4:] for line in str(tl.parse(text)).splitlines()[4:])


@every(
    "source, printed",
    [
        ("x[0] = 1", "x[0] = tl.f32(1.0)"),
        ("x[0] = k", "x[0] = tl.f32(k)"),
        ("i[0] = k", "i[0] = tl.i32(k)"),
        ("x[i[0]] = 1 < k", "x[i[0]] = tl.f32(1 < k)"),
        ("s[()] += x[0]", "s[()] = s[()] + x[0]"),
        ("i[k] <<= 2", "i[k] = i[k] << tl.i32(2)"),
        ("for j in range(3):\n    pass", "for j in range(3):\n    pass"),
        ("for j in range(i[0], k):\n    pass", "for j in range(tl.i64(i[0]), k):\n    pass"),
        ("for j in range(k, 0, -1):\n    pass", "for j in range(k, 0, -1):\n    pass"),
        ("for j in tl.parallel(1, n):\n    pass", "for j in tl.parallel(1, n):\n    pass"),
        ("for j in tl.vectorized(8):\n    pass", "for j in tl.vectorized(8):\n    pass"),
        ("for j in tl.thread('threadIdx.x', 32):\n    pass", 'for j in tl.thread("threadIdx.x", 32):\n    pass'),
        ("while k < 3:\n    x[0] = 1.5", "while k < 3:\n    x[0] = tl.f32(1.5)"),
        ("if k < 3:\n    pass\nelif k < 4:\n    pass", "if k < 3:\n    pass\nelif k < 4:\n    pass"),
        ("assert k > 0", 'assert k > 0, "k > 0"'),
        ("assert k > 0, 'positive'", 'assert k > 0, "positive"'),
        ("tl.barrier('shared')", 'tl.barrier("shared")'),
        ("a = tl.alloc(tl.i8[n, 4], scope='local')", 'a = tl.alloc(tl.i8[n, 4], scope="local")'),
        ("a = tl.view(x, tl.u8[4 * n])", "a = tl.view(x, tl.u8[4 * n])"),
        ("a = tl.view(x, tl.u8[4], 8)", "a = tl.view(x, tl.u8[4], byte_offset=8)"),
        ("'text'\npass\nreturn", "pass"),
    ],
)
def test_statements(source: str, printed: str) -> None:
    assert body_of(source) == printed


REFUSED = """
def g(): pass
class C: pass
return 1
del x
with open("f"): pass
match k: pass
raise k
try: pass
import math
global k
break
(k := 3)
x[0] = (lambda: 1)()
x[0] = {1: 2}
x[0] = [1]
x[0] = min(x[j] for j in range(n))
x[0] = f"{k}"
x[:3] = 1
x[0] = x[1] @ x[2]
x[0] = k is None
x[0] = k in x
x[0] = k in range(3)
x[0] = 1j
x[0] = None
(a, b), c = 1, 2
for j in range(3): pass
else: pass
for j, l in range(3): pass
while k > 3: pass
else: pass
x[0] = min(*x)
"""


def statements(text: str) -> list[str]:
    """One refused statement each; an `else` belongs to the line before."""
    return text.strip().replace("\nelse", "\x00else").splitlines()


@every("source", statements(REFUSED))
def test_the_rest_of_python_is_refused(source: str) -> None:
    if source.startswith(("match", "try")):
        source += {"m": "\n    case _: pass", "t": "\nexcept: pass"}[source[0]]
        source = source.replace(": pass\n    case", ":\n    case")
    with pytest.raises(tl.KernelError) as caught:
        body_of(source.replace("\x00", "\n"))
    assert caught.value.code == "not-in-kernels"
    assert "--> <text>:" in str(caught.value)
    assert "= help: " in str(caught.value)


def test_independent_mistakes_are_reported_together() -> None:
    with pytest.raises(tl.KernelError) as caught:
        body_of("a = colour\nx[0] = a\nfor j in nothing(3):\n    x[j] = tl.sqr(2)\nx[0, 0] = 1\nx[0] = a + j")
    found = [(message.code, message.span.line - 3) for message in caught.value.messages]
    assert found == [
        ("unknown-name", 1),
        ("unknown-name", 3),
        ("unknown-word", 4),
        ("index-count", 5),
    ]


def test_no_more_than_twenty_mistakes_are_listed() -> None:
    with pytest.raises(tl.KernelError) as caught:
        body_of("\n".join(["x[0] = colour"] * 50))
    assert len(caught.value.messages) == 20


SCALE = 0.5
TYPED = np.float32(0.25)


def test_names_come_from_all_around() -> None:
    count, offset = tl.dim("count", max=64), np.int8(3)

    def kernel(x: f32[count], y: tl.out[f32[count]]):
        for i in range(count):
            y[i] = x[i] * SCALE + TYPED * math.pi + offset

    func = dsl.translate(kernel, {"f32": f32, "count": count}).func
    assert str(func).splitlines()[-1].strip() == (
        "y[i] = x[i] * tl.f32(0.5) + tl.f32(0.25) * tl.f32(3.1415927) + tl.f32(tl.i8(3))"
    )
    assert func.dims == (count,)
    assert func.outputs == (func.params[1],)


def test_numpy_types_and_pythons_are_types() -> None:
    n = tl.dim("n")

    def kernel(x: tl.f32[n], a: float, b: int, c: np.uint8):
        x[0] = np.float32(a) + np.int16(b) + c

    func = dsl.translate(kernel, locals()).func
    assert str(func).endswith("c: tl.u8):\n    x[0] = tl.f32(a) + tl.f32(tl.i16(b)) + tl.f32(c)")


def test_statements_know_their_lines() -> None:
    n = tl.dim("n")

    def kernel(x: tl.f32[n], k: tl.i64):  # a name of two bytes shifts no column
        é = 3 + k
        x[é] = é+é  # fmt: skip

    func = dsl.translate(kernel, locals()).func
    first = kernel.__code__.co_firstlineno
    spans = [stmt.span for stmt in func.body.stmts]
    assert [(span.line - first, span.column, span.end_column) for span in spans] == [(1, 8, 17), (2, 8, 18)]
    assert spans[1].source.name == __file__
    assert spans[1].source.line(spans[1].line)[8:18] == "x[é] = é+é"


def test_words_outside_of_a_kernel_are_refused() -> None:
    with pytest.raises(tl.KernelError, match="outside-kernel"):
        tl.parallel(3)
    with pytest.raises(tl.KernelError, match=r"tl\.f32 means something only inside a kernel"):
        tl.f32(3)


def test_text_is_never_executed() -> None:
    for text in ("__import__('os')", "n = open('f')", "import os", "print(open('f'))"):
        with pytest.raises(tl.KernelError):
            tl.parse(text)
    with pytest.raises(tl.KernelError, match="unknown-name"):
        tl.parse("@tl.kernel\ndef f(x: tl.f32[__import__('os').getpid()]):\n    pass")


def test_whether_a_view_is_fresh_is_true_or_false() -> None:
    text = "n = tl.dim('n')\n\n@tl.kernel\ndef f(x: tl.f32[n]):\n    v = tl.view(x, tl.f32[n], fresh=1)"
    with pytest.raises(tl.KernelError, match=r"`?fresh`? is True or False|fresh=1"):
        tl.parse(text)


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
def test_fast_functions_print_parse_and_run_as_they_are_interpreted(dtype: str) -> None:
    kind = getattr(tl, dtype)
    by_request = True

    @tl.kernel
    def some(x: kind[9], y: tl.out[kind[9]]):
        for i in range(9):
            y[i] = tl.sin(x[i], fast=True) + tl.atan2(x[i], 2, fast=by_request) - tl.exp(x[i], fast=False)

    text = str(some.ir)
    assert "tl.sin(x[i], fast=True)" in text
    assert "tl.exp(x[i])" in text
    assert tl.structural_equal(tl.parse(text), some.ir)
    assert not tl.structural_equal(tl.parse(text.replace(", fast=True", "")), some.ir)
    x = np.linspace(-3, 3, 9).astype(kind.numpy)
    assert some(x).tobytes() == some.interpret(x).tobytes()


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("tl.sin(x[0], fast=x[0])", "tl.sin takes `fast=True` or `fast=False` here, not an expression of type f32"),
        ("tl.sin(x[0], fats=True)", "did you mean `fast`?"),
        ("tl.sqrt(x[0], fast=True)", "tl.sqrt has no keyword `fast`"),
    ],
)
def test_what_cannot_be_asked_for_fast_is_refused(call: str, told: str) -> None:
    with pytest.raises(tl.KernelError, match=re.escape(told)):
        tl.parse(f"@tl.kernel\ndef f(x: tl.f32[4]):\n    x[1] = {call}\n")


@pytest.mark.parametrize("call", ["repr(x)", "hash(x)"])
def test_what_python_has_and_a_kernel_has_not_is_no_misspelling(call: str) -> None:
    with pytest.raises(tl.KernelError, match="of Python's builtins a kernel has range, len, min, max"):
        tl.parse(f"@tl.kernel\ndef f(x: tl.f32[4]):\n    x[0] = {call}\n")


def test_a_shape_alone_is_no_type_of_a_temporary() -> None:
    with pytest.raises(tl.KernelError, match="a type with its shape, as in `tl.alloc.*not a shape alone"):
        tl.parse("@tl.kernel\ndef f(x: tl.f32[4]):\n    t = tl.alloc((4,), dtype=tl.f32)\n")


def test_a_lambda_is_no_inline_function() -> None:
    with pytest.raises(tl.KernelError, match="a lambda cannot be an inline function"):
        tl.inline(lambda v: v * 2)


@tl.kernel
def nested_without_names(x: tl.f32[3, 4], y: tl.out[tl.i64[2]]):
    y[0] = 0
    y[1] = 0
    for _ in range(3):
        for _ in range(4):
            for _ in tl.static(range(2)):
                y[0] += 1
        for _ in range(9):
            y[1] += _
            if _ == 2:
                break
    for _ in tl.static(range(2)):
        for _ in range(3):
            y[1] += 100 * _


def test_a_loop_may_hide_the_variable_of_one_around_that_nothing_reads() -> None:
    x = np.zeros((3, 4), np.float32)
    assert [*nested_without_names(x)] == [*nested_without_names.interpret(x)] == [24, 3 * 3 + 2 * 300]


@pytest.mark.parametrize(
    ("inside", "code"),
    [
        ("x[i] = 1\n    for i in range(2):\n        pass", "fixed-name"),
        ("while x[i] > 0:\n        for i in range(2):\n            pass", "fixed-name"),
        ("for i in range(i):\n        pass", "fixed-name"),
        ("for i in range(2):\n        i += 1", "fixed-name"),
        ("for i in tl.static(range(2)):\n        pass\n    x[i] = 0", "fixed-name"),
    ],
)
def test_a_variable_that_is_read_is_not_hidden(inside: str, code: str) -> None:
    with pytest.raises(tl.KernelError) as caught:
        body_of(f"for i in range(n):\n    {inside}")
    assert caught.value.code == code
