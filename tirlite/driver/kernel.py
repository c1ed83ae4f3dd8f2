"""Kernel: a function that can be called on NumPy arrays, and inspected on its way to native code."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

from tirlite.diag import TirliteError, boundary
from tirlite.diag.error import demand_kind
from tirlite.driver.build import Version, version_of
from tirlite.driver.front import Front
from tirlite.gate import GATE
from tirlite.ir.demand import demand_prim_func
from tirlite.record import cached_property, parts_of, replace
from tirlite.rewrite.forms import Form
from tirlite.runtime import Binder
from tirlite.target.convention import VERSIONS

if TYPE_CHECKING:
    from concurrent.futures import Future
    from inspect import Signature
    from os import PathLike
    from pathlib import Path

    import numpy.typing as npt

    from tirlite.driver.build import QuickCalls
    from tirlite.driver.profile import Profile
    from tirlite.driver.safety import SafetyReport
    from tirlite.driver.strided import StridedForm, StridedForms
    from tirlite.driver.timed_calls import TimedCalls
    from tirlite.driver.timing import Timing
    from tirlite.ir import Buffer, Node, PrimFunc, Var
    from tirlite.plan import Plan
    from tirlite.rewrite.options import Options
    from tirlite.runtime import Binding
    from tirlite.runtime.quick import QuickCall
    from tirlite.schedules import Schedule

    Array: TypeAlias = npt.NDArray[Any]


# After so many calls a quick call is made. That costs what four to ten quick calls save, and some milliseconds for the
# first kernel of a process.
_OFTEN = 4


class _Call:
    """The signature of a kernel for `inspect.signature` and editors; the class keeps its usual signature."""

    def __get__(self, instance: Kernel | None, owner: type[Kernel]) -> Signature:
        if instance is None:
            raise AttributeError("__signature__")
        from tirlite.runtime.signature_text import call_signature

        return call_signature(instance._front.signature.func, instance.fixed or ())


class Kernel:
    """A compiled function. Call it with arrays and numbers for its parameters, by position or by name.

    Every argument is checked before anything is written: type, byte order, shape, alignment, writability, and that no
    array which the kernel writes overlaps another. Arrays may have any strides. Outputs (`tl.out`) may be left out;
    those are allocated and returned, one array or a tuple in the order of the parameters. Those that are given are
    filled and not returned.

    Native code is compiled once for all sizes, at the first call. If sizes choose between two loop nests, as for small
    and large matrices, each is compiled when a call first needs it. Storage is planned for dims of at least 1 unless
    declared otherwise; the first call with such a dim of 0 compiles a second version. Element-wise loops have another
    version for arrays that exceed the caches. A call that breaks any other fact of a dim is refused. Several threads
    may call a kernel at the same time, and it lets other Python threads run.

    No access is out of bounds: what is not proved is checked, see docs/safety.md. If a proof needs conditions on dims
    and numbers, a call that does not meet them runs another version, with checks and with loops in order.

    Raises CallTypeError and CallValueError for arguments that do not fit, KernelAssertionError for an assert that does
    not hold, KernelError at the first call for what cannot be compiled.
    """

    __signature__ = _Call()

    def __init__(
        self,
        func: PrimFunc | Front,
        options: Options,
        *,
        seconds: float = 0.0,
        doc: str | None = None,
        captures: Mapping[str, object] | None = None,
        fixed: Mapping[str, Array] | None = None,
    ) -> None:
        """`seconds`: the time of the front end. `captures`: the captured constants.

        `fixed`: arrays for some parameters, by name, that are used for all calls and not passed by callers.
        Raises KernelError for a shape that cannot be checked.
        """
        from tirlite.rewrite.options import Options

        if not isinstance(func, Front):
            demand_prim_func(func, "Kernel()")
        demand_kind("Kernel", options, Options)
        self._front = func if isinstance(func, Front) else Front(func)
        self.options = options
        self.name = self._front.name
        self.__name__ = self.__qualname__ = self.name
        self.__doc__ = doc
        self._captures = dict(captures or {})
        self._front_end = seconds
        self.fixed = fixed
        self._binder = Binder(self._front.signature, fixed, self._front)
        self._version = Version(self._front, options)
        self._others: dict[tuple[Front, bool, Form], Version] = {}
        self._quick: QuickCall | None = None
        self._quick_versions: QuickCalls = ()

    def __call__(self, /, *args: object, **named: object) -> Array | tuple[Array, ...] | None:
        if self._quick is not None and not named:
            if (fault := self._quick(*args)) is None:
                return None
            if self._is_done(fault) or self._called_with_others(args):
                return None
        if not named and (results := self.called_on_inputs(args)) is not None:
            return _one_or_all(results)
        try:
            binding, form = self._bound(args, named)
            usual = self._in_form(binding.is_empty, Form.USUAL, form)
            version, in_order = self._serving(usual, binding, form), None
            if not version.run(binding):
                in_order = self._in_form(binding.is_empty, Form.IN_ORDER, form)
                in_order.run(binding)
        except TirliteError:
            # A boundary around the whole would slow down each successful call.
            with boundary:
                raise
        served, is_left = version.served, in_order is not None
        if served.calls[is_left] < _OFTEN and not binding.is_empty:
            served.calls[is_left] += 1
            if served.calls[is_left] == _OFTEN:
                self._call_quickly(served, in_order, usual, form)
        return _one_or_all(binding.results)

    def _call_quickly(
        self, served: Version, in_order: Version | None, usual: Version, form: StridedForm | None
    ) -> None:
        """Adds a quick call for a version, which from now on checks arguments first."""
        with GATE.inside(self):
            others = self._quick_versions
            made = served.quick(usual.limits, form.count if form else 0, self._binder.constants, others, in_order)
            if made is not others and len(made) <= VERSIONS:
                self._quick_versions = made
                self._quick = made[-1][0] if self.fixed is None else None

    def called_on_inputs(self, args: Sequence[object]) -> tuple[Array, ...] | None:
        """The results of a call with inputs only, if a quick call serves it; else None, with nothing done."""
        whole, results = (self._quick_versions and self._binder.completed(args)) or ((), ())
        return results if results and self._is_done(self._quick_versions[-1][0](*whole)) else None

    def _bound(self, args: Sequence[object], named: Mapping[str, object]) -> tuple[Binding, StridedForm | None]:
        """Checks a call; returns it in the form for the arrays' strides."""
        binding = self._binder.bind(args, named)
        if binding.strides is None:
            return binding, None
        form = self._strided.of(binding)
        return form.called(binding), form

    def _serving(self, usual: Version, binding: Binding, form: StridedForm | None) -> Version:
        """The usual version, or the one for small or for large arrays."""
        of_sizes = usual.limits.form(binding.bytes)
        return usual if of_sizes is Form.USUAL else self._in_form(binding.is_empty, of_sizes, form)

    def _is_done(self, outcome: object) -> bool:
        """Whether a quick call with this outcome served the call. Raises its fault."""
        if type(outcome) is int:
            version, fault = self._quick_versions[outcome % VERSIONS][1], outcome // VERSIONS
            if fault != version.executable.in_order:
                with boundary:
                    raise version.message(fault).error()
        return outcome is None

    def _called_with_others(self, args: tuple[object, ...]) -> bool:
        """Whether a quick call served the call after viewing arrays of other libraries as NumPy's."""
        from tirlite.runtime.foreign import seen_by_dlpack

        seen = seen_by_dlpack(args)
        return seen is not None and self._quick is not None and self._is_done(self._quick(*seen))

    @overload
    def compile(self, *, background: Literal[False] = False) -> Kernel: ...

    @overload
    def compile(self, *, background: Literal[True]) -> Future[Kernel]: ...

    def compile(self, *, background: bool = False) -> Kernel | Future[Kernel]:
        """Compiles the kernel now, not at its first call, and returns it.
        With `background` a thread compiles, and a future is returned whose result is the kernel; a call that comes
        before it is done waits for it. A process that is forked meanwhile compiles for itself. Versions for empty
        arrays, for large ones and for arrays with strides are compiled at the first call that needs them. Raises
        KernelError, here or in the future, for what cannot be compiled.
        """
        if background:
            from tirlite.driver.ahead import Compilation

            return Compilation(self, self.name, lambda: self._version.executable)
        with boundary:
            _ = self._version.executable
        return self

    def with_options(self, options: Options, func: PrimFunc | None = None) -> Kernel:
        """A kernel of the same function, or of `func`, with other options."""
        made = Kernel(func or self._front, options, seconds=self._front_end, doc=self.__doc__, fixed=self.fixed)
        made._captures = self._captures
        return made

    def interpret(self, /, *args: object, **named: object) -> Array | tuple[Array, ...] | None:
        """A call run by the reference interpreter on the function as written: slow, with all checks."""
        from tirlite.interp import interpret

        with boundary:
            binding, form = self._bound(args, named)
            func = self.ir if form is None else form.func
            arguments: dict[Var | Buffer, object] = dict(zip(func.params, binding.arguments, strict=True))
            arguments |= zip(func.dims, binding.dims, strict=True)
            interpret(func, arguments)
        return _one_or_all(binding.results)

    def profile(self, /, *args: object, **named: object) -> Profile:
        """How long each outermost loop takes in a call, the bytes that it moves, and its share of the machine's limit.

        Calls the kernel up to 25 times, for about two seconds, each time on the same values, so its outputs are those
        of one call. A kernel that prints does so in each call. It is compiled again for this, with time stamps. Raises
        what a call raises.
        """
        from tirlite.driver.profile import profile_of

        with boundary:
            return profile_of(self.timed_calls(args, named))

    def timed_calls(self, args: tuple[object, ...], named: Mapping[str, object]) -> TimedCalls:
        """Calls with these arguments whose loops are timed, for `profile`."""
        from tirlite.driver.timed_calls import TimedCalls

        binding, form = self._bound(args, named)
        version = self._serving(self._in_form(binding.is_empty, Form.USUAL, form), binding, form)
        return TimedCalls.of(version, binding, lambda: self._in_form(binding.is_empty, Form.IN_ORDER, form))

    def arguments(self, /, *args: object, **named: object) -> dict[str, object]:
        """The arguments of a call by name, with outputs that were left out allocated.
        Arrays that are the same for all calls are not included. Raises what a call raises for arguments that do not
        fit.
        """
        with boundary:
            binding = self._binder.bind(args, named)
        names, fixed = self._binder.signature.names, self.fixed or {}
        return {name: value for name, value in zip(names, binding.arguments, strict=True) if name not in fixed}

    @property
    def ir(self) -> PrimFunc:
        """The function as it was written."""
        return self._front.func

    @property
    def front(self) -> Front:
        """The function, or its head alone if an earlier process translated it."""
        return self._front

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the parameters that are outputs."""
        return tuple(each.name for each in self._front.signature.func.outputs)

    @property
    def content(self) -> bytes:
        """A digest of the function and its names, the same in every process."""
        return self._front.content

    @property
    def captures(self) -> Mapping[str, object]:
        """The constants captured from around the function, as they were then; changing one has no effect.

        Names in an inline function are prefixed with its name.
        """
        return MappingProxyType(self._captures or self._front.captures)

    @property
    def lowered(self) -> PrimFunc:
        """The function after all passes, as code is generated from it."""
        with boundary:
            return self._version.rewritten.func

    @property
    def schedule(self) -> Schedule:
        """The schedule: the given steps, or those that tirlite chose."""
        from tirlite.schedules.auto import schedule_of

        with boundary:
            return schedule_of(self.ir, self.options.schedule, self.options.target)

    @property
    def plan(self) -> Plan:
        """The storage plan of the temporaries. Raises PlanError if each shape has its own: see `plan_at`."""
        from tirlite.driver.shapes import one_plan

        with boundary:
            return one_plan(self._binder.signature, self._version.plan)

    def plan_at(self, **sizes: int) -> Plan:
        """The storage plan for one shape: `kernel.plan_at(n=4, m=8)`.

        Names are those of dims and of parameters that are numbers; those that sizes of temporaries depend on are
        needed. Raises CallTypeError for an unknown or a missing name, CallValueError for a value against the facts.
        """
        from tirlite.driver.shapes import is_empty_at, plan_at

        with boundary:
            signature = self._binder.signature
            return plan_at(signature, self._in_form(is_empty_at(signature, sizes), Form.USUAL, None).plan, sizes)

    def plan_page(self) -> str:
        """An HTML page of the storage plan, or of the plans for some shapes; see `Plan.to_html`."""
        from tirlite.plan import Plan

        with boundary:
            plan = self._version.plan
            title = f"Storage plan of {self.name}"
            return plan.to_html(title) if isinstance(plan, Plan) else plan.plans.to_html(title)

    @property
    def plans_made(self) -> tuple[int, int]:
        """With strategy `per_shape`: how many calls found a cached plan, and how many had to make one."""
        versions = [self._version, *self._others.values()]
        return sum(each.plans_kept[0] for each in versions), sum(each.plans_kept[1] for each in versions)

    @property
    def llvm(self) -> str:
        """The LLVM IR as generated."""
        with boundary:
            return self._version.lowered.text

    @property
    def optimised_llvm(self) -> str:
        """The LLVM IR after LLVM's own passes."""
        with boundary:
            return self._version.optimised.llvm

    @property
    def asm(self) -> str:
        """The assembly for the target, by default this machine."""
        with boundary:
            return self._version.optimised.assembly

    @property
    def timing(self) -> Timing:
        """The seconds of the front end, each pass, LLVM's stages and linking, as far as they have run."""
        from tirlite.driver.timing import Timing

        return Timing([("front end", self._front_end), *self._version.stages], self._version.note)

    @property
    def safety(self) -> SafetyReport:
        """How each access is kept in bounds: proved, decided at entry, or checked at the access."""
        from tirlite.driver.safety import safety_report

        with boundary:
            return safety_report(self.ir, self.options)

    def export(
        self,
        folder: str | PathLike[str],
        *,
        name: str | None = None,
        target: str | None = None,
        weights: Literal["object", "file"] = "object",
    ) -> tuple[Path, ...]:
        """The paths of an object file, a C header and a CMake snippet, for programs without Python.

        `name` is the function's name in C; the object's other names begin with it. `target` is "host", or a machine
        such as "x86-64-v3" or "aarch64"; left out, the kernel's own. A network's constants go into the object, or into
        a file that the caller maps.

        Raises KernelError for a kernel that allocates memory as it runs, is planned for each shape, or calls a C
        function by its address; CallValueError for a name that is invalid in C, and for an unknown target.
        """
        from pathlib import Path

        from tirlite.runtime.export.write import demand_options

        with boundary:
            embed, own = weights == "object", self.options.target
            called, machine = self.name if name is None else name, own.name if target is None else target
            demand_options(called, machine, weights, are_some=bool(self.fixed))
            options = replace(self.options, debug=False, target=replace(own, name=machine))
            version = version_of(self._front, options, is_empty=False, form=Form.ALONE)
            return version.export(Path(folder), called, self.fixed or {}, embed=embed)

    def show(self, mark: Node | Buffer | None = None) -> None:
        """Prints the function as written, with a node of `kernel.ir` marked; see `PrimFunc.show`."""
        self.ir.show(mark)

    def _repr_html_(self) -> str:
        """HTML for notebooks: the function as written, after the passes, and its storage plan."""
        from tirlite.plan import Plan
        from tirlite.show import block, escaped, folded, framed_page

        parts = [f"<div><code>{escaped(repr(self))}</code></div>", folded("as written", self.ir._repr_html_())]
        try:
            parts.append(folded("after the passes", self.lowered._repr_html_()))
            plan = self._version.plan
        except TirliteError as error:
            return "".join([*parts, block(error.styled())])
        if isinstance(plan, Plan):
            return "".join([*parts, folded(f"storage plan: {plan.total} bytes", plan._repr_html_())])
        return "".join([*parts, folded("storage plan for each shape", framed_page(plan.plans.to_html()))])

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles by name if importing gives the same kernel in the other process, else as text.

        The text is parsed there, never executed. Source locations are lost.
        """
        # The plan cache belongs to this process.
        from tirlite.driver.content import content_of

        choices = {name: getattr(self.options, name) for name in parts_of(type(self.options)) if name != "cache"}
        home = None
        if _called(self.__module__, self.__qualname__) is self:
            home = (self.__module__, self.__qualname__, content_of(self.content, self.options, self.fixed))
        return _restored, (home, str(self.ir), choices, self.__doc__, dict(self.captures), self.fixed)

    def __copy__(self) -> Kernel:
        return self

    def __deepcopy__(self, known: object) -> Kernel:
        return self

    def __dask_tokenize__(self) -> tuple[str, str]:
        """The kernel's identity for dask: its content."""
        from tirlite.driver.content import content_of

        return "tirlite", content_of(self.content, self.options, self.fixed)

    @cached_property
    def _strided(self) -> StridedForms:
        from tirlite.driver.strided import StridedForms

        return StridedForms(self.ir, self._binder.layouts)

    def _in_form(self, is_empty: bool, form: Form, strided: StridedForm | None) -> Version:
        """The version of a form, for arrays that may be empty or not, dense or not; made when first needed."""
        if not is_empty and form is Form.USUAL and strided is None:
            return self._version
        front = self._front if strided is None else strided.front
        key = front, is_empty, form
        if key not in self._others:
            with GATE.inside(self):
                if key not in self._others:
                    self._others[key] = version_of(front, self.options, is_empty=is_empty, form=form)
        return self._others[key]

    def __repr__(self) -> str:
        return f"<Kernel {self._binder.signature.text}>"


def _restored(
    home: tuple[str, str, str] | None,
    text: str,
    choices: Mapping[str, Any],
    doc: str | None,
    captures: Mapping[str, object],
    fixed: Mapping[str, Array] | None,
) -> Kernel:
    """The kernel of that name in a module if its content is the same here, else one parsed from the text."""
    if home is not None:
        from tirlite.driver.content import content_of

        module, name, content = home
        with suppress(ImportError):
            import_module(module)
        found = _called(module, name)
        if isinstance(found, Kernel) and content_of(found.content, found.options, found.fixed) == content:
            return found
    from tirlite.dsl import parse
    from tirlite.rewrite.options import Options

    return Kernel(parse(text), Options(**choices), doc=doc, captures=captures, fixed=fixed)


def _called(module: str, name: str) -> object:
    """The object of this name in a loaded module, or None."""
    found: object = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _one_or_all(results: tuple[Array, ...]) -> Array | tuple[Array, ...] | None:
    return results[0] if len(results) == 1 else results or None
