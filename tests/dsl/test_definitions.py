"""What stands around the body of a kernel: decorators, annotations as texts, and what else might be made a kernel."""

from __future__ import annotations

import ast
import functools
import gc
import linecache
import weakref
from collections.abc import Callable

import numpy as np
import pytest
from every import every

import tirlite as tl
from tirlite.dsl import Inline

n = tl.dim("n")


def refusal(define: Callable[[], object]) -> str:
    with pytest.raises(tl.TirliteError) as caught:
        define()
    return str(caught.value)


def doubled(x: tl.f32[n]):  # type: ignore
    for i in range(n):
        x[i] = 2 * x[i]


def test_names_of_a_frame_that_only_decorates_are_not_those_of_the_function() -> None:
    def decorate(n: int) -> tuple[tl.Kernel, tl.Kernel, tl.Kernel]:
        return tl.kernel(doubled), tl.kernel(debug=True)(doubled), tl.compile(doubled)

    for kernel in decorate(n=3):
        assert str(kernel.ir.params[0].shape[0]) == "n"


def test_a_mistake_in_an_annotation_that_is_a_text_is_told_at_the_text() -> None:
    def define() -> None:
        @tl.kernel
        def scale(x: "tl.f32["):  # type: ignore  # noqa: F722, UP037
            x[0] = 1

    text = refusal(define)
    assert text.startswith("error[bad-syntax]")
    assert "^^^^^^^^^" in text.splitlines()[-1]
    assert 'def scale(x: "tl.f32["):' in text


def test_an_annotation_may_be_a_text_of_several_lines() -> None:
    assert tl.parse("@tl.kernel\ndef f(x: '''tl.f32[\n4]'''):\n    x[0] = 1").params[0].name == "x"


def test_a_misspelt_type_is_answered_with_the_nearest_where_python_evaluates_it() -> None:
    with pytest.raises(AttributeError, match="'tirlite' has no attribute 'f33'; did you mean `f32`"):
        tl.f33  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute '__wrapped__'$"):
        tl.__wrapped__  # noqa: B018


def test_a_method_is_told_to_be_none() -> None:
    def define() -> None:
        class Model:
            @tl.kernel
            def scale(self, x: tl.f32[n]):  # type: ignore
                x[0] = 1

    assert "= help: a kernel is not a method" in refusal(define)


def test_a_kernel_goes_under_staticmethod_and_not_above() -> None:
    class Model:
        @staticmethod
        @tl.kernel
        def scale(x: tl.f32[n]):  # type: ignore
            x[0] = 1

    assert Model.scale.ir.name == Model().scale.ir.name == "scale"
    assert "write @staticmethod above @tl.kernel" in refusal(lambda: tl.kernel(staticmethod(refusal)))


def test_other_decorators_stand_above() -> None:
    def loud(function: Callable[..., object]) -> Callable[..., object]:
        return functools.wraps(function)(lambda *args: function(*args))

    def define() -> None:
        @tl.kernel
        @loud
        def scale(x: tl.f32[n]):  # type: ignore
            x[0] = 1

    assert "write @tl.kernel next to the `def`" in refusal(define)
    assert "below other decorators" in refusal(lambda: tl.kernel(functools.lru_cache(refusal)))
    assert "below other decorators" in refusal(lambda: tl.kernel(functools.partial(refusal)))


def test_a_kernel_is_made_once() -> None:
    @tl.kernel
    def scale(x: tl.f32[n]):  # type: ignore
        x[0] = 1

    assert "= help: it is one already" in refusal(lambda: tl.kernel(scale))


def test_a_kernel_that_calls_itself_is_told_so() -> None:
    assert "= help: a kernel cannot call itself" in refusal(
        lambda: tl.parse("n = tl.dim('n')\n@tl.kernel\ndef f(x: tl.f32[n]):\n    f(x)")
    )


@every(
    "binding",
    [
        "def a(t):\n    return t",
        "class a: pass",
        "import a",
        "import a.b",
        "from b import c as a",
        "x[0] = (a := 1.0)",
        "match x[0]:\n    case a: pass",
        "try:\n    pass\nexcept ValueError as a:\n    pass",
        "a, b = 1, 2",
        "del x\na = x.T",
    ],
)
def test_what_depends_on_a_refused_binding_is_not_told_as_well(binding: str) -> None:
    lines = [*binding.splitlines(), "x[1] = a(1.0)", "x[2] = wrong"]
    body = "".join(f"    {line}\n" for line in lines)
    with pytest.raises(tl.KernelError) as caught:
        tl.parse(f"n = tl.dim('n')\n@tl.kernel\ndef f(x: tl.f32[n]):\n{body}")
    assert "`wrong`" in str(caught.value)
    assert "`a` is not defined" not in str(caught.value)


