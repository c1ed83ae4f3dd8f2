"""A dim is its name: within a kernel all dims of one name are one."""

from types import ModuleType

import numpy as np
import pytest

import tirlite as tl

n, m = tl.dims("n m")


# Another module declares the dims of its own kernels.
shapes = ModuleType("shapes")
shapes.n = tl.dim("n")  # type: ignore[attr-defined]
shapes.at_most_64 = tl.dim("n", max=64)  # type: ignore[attr-defined]


@tl.inline
def last(x):
    return x[shapes.n - 1]


def test_dims_of_one_name_from_two_modules_are_one() -> None:
    theirs = shapes.n

    @tl.kernel
    def ends(x: tl.f32[n], y: tl.out[tl.f32[theirs + 1]]):
        t = tl.alloc(tl.f32[theirs, 2])
        for i in range(theirs):
            t[i, 1] = x[i]
        for i in range(n):
            y[i] = t[i, 1]
        y[n] = last(x)

    assert [dim.name for dim in ends.ir.dims] == ["n"]
    assert ends(np.arange(3, dtype=np.float32)).tolist() == [0, 1, 2, 2]
    assert tl.parse(str(ends.ir)).dims[0].name == "n"
    assert [str(each) for each in tl.allocations(ends.ir)] == ["t: f32[n, 2] in global"]

    @tl.kernel
    def add(x: tl.f32[n], y: tl.f32[theirs], z: tl.out[tl.f32[n]]):
        for i in range(n):
            z[i] = x[i] + y[i]

    with pytest.raises(tl.CallValueError, match="argument-shape.*axis 0 of `y`"):
        add(np.zeros(8, np.float32), np.zeros(3, np.float32))


def test_dims_of_one_name_with_different_facts_are_refused() -> None:
    theirs = shapes.at_most_64

    def kernel(x: tl.f32[n], y: tl.f32[theirs]):
        y[0] = x[0]

    with pytest.raises(tl.KernelError, match="two dims are called `n`: no facts, and max=64") as error:
        tl.kernel(kernel)
    assert error.value.code == "dim-facts-differ"


def test_the_dims_of_a_kernel_that_is_called_stay_its_own() -> None:
    theirs = shapes.at_most_64

    @tl.kernel
    def negate(x: tl.f32[theirs], y: tl.f32[theirs]):
        for i in range(theirs):
            y[i] = -x[i]

    @tl.kernel
    def twice(x: tl.f32[n], y: tl.out[tl.f32[n]]):
        t = tl.alloc(tl.f32[n])
        tl.call(negate, x, t)
        negate(t, y)

    x = np.arange(5, dtype=np.float32)
    assert twice(x).tolist() == x.tolist()
    with pytest.raises(tl.TirliteError, match="at most 64|`n` = 65|65"):
        twice(np.zeros(65, np.float32))


def test_the_builder_makes_one_dim_of_all_with_one_name() -> None:
    def built(length: tl.ir.Var) -> tl.PrimFunc:
        b = tl.ir.Builder("copy")
        x, y = b.param("x", tl.f32[n]), b.param("y", tl.f32[length], out=True)
        t = b.alloc("t", tl.f32[tl.dim("n")])
        with b.for_("i", 0, tl.dim("n")) as i:
            b.store(t, i, x[i])
            b.store(y, i, t[i] + length)
        return b.build()

    func = built(tl.dim("n"))
    assert func.dims == (n,)
    assert tl.compile(func)(np.zeros(2, np.float32)).tolist() == [2, 2]
    with pytest.raises(tl.KernelError, match="two dims are called `n`"):
        built(tl.dim("n", max=8))
