"""What is kept in front of the cache of code: a kernel is translated again only where what it is made of changed."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import tirlite as tl
from tirlite.driver import manifest
from tirlite.driver.front import KnownFront
from tirlite.ir import Buffer, DType, FloatImm, IntImm, Var
from tirlite.record import parts_of
from tirlite.runtime.cache import find, keep
from tirlite.sizes import Dim, Poly

TEXT = """
import math
import tirlite as tl
import settings

n = tl.dim("n")
SCALE = 2
UNUSED = []

@tl.inline
def bent(v):
    return v * FACTOR + other(v)

@tl.inline
def other(v, by=1):
    return v - by

FACTOR = 3

def make(offset):
    @tl.kernel
    def f(x: tl.f32[n], y: tl.out[tl.f32[n]]):
        for i in range(n):
            y[i] = bent(x[i]) * SCALE + offset + settings.BIAS + math.floor(math.pi)
    return f

f = make(10)
"""
X = np.arange(4, dtype=np.float32)


def expected(*, scale: float = 2, factor: float = 3, offset: float = 10, bias: float = 5, by: float = 1) -> np.ndarray:
    return (X * factor + (X - by)) * scale + offset + bias + 3


@pytest.fixture
def define(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., ModuleType]:
    """Runs a text as a module of its own, as a new process would."""
    monkeypatch.setenv("TIRLITE_CACHE", str(tmp_path / "cache"))
    settings = ModuleType("settings")
    settings.BIAS = 5
    monkeypatch.setitem(sys.modules, "settings", settings)
    counted = [0]

    def run(text: str = TEXT, *changes: tuple[str, str]) -> ModuleType:
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        counted[0] += 1
        path = tmp_path / f"module{counted[0]}.py"
        path.write_text(text)
        module = ModuleType("around")
        exec(compile(text, str(path), "exec"), vars(module))
        return module

    return run


def is_known(kernel: tl.Kernel) -> bool:
    return isinstance(kernel._front, KnownFront)


def test_what_is_known_is_not_translated(define: Callable[..., ModuleType], monkeypatch: pytest.MonkeyPatch) -> None:
    first = define().f
    assert not is_known(first)
    assert (first(X) == expected()).all()
    second = define().f
    assert is_known(second)
    assert str(second) == str(first)
    assert second.content == first.content
    assert (second(X) == expected()).all()
    assert second._front._func is None
    # More than the head is needed for all of these.
    assert tl.structural_equal(second.ir, first.ir)
    assert second.captures == first.captures
    assert (define().f(np.repeat(X, 2)[::2]) == expected()).all()
    assert (define().f.interpret(X) == expected()).all()
    assert (pickle.loads(pickle.dumps(define().f))(X) == expected()).all()
    assert str(define().f.lowered) == str(first.lowered)
    assert (define().f(X[:0])).shape == (0,)


CHANGES: dict[str, tuple[tuple[str, str], dict[str, float]]] = {
    "a global": (("SCALE = 2", "SCALE = 4"), {"scale": 4}),
    "its type": (("SCALE = 2", "SCALE = 2.0"), {}),
    "a type of NumPy": (("SCALE = 2", "import numpy as np; SCALE = np.float32(2)"), {}),
    "a global of an inline function": (("FACTOR = 3", "FACTOR = 7"), {"factor": 7}),
    "an inline function inside of one": (("return v - by", "return v - by - by"), {"by": 2}),
    "its default": (("by=1", "by=3"), {"by": 3}),
    "a dim": (('tl.dim("n")', 'tl.dim("n", max=64)'), {}),
    "a closure": (("make(10)", "make(20)"), {"offset": 20}),
    "the type of an array": (("y: tl.out[tl.f32[n]]", "y: tl.out[tl.f64[n]]"), {}),
    "a promise": (("y: tl.out[tl.f32[n]]", "y: tl.out[tl.buffer(tl.f32[n], alignment=32)]"), {}),
    "a line above": (("UNUSED = []", "UNUSED = []\n"), {}),
    "math": (("import math\n", "import math\nfloor = math.floor\n"), {}),
}


def test_what_changed_is_translated_again(define: Callable[..., ModuleType]) -> None:
    define()
    for name, (change, numbers) in CHANGES.items():
        module = define(TEXT, change)
        assert not is_known(module.f), name
        np.testing.assert_array_equal(module.f(X), expected(**numbers), name)
    assert is_known(define().f)


def test_names_of_the_same_text_are_told_apart(
    define: Callable[..., ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the surroundings differ here, not the text of the file."""
    module = define()
    for offset in (1, 2, 3):
        assert not is_known(module.make(offset))
    for offset in (1, 2, 3, 10):
        made = module.make(offset)
        assert is_known(made)
        assert (made(X) == expected(offset=offset)).all()
    for change in ("SCALE", "FACTOR"):
        module = define()
        setattr(module, change, 9)
        made = module.make(10)
        assert not is_known(made)
        assert (made(X) == expected(**{change.lower(): 9})).all()
    monkeypatch.setattr(sys.modules["settings"], "BIAS", 6)
    assert not is_known(define().f)
    assert (define().f(X) == expected(bias=6)).all()
    monkeypatch.setattr(sys.modules["settings"], "BIAS", [6])
    with pytest.raises(tl.KernelError, match="BIAS"):
        define()


