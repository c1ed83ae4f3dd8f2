"""A Python function, a kernel or a PrimFunc in, a Kernel out: `tl.compile` and `tl.kernel`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import partial
from time import perf_counter
from types import FunctionType
from typing import TYPE_CHECKING, TypeAlias, Unpack, overload

from tirlite.diag import CallTypeError, Message, boundary, public
from tirlite.driver.kernel import Kernel
from tirlite.ir import PrimFunc, validate
from tirlite.plan.cache import PlanCache
from tirlite.plan.collection import collection_paused
from tirlite.record import record
from tirlite.rewrite.options import Options

if TYPE_CHECKING:
    from tirlite.plan.search.engine import Engine
    from tirlite.rewrite.options import Choices

Function: TypeAlias = Callable[..., object]


class NoKernel(Message):
    """Something is given to be compiled that is no kernel.

    Example: `tl.compile(5)`.
    Fix: Give a Python function, a `PrimFunc` or a `Kernel`.
    """

    code = "no-kernel"
    raises = CallTypeError
    title = "a {kind} cannot be compiled to a kernel"
    help = "{advice}"

    kind: str
    advice: str = "give a Python function, a PrimFunc or a Kernel"


@record
class Compiler:
    """What makes kernels. `engine` makes what runs the searches of strategy `exact`, where a kernel is given none.

    It keeps the plans of its kernels, so that the same storage problem is planned once.
    """

    engine: Callable[[], Engine] | None = None
    cache: PlanCache = field(default_factory=PlanCache, compare=False)

    def options(self, choices: Choices) -> Options:
        """What was chosen, and the engine and the cache of this compiler."""
        given: Choices = {"engine": self.engine, "cache": self.cache, **choices}
        return Options.of(given)

    def compile(self, func: PrimFunc | Kernel | Function, **choices: Unpack[Choices]) -> Kernel:
        """A kernel made of `func`, with options of its own: `tl.compile(f, strategy="exact", in_place=False)`.

        `Options` says what there is to choose. The passes run, and native code is made, when they are first needed.

        Raises KernelError for a function that is no kernel or is ill-formed, PlanError for an unknown strategy.
        """
        with boundary:
            options = self.options(choices)
            if isinstance(func, Kernel):
                return func.with_options(options)
            if isinstance(func, FunctionType):
                return _translated(func, sys._getframe(1).f_locals, options)
            if not isinstance(func, PrimFunc):
                raise NoKernel(type(func).__name__).error()
            validate(func)
            return Kernel(func, options)

    @overload
    def kernel(self, function: Function, /) -> Kernel: ...

    @overload
    def kernel(self, /, **choices: Unpack[Choices]) -> Callable[[Function], Kernel]: ...

    def kernel(
        self, function: Function | None = None, /, **choices: Unpack[Choices]
    ) -> Kernel | Callable[[Function], Kernel]:
        """The decorator that makes a kernel of a Python function: `@tl.kernel` or `@tl.kernel(strategy="none")`.

        The function is translated here and now, so that its mistakes are reported where it stands; it is never run. The
        options are those of `compile`. Raises KernelError.
        """
        with boundary:
            options = self.options(choices)
            names = sys._getframe(1).f_locals
            if function is not None:
                return _translated(function, names, options)
        return public(lambda decorated: _translated(decorated, names, options))


def _translated(function: Function, names: Mapping[str, object], options: Options) -> Kernel:
    if not isinstance(function, FunctionType):
        raise _no_function(function).error()
    # The modules that the first kernel loads stay, and so does what a kernel is made of.
    with collection_paused():
        from tirlite.dsl import translate

        start = perf_counter()
        made = translate(function, names)
        seconds = perf_counter() - start
    kernel = Kernel(made.func, options, seconds=seconds, doc=function.__doc__, captures=made.captures)
    kernel.__module__, kernel.__qualname__ = function.__module__, function.__qualname__
    return kernel


def _no_function(given: object) -> NoKernel:
    kind = type(given).__name__
    if isinstance(given, Kernel):
        return NoKernel(kind, "it is one already; `tl.compile(kernel, ...)` makes one with other options")
    if isinstance(given, (staticmethod, classmethod)):
        return NoKernel(kind, "write @staticmethod above @tl.kernel, which stands next to the `def`")
    if hasattr(given, "__wrapped__") or isinstance(given, partial):
        return NoKernel(kind, "write @tl.kernel next to a `def`, below other decorators")
    return NoKernel(kind)


_COMPILER = Compiler()
compile = _COMPILER.compile  # noqa: A001
kernel = _COMPILER.kernel
