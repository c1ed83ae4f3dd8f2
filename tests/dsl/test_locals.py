"""What becomes of local scalars: a Let where one assignment and its uses share a block, else a buffer without axes."""

from __future__ import annotations

import pytest
from every import every

import tirlite as tl


def body_of(source: str) -> str:
    """The printed body of a kernel over x, y: f32[n], k: i64, from the source of its body."""
    lines = "\n".join(f"    {line}" for line in source.strip().splitlines())
    text = f'n = tl.dim("n")\n@tl.kernel\ndef f(x: tl.f32[n], y: tl.f32[n], k: tl.i64):\n{lines}'
    return "\n".join(line[4:] for line in str(tl.parse(text)).splitlines()[4:])


def code_of(source: str) -> str:
    with pytest.raises(tl.KernelError) as caught:
        body_of(source)
    return caught.value.code


def test_assigned_once_is_a_let() -> None:
    assert body_of("t = x[0] * 2\ny[0] = t + t") == "t = x[0] * tl.f32(2.0)\ny[0] = t + t"


def test_a_name_for_a_literal_is_as_weak_as_the_literal() -> None:
    assert body_of("a = 1\nb = 0.5\ny[a] = x[a] * b") == "y[1] = x[1] * tl.f32(0.5)"
    assert body_of("a = tl.i64(1)\nb = tl.f64(0.5)\ny[a] = x[a] * b") == (
        "a = tl.i64(1)\nb = tl.f64(0.5)\ny[a] = tl.f32(tl.f64(x[a]) * b)"
    )


def test_assigned_twice_is_a_buffer() -> None:
    assert body_of("t = x[0]\nt = t * t\ny[0] = t") == (
        't = tl.alloc(tl.f32[()], scope="local")\nt[()] = x[0]\nt[()] = t[()] * t[()]\ny[0] = t[()]'
    )


def test_updated_is_a_buffer_outside_of_the_loop() -> None:
    source = "total = 0.0\nfor i in range(n):\n    total += x[i]\ny[0] = total"
    assert body_of(source) == (
        'total = tl.alloc(tl.f32[()], scope="local")\n'
        "total[()] = tl.f32(0.0)\n"
        "for i in range(n):\n"
        "    total[()] = total[()] + x[i]\n"
        "y[0] = total[()]"
    )


@every(
    "source, dtype",
    [
        ("t = 0\nt += x[0]", "f32"),
        ("t = 0\nt = max(t, x[0])\nt += k", "f32"),
        ("t = 0.0\nt = t + k", "f64"),
        ("t = 0\nt = t + 1\nt += k", "i64"),
        ("t = 0\nt += 1", "i64"),
        ("t = 0.0\nt = 1.5", "f64"),
        ("t = True\nt = k > 0", "bool_"),
        ("t = 0\nt += tl.i8(k)", "i64"),
        ("t = 0\nt += tl.u64(k)", "u64"),
        ("t = tl.i8(0)\nt += k", "i8"),
        ("t = 0\nt = tl.f64(0)\nt += x[0]", "f64"),
        ("t = 0\nif k > 0:\n    t = x[0]", "f32"),
        ("s = 0\nt = 0\nt += x[0]\ns += t", "f32"),
    ],
)
def test_the_first_value_with_a_type_gives_a_scalar_its_type(source: str, dtype: str) -> None:
    assert f"t = tl.alloc(tl.{dtype}[()]" in body_of(source)
    assert "s = tl.alloc" not in source or f"s = tl.alloc(tl.{dtype}[()]" in body_of(source)


def test_an_annotation_gives_the_type() -> None:
    assert body_of("t: tl.f32 = 0\ny[0] = t") == "t = tl.f32(0.0)\ny[0] = t"
    assert body_of("t: tl.i8 = k\nt += 1\ny[0] = t") == (
        't = tl.alloc(tl.i8[()], scope="local")\nt[()] = tl.i8(k)\nt[()] = t[()] + tl.i8(1)\ny[0] = tl.f32(t[()])'
    )


def test_both_branches_assign_what_is_read_after_them() -> None:
    source = "if k > 0:\n    t = x[0]\nelse:\n    t = x[1]\ny[0] = t"
    assert body_of(source) == (
        't = tl.alloc(tl.f32[()], scope="local")\nif k > 0:\n    t[()] = x[0]\nelse:\n    t[()] = x[1]\ny[0] = t[()]'
    )


def test_each_loop_has_its_own() -> None:
    source = "for i in range(n):\n    t = x[i]\n    y[i] = t\nfor i in range(k):\n    t = i\n    y[t] = 0"
    assert body_of(source) == (
        "for i in range(n):\n    t = x[i]\n    y[i] = t\nfor i in range(k):\n    t_1 = i\n    y[t_1] = tl.f32(0.0)"
    )


