"""Runs passes one after the other. Observers receive every step: they print the program, write files, or check it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from pathlib import Path
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Protocol, TextIO, TypeAlias, dataclass_transform
from weakref import ref

from tirlite.analysis.facts import Facts
from tirlite.collection import collection_paused
from tirlite.diag import CallTypeError, Message, public
from tirlite.diag.error import an, demand_kind
from tirlite.gate import GATE
from tirlite.ir import PrimFunc, validate
from tirlite.ir.demand import of_prim_func, pass_call
from tirlite.record import Record, dashed, record
from tirlite.rewrite.forms import Form, FormLimits

if TYPE_CHECKING:
    from tirlite.plan import Plan
    from tirlite.rewrite.storage.shape_rewrite import ByShape


class PassResult(Message):
    """A pass of one's own returned something other than a function of the IR.

    Example: `tl.compile(f, passes=[my_pass])`, where `my_pass` has no `return`.
    Fix: Return the function that it was given, or another one that does the same.
    """

    raises = CallTypeError
    title = "the pass {name} returned {given}, and must return a PrimFunc"


class Pass(Protocol):
    """A rewrite PrimFunc -> PrimFunc with a name: a small frozen dataclass whose fields are its options.

    A plain function is a pass, too, under its own name.
    """

    @property
    def name(self) -> str: ...

    def __call__(self, func: PrimFunc) -> PrimFunc: ...


@record
class Rewritten:
    """The result of a pass: the function, and what else the pass found out.

    `plan`: the storage plan that it followed, or what makes one for each call; None if nothing was planned.
    `facts`: those of the function, if the pass has asked for some. `limits`: which calls are for other versions.
    """

    func: PrimFunc
    plan: Plan | ByShape | None = None
    facts: Facts | None = None
    limits: FormLimits = FormLimits()

    def facts_after(self, given: Facts) -> Facts:
        """The facts of the function, for a pass that was given the facts `given`."""
        return self.facts or (given if self.func is given.func else Facts(self.func))


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class FactsPass(Record):
    """A pass that uses facts of the function, which a pipeline passes on as long as the function stays the same.

    A subclass defines `rewritten`, or `on` if it returns more than the function. Its name is derived from that of the
    class, as `check-races`, unless it sets another.
    """

    name: ClassVar[str]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" not in cls.__dict__:
            cls.name = dashed(cls.__name__)

    @pass_call
    def __call__(self, func: PrimFunc) -> PrimFunc:
        return self.on(Facts(func)).func

    @pass_call
    def planned(self, func: PrimFunc) -> Rewritten:
        """The function after the pass, with the plan that it followed, or with `per_shape` what makes plans."""
        return self.on(Facts(func))

    def on(self, facts: Facts) -> Rewritten:
        """The result for the function of these facts."""
        return Rewritten(self.rewritten(facts))

    def rewritten(self, facts: Facts) -> PrimFunc:
        """The function of these facts after the pass."""
        return facts.func


@record
class Step:
    """A pass that has run. `number` counts from 1; for `plan` and `limits` see `Rewritten`."""

    number: int
    name: str
    before: PrimFunc
    after: PrimFunc
    seconds: float
    plan: Plan | ByShape | None = None
    limits: FormLimits = FormLimits()

    @property
    def changed(self) -> bool:
        return self.after is not self.before


Observer: TypeAlias = Callable[[Step], None]
# For functions, a pass that has run and its result.
Known: TypeAlias = Mapping[PrimFunc, tuple[Pass, Rewritten]]
_NOTHING: Known = MappingProxyType({})


class HasKnown(Protocol):
    """A schedule, which has applied its steps already."""

    steps: tuple[Pass, ...]

    @property
    def known(self) -> Known: ...


class Taken(tuple["Pass", ...]):
    """The steps of a schedule, with access to the results it knows as long as it exists. Equal to the plain tuple."""

    schedule: Callable[[], HasKnown | None]

    @classmethod
    def of(cls, schedule: HasKnown) -> Taken:
        made = cls(schedule.steps)
        made.schedule = ref(schedule)
        return made

    def __reduce__(self) -> tuple[object, ...]:
        return tuple, (tuple(self),)

    @property
    def known(self) -> Known:
        schedule = self.schedule()
        return _NOTHING if schedule is None else schedule.known


@of_prim_func
def run_pipeline(
    func: PrimFunc, passes: Iterable[Pass], observers: Iterable[Observer] = (), *, known: Known = _NOTHING
) -> PrimFunc:
    """`func` after all passes, in order. Each observer is called after each pass. `known` steps are not run again."""
    watching = tuple(observers)
    facts = Facts(func)
    for number, each in enumerate(passes, start=1):
        start = perf_counter()
        with collection_paused():
            ran = known.get(facts.func)
            made = ran[1] if ran is not None and ran[0] is each else _made(each, facts)
            seconds = perf_counter() - start
            step = Step(number, _name(each), facts.func, made.func, seconds, made.plan, made.limits)
            # Frees the previous facts before the collector resumes and would visit them.
            facts = made.facts_after(facts)
        with GATE.outside():
            for observer in watching:
                observer(step)
    return facts.func


def after(each: Pass, facts: Facts) -> Facts:
    """The facts of a function after a pass: the same object if it changes nothing."""
    return _made(each, facts).facts_after(facts)


def _made(each: Pass, facts: Facts) -> Rewritten:
    if isinstance(each, FactsPass):
        return each.on(facts)
    func = each(facts.func)
    if not isinstance(func, PrimFunc):
        raise PassResult(_name(each), an(type(func).__name__)).error()
    return Rewritten(func)


def _name(each: Pass) -> str:
    return getattr(each, "name", getattr(each, "__name__", type(each).__name__))


class ForSizes(FactsPass):
    """Gives calls whose arrays are small, or large, in total a version with `steps` of its own.

    Changes nothing by itself, and has no effect in a version for all sizes.
    """

    limits: FormLimits
    steps: tuple[Pass, ...]

    @property
    def form(self) -> Form:
        return Form.LARGE if self.limits.large_from else Form.SMALL

    def on(self, facts: Facts) -> Rewritten:
        return Rewritten(facts.func, facts=facts, limits=self.limits)


def versions(steps: tuple[Pass, ...]) -> dict[Form, tuple[Pass, ...]]:
    """The steps for usual calls, and those for small or large arrays, if any."""
    apart = [each for each in steps if isinstance(each, ForSizes)]
    usual = tuple(each for each in steps if each not in apart)
    return {Form.USUAL: usual, **{each.form: each.steps for each in apart}}


@record
class PrintAfter:
    """Prints the program after the passes called `names`, or after every pass, to `file` (standard output).

    In a terminal it is coloured.
    """

    names: tuple[str, ...] = ()
    file: TextIO | None = None

    def __call__(self, step: Step) -> None:
        if not self.names or step.name in self.names:
            from tirlite.show import python_text, write

            write(python_text(f"{_heading(step)}\n{step.after}\n"), self.file)


@record
class DumpFolder:
    """Writes `00-input.py`, `01-PASS.py` ... into a folder, which is created if it is missing."""

    folder: Path

    def __call__(self, step: Step) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        if step.number == 1:
            self._write("00-input.py", "# input", step.before)
        self._write(f"{step.number:02}-{step.name}.py", _heading(step), step.after)

    def _write(self, name: str, heading: str, func: PrimFunc) -> None:
        (self.folder / name).write_text(f"{heading}\n{func}\n", encoding="utf-8")


@public
def verify_after(step: Step) -> None:
    """Raises the validator's error if a pass has left an ill-formed program."""
    demand_kind("verify_after", step, Step)
    if step.changed:
        validate(step.after)


def _heading(step: Step) -> str:
    return f"# after {step.name}" + ("" if step.changed else " (unchanged)")
