"""Sizes that no memory can have: named errors, before anything is written, in compiled code and interpreter alike."""

from __future__ import annotations

import numpy as np
import pytest

import tirlite as tl

TEXT = """
n = tl.dim("n", max=8)

@tl.kernel
def f(x: tl.f64[n], y: tl.f64[n], k: tl.i64, m: tl.i64):
    y[0] = 7.0
    {loop}
        t = tl.alloc(tl.f64[{shape}])
        t[{zeros}] = x[0]
        y[1] = t[{zeros}]
"""


def run(shape: str, k: int, m: int, how: str, y: np.ndarray, loop: str = "if n > 0:") -> None:
    """Run the kernel that allocates `shape`, by code or interpreter."""
    zeros = ", ".join("0" for _ in shape.split(","))
    kernel = tl.compile(tl.parse(TEXT.format(loop=loop, shape=shape, zeros=zeros)))
    (kernel if how == "code" else kernel.interpret)(np.ones(3), y, k, m)


both = pytest.mark.parametrize("how", ["code", "interpreter"])


@both
@pytest.mark.parametrize(
    ("shape", "k", "m"),
    [
        ("k", 2**61 + 128, 0),
        ("k", 2**62, 0),
        ("k, m", 2**32, 2**32),  # the product is 0 modulo 2**64
        ("k * m", 2**32, 2**32),
        ("k, m", 2**31, 2**33),
        ("k * m", -(2**31), -(2**31)),
        ("k + m", 2**62, 2**62),  # negative modulo 2**64
        ("k, m, n", 2**62, 2**62),
    ],
)
def test_too_many_bytes_are_refused(shape: str, k: int, m: int, how: str) -> None:
    y = np.zeros(3)
    with pytest.raises(tl.TirliteError, match="workspace-too-large|out-of-memory"):
        run(shape, k, m, how, y)
    assert (y == 0).all()


@both
@pytest.mark.parametrize(
    ("shape", "k", "m"),
    [("n - 5", 0, 0), ("k - m", 3, 8), ("n - 5, n - 5", 0, 0), ("n - 5, k", 0, 0), ("k, m", -1, -1), ("k, m", 0, -1)],
)
def test_a_negative_extent_is_refused_whatever_the_others_are(shape: str, k: int, m: int, how: str) -> None:
    y = np.zeros(3)
    with pytest.raises(tl.TirliteError, match=r"negative extent|with the extent -"):
        run(shape, k, m, how, y)
    assert (y == 0).all()


IN_TURN = """
n = tl.dim("n")

@tl.kernel
def f(x: tl.f32[n]):
    x[0] = 7
    t = tl.alloc(tl.f32[n - 5])
    for i in range(n - 5):
        t[i] = x[i]
    for i in range(n - 5):
        x[i] = t[i] + 1
    u = tl.alloc(tl.f32[n + 3, n - 6])
    for i in range(n - 6):
        u[i, i] = x[i]
    v = tl.alloc(tl.f32[n])
    for i in range(n):
        v[i] = u[i % (n - 6), i % (n - 6)]
    for i in range(n):
        x[i] = v[n - 1 - i]
"""


@pytest.mark.parametrize("strategy", ["none", "tvm", "share", "pack", "per_shape"])
def test_a_negative_extent_is_refused_though_the_storage_is_large_enough_for_others(strategy: str) -> None:
    kernel = tl.compile(tl.parse(IN_TURN), strategy=strategy)
    for n, refused in ((4, "`t` with the extent -1"), (5, "`u` with the extent -1"), (7, "")):
        x = np.zeros(n, np.float32)
        if refused:
            with pytest.raises(tl.CallValueError, match=refused):
                kernel(x)
            assert (x == 0).all()
        else:
            kernel(x)
            assert x.tolist() == [8] * n


SMALL_FIRST = """
@tl.kernel
def f(n: tl.i64, y: tl.f32[1]):
    small = tl.alloc(tl.f32[n])
    small[0] = y[0]
    y[0] = small[0]
    large = tl.alloc(tl.f32[n, n, n])
    large[0, 0, 0] = y[0]
    y[0] = large[0, 0, 0]
"""


@pytest.mark.parametrize("strategy", ["none", "share"])
def test_the_message_names_the_buffer_that_is_too_large(strategy: str) -> None:
    kernel = tl.compile(tl.parse(SMALL_FIRST), strategy=strategy)
    with pytest.raises(tl.CallValueError, match=f"would need {2**68} bytes of memory for `large` and what lives"):
        kernel(2**22, np.zeros(1, np.float32))