def test_each_branch_has_its_own() -> None:
    source = "if k > 0:\n    t = x[0]\n    y[0] = t\nelse:\n    t = k\n    y[t] = 0"
    assert body_of(source) == ("if k > 0:\n    t = x[0]\n    y[0] = t\nelse:\n    t_1 = k\n    y[t_1] = tl.f32(0.0)")


def test_a_value_from_before_the_loop_is_seen_in_it() -> None:
    source = "if k > 0:\n    t = 1.0\nelse:\n    t = 2.0\nfor i in range(n):\n    y[i] = t\n    t = 3"
    assert body_of(source).startswith('t = tl.alloc(tl.f64[()], scope="local")\nif k > 0:')
    assert "    y[i] = tl.f32(t[()])\n    t[()] = 3.0" in body_of(source)


def test_a_block_under_an_attribute_is_no_branch() -> None:
    source = 'with tl.attr("pragma", "fast"):\n    t = x[0]\ny[0] = t'
    assert body_of(source) == (
        't = tl.alloc(tl.f32[()], scope="local")\nwith tl.attr("pragma", "fast"):\n    t[()] = x[0]\ny[0] = t[()]'
    )


@every(
    "source, code",
    [
        ("y[0] = t\nt = 1.0", "possibly-unassigned"),
        ("if k > 0:\n    t = 1.0\ny[0] = t", "possibly-unassigned"),
        ("t += 1", "possibly-unassigned"),
        ("t = t + 1", "possibly-unassigned"),
        ("for i in range(n):\n    t = 1.0\ny[0] = t", "possibly-unassigned"),
        ("while k > 0:\n    t = 1.0\ny[0] = t", "possibly-unassigned"),
        ("for i in range(n):\n    if i > 0:\n        y[i] = t\n    t = x[i]", "possibly-unassigned"),
        ("for i in range(n):\n    pass\ny[i] = 0", "possibly-unassigned"),
        ("i = 0\nfor i in tl.parallel(n):\n    pass\ny[i] = 0", "mixed-name"),
        ("if k > 0:\n    a = tl.alloc(tl.f32[n])\ny[0] = a[0]", "out-of-block"),
        ("a = tl.alloc(tl.f32[n])\nif k > 0:\n    a = tl.alloc(tl.f32[n])\ny[0] = a[0]", "out-of-block"),
        ("k = 1.5", "lossy-store"),
        ("k = tl.alloc(tl.f32[n])", "fixed-name"),
        ("x = 3", "fixed-name"),
        ("x += 3", "fixed-name"),
        ("n = 3", "fixed-name"),
        ("for n in range(3):\n    pass", "fixed-name"),
        ("for k in range(3):\n    pass", "fixed-name"),
        ("for i in range(3):\n    i = 4", "fixed-name"),
        ("for i in range(3):\n    i += 1\ni = 2", "fixed-name"),
        ("for i in range(3):\n    y[i] = 0\n    for i in range(3):\n        pass", "fixed-name"),
        ("t = 1\nt = tl.alloc(tl.f32[n])", "mixed-name"),
        ("t = tl.i64(0)\nt += x[0]", "lossy-store"),
        ("t = x\ny[0] = t[0]", "second-name"),
        ("t = tl.f32", "second-name"),
        ('t = "text"', "second-name"),
    ],
)
def test_mistakes_of_scope_are_refused(source: str, code: str) -> None:
    assert code_of(source) == code


def test_the_type_of_a_scalar_is_named_where_it_does_not_fit() -> None:
    with pytest.raises(tl.KernelError, match="give `total` its type .* `total: tl.f32 = ...`"):
        body_of("total = k\nfor i in range(n):\n    total += x[i]")


WIDTH = 3


def reads_first(y: tl.f32[4]):
    y[0] = WIDTH  # noqa: F823
    WIDTH = 4
    y[1] = WIDTH


def updates(y: tl.f32[4]):
    WIDTH += 1  # noqa: F823
    y[0] = WIDTH


def assigns_sometimes(y: tl.f32[4], k: tl.i64):
    if k > 0:
        WIDTH = 4
    y[0] = WIDTH


@pytest.mark.parametrize("function", [reads_first, updates, assigns_sometimes])
def test_a_constant_from_outside_that_is_assigned_is_a_local_everywhere_as_in_python(function) -> None:
    with pytest.raises(tl.KernelError, match="possibly-unassigned") as caught:
        tl.kernel(function)
    assert "in Python a name that a function assigns is local to all of it" in str(caught.value)
    assert "and `WIDTH` from outside is not meant" in str(caught.value)