def test_a_name_that_stands_twice_around_is_offered_once() -> None:
    n = tl.dim("n")

    def define() -> None:
        @tl.kernel
        def scale(x: tl.f32[nn]):  # type: ignore  # noqa: F821
            x[n - 1] = 1

    assert refusal(define).endswith("= help: did you mean `n`?")


def test_a_dim_that_is_assigned_stays_a_dim_elsewhere() -> None:
    with pytest.raises(tl.KernelError) as caught:
        tl.parse(
            "n = tl.dim('n')\n@tl.kernel\ndef f(x: tl.f32[n]):\n"
            "    for i in range(n):\n        x[i] = wrong\n"
            "    n = 3\n    x[n - 1] = worse\n    for n in range(2): pass\n"
        )
    told = [(message.code, message.span.line) for message in caught.value.messages if message.span]
    assert told == [("unknown-name", 5), ("fixed-name", 6), ("unknown-name", 7), ("fixed-name", 8)]


@pytest.mark.parametrize(
    ("value", "line", "advice"),
    [
        ("min(1.0)", "min takes two arguments or more, not 1", "write a loop over the elements of a buffer"),
        ("x.shape[1]", "`x` has no extent 1", "write x.shape[0]"),
        ("z.shape[2]", "`z` has no extent 2", "write z.shape[0] to z.shape[1], with a constant"),
        ("s.shape[0]", "`s` has no extent 0", "`s` has no axes"),
    ],
)
def test_what_is_advised_can_be_written(value: str, line: str, advice: str) -> None:
    text = refusal(
        lambda: tl.parse(f"@tl.kernel\ndef f(x: tl.f32[2], z: tl.f32[2, 2], s: tl.f32[()]):\n    x[0] = {value}\n")
    )
    assert text.splitlines()[0].endswith(f": {line}")
    assert text.endswith(f"= help: {advice}")


def test_the_second_part_of_annotated_is_the_type_as_an_object_and_as_a_text() -> None:
    source = "def f(x: Annotated[object, tl.f32[n]], y: 'typing.Annotated[int, tl.i32]'):\n    x[0] = y\n"
    plain = "def f(x: tl.f32[n], y: tl.i32):\n    x[0] = y\n"
    header = 'n = tl.dim("n")\n@tl.kernel\n'
    assert tl.structural_equal(tl.parse(header + source), tl.parse(header + plain))


def test_what_a_factory_defines_anew_is_read_once() -> None:
    def scaled(factor: int) -> Inline:
        @tl.inline
        def scale(x, i, /):
            """Times a constant."""
            return x[i] * factor

        return scale

    double, triple = scaled(2), scaled(3)
    assert double.syntax is not triple.syntax
    assert [each is other for each, other in zip(double.syntax[0].body, triple.syntax[0].body, strict=True)] == [True]

    @tl.kernel
    def both(x: tl.f32[n], y: tl.out[tl.f32[n]]):  # type: ignore
        for i in range(n):
            y[i] = double(x, i) + triple(x, i)

    np.testing.assert_array_equal(both(np.arange(4, dtype=np.float32)), [0, 5, 10, 15])


def test_what_a_module_defines_besides_a_kernel_does_not_outlive_it() -> None:
    text = "@tl.kernel\ndef f(x: tl.f32[2]):\n    x[0] = 1\n"
    linecache.cache["<passing>"] = (len(text), None, text.splitlines(keepends=True), "<passing>")
    names = {"tl": tl, "data": np.zeros(3)}
    exec(compile(text, "<passing>", "exec"), names)
    data = weakref.ref(names["data"])
    names.clear()
    gc.collect()
    assert data() is None


def test_few_syntax_trees_are_kept() -> None:
    for number in range(1500):
        tl.parse(f"@tl.kernel\ndef passing(x: tl.f32[2]):\n    x[0] = {number}")
    gc.collect()
    assert sum(isinstance(each, ast.FunctionDef) and each.name == "passing" for each in gc.get_objects()) < 1200