WRAPPED = """
@tl.kernel
def f(s: tl.i64, y: tl.f32[64]):
    k = s * 21 % 7
    t = tl.alloc(tl.f32[k * 8 + 8])
    u = tl.alloc(tl.f32[16])
    for i in range(k * 8 + 8):
        t[i] = 1
    for i in range(16):
        u[i] = 2
    for i in range(16):
        y[i] = t[i % 8] + u[i]
"""


@pytest.mark.parametrize("strategy", ["none", "share", "pack"])
def test_an_extent_that_looks_constant_and_wraps_around_is_refused(strategy: str) -> None:
    """The extent is 8, but in 64 bits more: what stores to all of `t` would store to what lies behind it."""
    kernel, y = tl.compile(tl.parse(WRAPPED), strategy=strategy), np.zeros(64, np.float32)
    kernel(5, y)
    assert y.tolist() == [3] * 16 + [0] * 48
    with pytest.raises(tl.TirliteError, match="workspace-too-large"):
        kernel(2**60 + 1, y)


def test_sizes_that_are_refused_are_told_without_strides() -> None:
    text = """
    n = tl.dim("n")
    @tl.kernel
    def f(x: tl.f64[n], y: tl.f64[1]):
        t = tl.alloc(tl.f64[n, n, n])
        for i in range(n):
            t[i, 0, i] = x[i]
        for i in range(n):
            y[0] += t[i, 0, i]
    """
    with pytest.raises(tl.CallValueError, match=r"workspace-too-large(?s:.*)the sizes were n = 4194304$"):
        tl.compile(tl.parse(text), schedule=None)(np.broadcast_to(1.0, 2**22), np.zeros(1))


NAMED = """
@tl.kernel
def f(s: tl.i64, y: tl.f32[4]):
    k = s * s * s
    t = tl.alloc(tl.f32[k])
    t[0] = 3
    y[0] = t[0]
"""


@pytest.mark.parametrize("strategy", ["none", "share", "pack", "auto"])
def test_an_extent_with_a_name_of_its_own_is_told_with_its_value(strategy: str) -> None:
    kernel, y = tl.compile(tl.parse(NAMED), strategy=strategy), np.zeros(4, np.float32)
    with pytest.raises(
        tl.CallError,
        match=r"(?s)for `t` and what lives beside it\n.*allocated here.* s = 4194304, k = 73786976294838206464",
    ):
        kernel(2**22, y)


TWO = """
@tl.kernel
def f(s: tl.i64, y: tl.f32[4]):
    k = 2 * s
    t = tl.alloc(tl.f32[k])
    u = tl.alloc(tl.f32[k, 4])
    t[0] = 3
    u[0, 0] = t[0]
    y[0] = t[0] + u[0, 0]
"""


@pytest.mark.parametrize("strategy", ["share", "pack", "auto"])
def test_the_message_of_too_little_memory_shows_the_largest_buffer(strategy: str) -> None:
    kernel, y = tl.compile(tl.parse(TWO), strategy=strategy), np.zeros(4, np.float32)
    with pytest.raises(tl.CallError, match="no-workspace") as caught:
        kernel(2**50, y)
    assert "u = tl.alloc(tl.f32[k, 4])" in str(caught.value)
    assert "`u` takes 36028797018963968 of them" in str(caught.value)


@both
@pytest.mark.parametrize("elements", [1, 2**16 - 1, 2**16 + 1])
def test_what_there_is_memory_for_runs(elements: int, how: str) -> None:
    y = np.zeros(3)
    run("k", elements, 0, how, y)
    assert y.tolist() == [7, 1, 0]


def test_products_that_wrap_inside_of_a_loop_are_noticed() -> None:
    """At i = 1 the extent is 2**64, which is 0 in 64 bits."""
    with pytest.raises(tl.KernelRunError, match="`t` has an extent that does not fit into 64 bits"):
        run("k * i * m + 1 - i", 2**32, 2**32, "code", np.zeros(3), loop="for i in range(n):")


IN_A_LOOP = """
@tl.kernel
def f(k: tl.i64, y: tl.f32[4]):
    for i in range(2):
        s = k * i
        x = s * k
        t = tl.alloc(tl.f32[x + 1 - i])
        for j in range(4 * i):
            t[j] = 3
        y[i] = t[0]
"""