def test_a_name_that_appears_counts(define: Callable[..., ModuleType]) -> None:
    text = TEXT.replace("def f(x", "def f(x").replace("        for i in range(n):", "        for i in range(len(x)):")
    assert is_known((define(text), define(text))[1].f)
    module = define(text)
    module.len = 5
    with pytest.raises(tl.KernelError):
        module.make(10)


def test_a_kernel_is_what_it_was_when_it_was_decorated(define: Callable[..., ModuleType]) -> None:
    first = define().f
    module = define()
    assert is_known(module.f)
    module.SCALE, module.FACTOR = 100, 100
    Path(module.make.__code__.co_filename).write_text("# another file\n")
    assert tl.structural_equal(module.f.ir, first.ir)
    assert (module.f(np.repeat(X, 2)[::2]) == expected()).all()


def test_another_compiler_or_permission_is_another_entry(
    define: Callable[..., ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    define()
    assert not is_known(define(TEXT, ("@tl.kernel", '@tl.kernel(allow="contract")')).f)
    assert is_known(define().f)
    monkeypatch.setattr(manifest, "compiler_stamp", lambda **_: b"another tirlite")
    assert not is_known(define().f)
    monkeypatch.setenv("TIRLITE_CACHE", "0")
    assert not is_known(define().f)
    assert not is_known(define().f)


def test_options_and_machines_have_code_of_their_own(define: Callable[..., ModuleType]) -> None:
    define().f(X)
    again = define().f
    again(X)
    assert "cache" in again.timing
    for choices in ({"debug": True}, {"schedule": None}, {"target": tl.Target("x86-64-v2")}, {"in_place": False}):
        other = tl.compile(define().f, **choices)
        assert is_known(other)
        assert (other(X) == expected()).all()
        assert "cache" not in other.timing


def test_sizes_and_plans_are_those_of_the_kernel(define: Callable[..., ModuleType]) -> None:
    text = """
import tirlite as tl
n = tl.dim("n")

def make(strategy):
    @tl.kernel(strategy=strategy)
    def both(x: tl.f64[n], k: tl.i64, y: tl.out[tl.f64[n]]):
        t = tl.alloc(tl.f64[n + k])
        u = tl.alloc(tl.f64[2 * n])
        for i in range(n):
            t[i + k] = x[i] + 1
        for i in range(n):
            u[n + i] = t[i + k] * 2
        for i in range(n):
            y[i] = u[n + i]
    return both
"""
    for strategy in ("auto", "per_shape"):
        for times in range(2):
            kernel = define(text).make(strategy)
            assert is_known(kernel) == (times == 1 or strategy == "per_shape")
            x = np.arange(2000.0)
            assert (kernel(x, 5) == (x + 1) * 2).all()
            with pytest.raises(tl.CallValueError, match="would allocate `t` with the extent -3|`t`"):
                kernel(np.ones(2), -5)
            assert ("cache" in kernel.timing) == (times == 1)


def test_code_that_runs_while_translating_is_not_foreseen(define: Callable[..., ModuleType]) -> None:
    text = TEXT.replace("math.floor(math.pi)", "tl.static(int(math.pi))")
    for _ in range(2):
        module = define(text)
        assert not is_known(module.f)
        assert (module.f(X) == expected()).all()


def test_other_signatures_are_known_too(define: Callable[..., ModuleType]) -> None:
    text = """
import tirlite as tl
n, m = tl.dim("n", min=0, max=64, multiple_of=2), tl.dim("m")

@tl.kernel
def callee(x: tl.f32[m], y: tl.f32[m]):
    for i in range(m):
        y[i] = x[i] + 1

@tl.kernel
def g(
    a: tl.f64, x: tl.f32[n + 1, 2 * m], z: tl.bf16[n], k: tl.i32 = 3,
    y: tl.out[tl.buffer(tl.f32[m], alignment=32)] = None,
):
    t = tl.alloc(tl.f32[m])
    for i in range(m):
        t[i] = x[n, 2 * i] * tl.f32(a) + k
    callee(t, y)
"""
    first, second = define(text).g, define(text).g
    assert is_known(second)
    x = np.arange(18, dtype=np.float32).reshape(3, 6)
    want = x[2, ::2] * 2 + 3 + 1
    for kernel in (first, second):
        assert (kernel(2.0, x, np.zeros(2, np.uint16)) == want).all()
        with pytest.raises(tl.CallValueError, match="axis 0 of `x`|`n` "):
            kernel(2.0, x[:2].copy(), np.zeros(2, np.uint16))
    assert repr(second) == repr(first)
    changed = define(text.replace("x[i] + 1", "x[i] + 2")).g
    assert not is_known(changed)
    assert (changed(2.0, x, np.zeros(2, np.uint16)) == want + 1).all()


def test_a_damaged_entry_is_a_miss(define: Callable[..., ModuleType]) -> None:
    module = define()
    kernel = module.f
    kernel(X)
    held: list[tuple[bytes, object]] = []
    real = manifest.find

    def watched(key: bytes) -> object:
        held.append((key, real(key)))
        return held[-1][1]

    manifest.find = watched
    try:
        assert is_known(define().f)
        key, ((tokens, head, content, text), *_) = held[0]
        others = [None, 5, (), ((),), ((tokens,),), (((), head, content, text),), ((tokens, (), content, text),)]
        others += [((tokens, head[:-1], content, text),), ((tokens, head, 5, text),), ((tokens, head, content, None),)]
        others += [((tokens, ("f", *head[1:2], ((1, 2),), *head[3:]), content, text),)]
        for plain in others:
            keep(key, plain)
            assert find(key) == plain
            made = define().f
            assert not is_known(made), plain
            assert (made(X) == expected()).all()
    finally:
        manifest.find = real


def test_promises_of_elements_and_outputs_without_value_are_known_too(define: Callable[..., ModuleType]) -> None:
    text = """
import tirlite as tl
n, m = tl.dims("n m")

@tl.kernel
def f(x: tl.f32[n], at: tl.buffer(tl.i64[m], below=n), y: tl.out[tl.f32[m]]):
    for i in range(m):
        y[i] += x[at[i]]
"""
    for times in range(2):
        kernel = define(text).f
        assert is_known(kernel) == (times == 1)
        y = np.zeros(2, np.float32)
        kernel(X, np.array([3, 1]), y)
        assert y.tolist() == [3, 1]
        with pytest.raises(tl.KernelAssertionError, match="less than n"):
            kernel(X, np.array([3, 4]), y)
        with pytest.raises(tl.CallValueError, match="is not given `y`"):
            kernel(X, np.array([3, 1]))
    below = define(text.replace("below=n", "below=2")).f
    assert not is_known(below)
    with pytest.raises(tl.KernelAssertionError, match="less than 2"):
        below(X, np.array([3, 1]), y)


def test_tokens_tell_all_that_values_are_made_of() -> None:
    """What gets another field has to be told by it."""
    assert [*parts_of(DType)] == ["code", "bits", "lanes", "name", "bytes"]
    assert [*parts_of(Dim)] == ["name", "min", "max", "multiple_of", "ident", "_hash", "divisor", "bounds"]
    assert [*parts_of(Poly)] == ["terms", "_hash", "_atoms"]
    assert [*parts_of(Var)] == ["name", "dtype", "dim"]
    assert [*parts_of(IntImm)] == [*parts_of(FloatImm)] == ["dtype", "value"]
    assert [*parts_of(Buffer)] == ["name", "dtype", "shape", "scope", "alignment", "volatile", "strides"]
