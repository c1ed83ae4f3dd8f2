"""Compiles a Python function, a kernel or a PrimFunc to a Kernel: `tl.compile` and `tl.kernel`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from functools import partial
from time import perf_counter
from types import FrameType, FunctionType
from typing import TYPE_CHECKING, TypeAlias, Unpack, overload

from tirlite.collection import collection_paused
from tirlite.diag import CallTypeError, Message, boundary, public
from tirlite.diag.error import an
from tirlite.driver.front import Front, KnownFront
from tirlite.driver.kernel import Kernel
from tirlite.gate import GATE
from tirlite.ir import AttrKey, AttrStmt, Permission, PrimFunc, SeqStmt
from tirlite.plan.cache import PlanCache
from tirlite.record import record
from tirlite.rewrite.options import Options, OptionType
from tirlite.show import shown
from tirlite.show.environment import cache_folder

if TYPE_CHECKING:
    from tirlite.plan.search.engine import Engine
    from tirlite.rewrite.options import Choices

Function: TypeAlias = Callable[..., object]
# The names of one or several permissions.
Allowed: TypeAlias = str | Iterable[str]


class NoKernel(Message):
    """Something is given to be compiled that is not a kernel.

    Example: `tl.compile(5)`.
    Fix: Give a Python function, a `PrimFunc` or a `Kernel`.
    """

    raises = CallTypeError
    title = "{kind} cannot be compiled to a kernel"
    help = "{advice}"

    advice: str = "give a Python function, a PrimFunc or a Kernel"


@record
class Compiler:
    """Makes kernels. `engine` makes the search engine of strategy `exact`, unless a kernel is given one.

    It caches plans, so that equal storage problems are solved once.
    """

    engine: Callable[[], Engine] | None = None
    cache: PlanCache = field(default_factory=PlanCache, compare=False)

    def options(self, choices: Choices) -> Options:
        """The options chosen, with the engine and the plan cache of this compiler."""
        given: Choices = {"engine": self.engine, "cache": self.cache, **choices}
        return Options.of(given)

    def compile(self, func: PrimFunc | Kernel | Function, *, allow: Allowed = (), **choices: Unpack[Choices]) -> Kernel:
        """A kernel made of `func`, with options of its own: `tl.compile(f, strategy="exact", in_place=False)`.

        The passes run, and native code is made, when they are first needed. `allow` names permissions for the whole
        function, as `tl.allow` does for a block. The options, with more about them in `rewrite.options.Options`:

        - `strategy`: how storage is planned, by name ("auto", "share", "pack", "exact", "none" and others) or by a
          function of your own from a `plan.Problem` to a `plan.Plan`;
        - `in_place`: whether a buffer may overwrite one whose lifetime ends where its own begins;
        - `target`: the machine, as in `tl.Target.host(workers=2)`;
        - `debug`: whether the code checks itself as it runs;
        - `unchecked`: whether accesses that are not proved go unchecked;
        - `passes`: what runs before storage is planned;
        - `schedule`: how loops are transformed: a `tl.schedule`, its steps, or a function that applies them; "auto"
          leaves it to tirlite, "compact", too, after it has left little of temporaries; None runs loops as written;
        - `observers`: functions that are called with each pass's `Step`;
        - `exact_dtype`: whether only buffers of one element type share storage;
        - `match_range`: for "share", up to how many times larger or smaller a shared slot may be;
        - `capacity`: the most bytes that an ordinary memory may take;
        - `budget`, `time_limit`: how many search nodes, or seconds, "exact" may take.

        Raises KernelError for a function that is not a kernel or is ill-formed, PlanError for an unknown strategy.
        """
        with boundary:
            options = self.options(choices)
            granted = _permissions(allow)
            if not issubclass(type(func), (Kernel, FunctionType, PrimFunc)):  # not `isinstance`: `__class__` may lie
                raise _no_function(func).error()
            if isinstance(func, Kernel):
                return func.with_options(options, _allowing(func.ir, granted) if granted else None)
            if isinstance(func, FunctionType):
                return _translated(func, sys._getframe(1), options, granted)
            assert isinstance(func, PrimFunc)
            from tirlite.ir import validate

            validate(func)
            return Kernel(_allowing(func, granted), options)

    @overload
    def kernel(self, function: Function, /) -> Kernel: ...

    @overload
    def kernel(self, /, *, allow: Allowed = (), **choices: Unpack[Choices]) -> Callable[[Function], Kernel]: ...

    def kernel(
        self, function: Function | None = None, /, *, allow: Allowed = (), **choices: Unpack[Choices]
    ) -> Kernel | Callable[[Function], Kernel]:
        """The decorator that makes a kernel of a Python function: `@tl.kernel` or `@tl.kernel(strategy="none")`.

        The function is translated when it is decorated, so that errors are reported there; Python never runs it. The
        options are those of `tl.compile`: `strategy`, `in_place`, `target`, `debug`, `unchecked`, `passes`, `schedule`,
        `observers`, `exact_dtype`, `match_range`, `capacity`, `budget`, `time_limit`, and `allow`. Raises KernelError.
        """
        with boundary:
            options, granted = self.options(choices), _permissions(allow)
            frame = sys._getframe(1)
            if function is not None:
                return _translated(function, frame, options, granted)
        return public(lambda decorated: _translated(decorated, frame, options, granted))


def _permissions(names: Allowed) -> tuple[Permission, ...]:
    """The permissions of these names, in their defined order. Raises CallTypeError for an unknown one."""
    given = (names,) if isinstance(names, str) or not isinstance(names, Iterable) else tuple(names)
    known = {each.value: each for each in Permission}
    if not all(isinstance(name, str) and name in known for name in given):
        raise OptionType("allow", "one or several of " + ", ".join(map(repr, known)), shown(names)).error()
    return tuple(each for name, each in known.items() if name in given)


def _allowing(func: PrimFunc, granted: tuple[Permission, ...]) -> PrimFunc:
    """The function with its whole body under these permissions."""
    if not granted:
        return func
    return func.replaced(body=SeqStmt((AttrStmt(AttrKey.ALLOW, func.body, value=granted, span=func.span),)))


def _translated(function: Function, frame: FrameType, options: Options, granted: tuple[Permission, ...]) -> Kernel:
    if not issubclass(type(function), FunctionType) or not isinstance(function, FunctionType):
        raise _no_function(function).error()
    # Imports and translation create long-lived objects, so the collector would find nothing.
    with GATE.inside(), collection_paused():
        from tirlite.dsl.lookups import names_around

        start, names = perf_counter(), names_around(function, frame)
        key, found = None, None
        if cache_folder():
            from tirlite.driver.manifest import known, manifest_key

            key = manifest_key(function, granted)
            found = known(key, function, names) if key is not None else None
        captures: Mapping[str, object] | None = None
        if found is None:
            front, captures = _front(function, names, granted, key)
        else:
            asked = {name: names[name] for name in found.asked if name in names}

            def translated() -> tuple[PrimFunc, Mapping[str, object]]:
                from tirlite.dsl import translate

                made = translate(function, asked)
                return _allowing(made.func, granted), made.captures

            front = KnownFront(found, translated)
        seconds = perf_counter() - start
    kernel = Kernel(front, options, seconds=seconds, doc=function.__doc__, captures=captures)
    kernel.__module__, kernel.__qualname__ = function.__module__, function.__qualname__
    return kernel


def _front(
    function: FunctionType, names: Mapping[str, object], granted: tuple[Permission, ...], key: bytes | None
) -> tuple[Front, Mapping[str, object]]:
    """Translates a function, and caches it under the key if there is one; also returns its captured constants."""
    from tirlite.dsl import translate

    made = translate(function, names)
    front = Front(_allowing(made.func, granted))
    if key is not None:
        from tirlite.driver.manifest import Known, keep_known
        from tirlite.runtime.head import Head

        def found() -> Known:
            return Known(
                Head(front.signature, tuple(front.unfit), tuple(front.partial)), front.content, str(front.func), ()
            )

        keep_known(key, function, names, made.lookups, found)
    return front, made.captures


def _no_function(given: object) -> NoKernel:
    of = type(given)
    kind = an(of.__name__)
    if issubclass(of, Kernel):
        return NoKernel(kind, "it is one already; `tl.compile(kernel, ...)` makes one with other options")
    if issubclass(of, (staticmethod, classmethod)):
        return NoKernel(kind, "write @staticmethod above @tl.kernel, which stands next to the `def`")
    if hasattr(given, "__wrapped__") or issubclass(of, partial):
        return NoKernel(kind, "write @tl.kernel next to a `def`, below other decorators")
    if of.__module__.startswith("tirlite.graph."):  # which knows this package, not the other way around
        return NoKernel(kind, "`tl.graph.compile` compiles the function of a graph")
    return NoKernel(kind)


_COMPILER = Compiler()
compile = _COMPILER.compile  # noqa: A001
kernel = _COMPILER.kernel