CALLED = """
@tl.kernel
def g(k: tl.i64, y: tl.f32[4]):
    x = k * k
    t = tl.alloc(tl.f32[x])
    for j in range(4):
        t[j] = 3
    y[0] = t[0]


@tl.kernel
def f(k: tl.i64, y: tl.f32[4]):
    g(k, y)
"""


@pytest.mark.parametrize("text", [IN_A_LOOP, CALLED])
@pytest.mark.parametrize("strategy", ["none", "share"])
def test_a_name_for_what_has_wrapped_is_noticed(text: str, strategy: str) -> None:
    """The extent is 0 in 64 bits: what stores to `t` would store beside it."""
    kernel = tl.compile(tl.parse(text), strategy=strategy)
    with pytest.raises(tl.TirliteError, match="`t` has an extent that does not fit into 64 bits|workspace-too-large"):
        kernel(2**32, np.zeros(4, np.float32))


def test_the_interpreter_refuses_an_extent_with_a_name_before_anything_is_written() -> None:
    y = np.zeros(4, np.float32)
    with pytest.raises(tl.KernelRunError, match="out-of-memory"):
        tl.compile(tl.parse(NAMED)).interpret(2**22, y)


@pytest.mark.parametrize(
    ("shape", "told"),
    [
        ("s - 5", "the negative extent -3"),
        ("2, s - 5", "the negative extent -3 along axis 1"),
        ("s * 2**61", "the shape [4611686018427387904], which is more than 2**62 bytes"),
        ("2**40, s * 2**40", "the shape [1099511627776, 2199023255552], which is more than 2**62 bytes"),
    ],
)
def test_what_an_array_gives_as_an_extent_is_told(shape: str, told: str) -> None:
    with pytest.raises(tl.KernelRunError) as caught:
        run(shape, 0, 0, "code", np.zeros(3), loop="s = tl.i64(2 * x[0])\n    if n > 0:")
    assert f"`t` has {told}\n" in str(caught.value)


@both
def test_a_shape_above_the_declared_maximum_is_refused(how: str) -> None:
    kernel = tl.compile(tl.parse(TEXT.format(loop="if n > 0:", shape="n", zeros="0")))
    y = np.zeros(9)
    with pytest.raises(tl.CallError, match="dim-fact"):
        (kernel if how == "code" else kernel.interpret)(np.ones(9), y, 0, 0)
    assert (y == 0).all()


@both
def test_a_shape_that_is_no_declared_multiple_is_refused(how: str) -> None:
    text = 'n = tl.dim("n", multiple_of=4)\n\n@tl.kernel\ndef f(x: tl.f32[n]):\n    x[0] = 1.0\n'
    kernel, x = tl.compile(tl.parse(text)), np.zeros(6, np.float32)
    with pytest.raises(tl.CallError, match="dim-fact"):
        (kernel if how == "code" else kernel.interpret)(x)
    assert (x == 0).all()


@pytest.mark.parametrize(
    ("memory", "debug"),
    [
        ("v = tl.view(x, tl.f64[n * 2305843009213693952])", False),
        ("v = tl.view(x, tl.f64[n * 2305843009213693952])", True),
        ("v = tl.view(x, tl.f64[max(k * k, 0) + 1])", False),
        ("e = k * k\n    v = tl.view(x, tl.f64[max(e, 0) + 1])", False),
        ("e = k * k\n    v = tl.alloc(tl.f64[max(e, 0) + 1])\n    v[0] = x[0]", True),
        ("v = tl.alloc(tl.f64[n * 2305843009213693952])\n    v[0] = x[0]", True),
    ],
)
def test_an_extent_that_wraps_around_is_refused(memory: str, debug: bool) -> None:  # noqa: FBT001
    """Indices are proved to be below what it is without that."""
    header = 'n = tl.dim("n")\n\n@tl.kernel\ndef f(x: tl.f64[n], y: tl.f64[n], k: tl.i64):\n'
    kernel = tl.compile(tl.parse(f"{header}    {memory}\n    y[0] = v[0]\n"), debug=debug)
    with pytest.raises(tl.TirliteError, match="does not fit into 64 bits"):
        kernel(np.ones(8), np.zeros(8), 2**32)
