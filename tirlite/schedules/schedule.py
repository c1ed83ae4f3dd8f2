"""Schedule: a function, and the steps that made it from a kernel's function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from numbers import Integral
from typing import TYPE_CHECKING, Protocol, TypeVar

from tirlite.analysis.facts import Facts
from tirlite.diag import boundary
from tirlite.diag.error import demand_kind
from tirlite.ir import Buffer, PrimFunc
from tirlite.ir.demand import demand_prim_func
from tirlite.ir.dtype import i64
from tirlite.late import LateModule
from tirlite.record import cached_property
from tirlite.rewrite.forms import FormLimits
from tirlite.rewrite.normalize import Normalize
from tirlite.rewrite.pipeline import ForSizes, after
from tirlite.schedules.handle import BufferHandle, BufferName, LoopHandle, LoopName, buffer_named, loop_named, name_of
from tirlite.schedules.step import ScheduleStep, does_not_fit, plain

if TYPE_CHECKING:
    from tirlite.rewrite.pipeline import Known, Pass, Rewritten
    from tirlite.rewrite.simplify import simplify
    from tirlite.schedules import (
        annotate,
        cache_write,
        compute_at,
        dots,
        expand,
        inline,
        join,
        pack,
        pack_padded,
        peel,
        precompute,
        reorder,
        rescale,
        rfactor,
        scan,
        shrink,
        specialize,
        split,
        store_at,
        tensorize,
        tile,
        unroll_jam,
        vectorize,
    )
else:  # a schedule takes few of the steps that there are
    simplify = LateModule("tirlite.rewrite.simplify.simplify")
    _steps = """
        annotate cache_write compute_at dots expand inline join pack pack_padded peel precompute reorder rescale
        rfactor scan shrink specialize split store_at tensorize tile unroll_jam vectorize
    """
    globals().update({each: LateModule(f"tirlite.schedules.{each}") for each in _steps.split()})


K = TypeVar("K")
V = TypeVar("V")

_LIMITS = {"large": "large_from", "small": "small_below"}


class HasIr(Protocol):
    """A kernel: anything with a function as `ir`."""

    ir: PrimFunc


class Schedule:
    """A function and the steps that transform its loops. Made by `tl.schedule(kernel)`.

    Each method applies a step to `func`, or raises KernelError and leaves `func` unchanged if results might change,
    with the accesses that forbid the step. Loops and buffers are given by name; steps name the loops that they make.
    `steps` are those applied, and `str` of a schedule is the Python code that applies them. If tirlite has chosen the
    schedule, `notes` give the figures behind it, and which loops stay in order and why; they print as comments.

    >>> import tirlite as tl
    >>> n, m = tl.dims("n m")
    >>> @tl.kernel
    ... def turned(x: tl.f32[n, m], y: tl.f32[m, n]):
    ...     for i in range(n):
    ...         for j in range(m):
    ...             y[j, i] = x[i, j]
    >>> s = tl.schedule(turned)
    >>> s.split("i", 16)
    >>> s.reorder("i.outer", "j", "i.inner")
    >>> print(s)
    s = tl.schedule(turned) s.split('i', 16) s.reorder('i.outer', 'j', 'i.inner')
    """

    def __init__(self, func: PrimFunc, steps: Iterable[Pass] = (), *, figures: Iterable[str] | None = None) -> None:
        """`figures`: those behind the steps, if tirlite has chosen them."""
        demand_prim_func(func, "schedule()")
        self.steps: tuple[Pass, ...] = ()
        self._known: dict[PrimFunc, tuple[Pass, Rewritten]] = {}
        self._written = self._func = Normalize()(func)
        for each in steps:
            self.apply(each)
        self._figures = None if figures is None else tuple(figures)
        self._chosen = self._func

    @classmethod
    def by(cls, author: Callable[[Schedule], object], func: PrimFunc) -> Schedule:
        """The schedule of a function after `author` has applied its steps."""
        made = cls(func)
        author(made)
        return made

    @property
    def known(self) -> Known:
        """What the steps have made of the function so far, so that a pipeline need not run them again."""
        return self._known

    @property
    def func(self) -> PrimFunc:
        """The function after all steps, simplified."""
        return simplify.Simplify()(self._func)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """The figures behind the steps that tirlite has chosen, and which loops stay in order and why."""
        # Told when they are asked for: simplifying takes as long as all steps.
        if self._figures is None:
            return ()
        from tirlite.schedules.order import orders

        return tuple(dict.fromkeys((*self._figures, *orders(simplify.Simplify()(self._chosen)))))

    def apply(self, step: Pass) -> None:
        """Applies a step, or any other pass."""
        with boundary:
            demand_kind("apply", step, Callable)  # type: ignore[arg-type]
            if isinstance(step, ScheduleStep):
                step = plain(step)
                made = step.on(Facts(self._func))
                self._known[self._func] = step, made
                self._func = made.func
            else:
                self._func = after(step, Facts(self._func)).func
        self.steps = (*self.steps, step)

    def loop(self, path: str, place: int | None = None) -> LoopHandle:
        """A handle of the loop of this name, or at the end of this path of enclosing loops' names, as `i/j`.

        `place` picks one of several, in program order. Raises KernelError if there is none, or, without `place`,
        several.
        """
        handle = LoopHandle(path, place)
        with boundary:
            _demand_place("loop", path, place)
            loop_named(self._func, handle)
        return handle

    def buffer(self, name: str, place: int | None = None) -> Buffer:
        """The parameter or allocation of this name.

        `place` picks one of several, in program order. Raises KernelError if there is none, or, without `place`,
        several.
        """
        with boundary:
            _demand_place("buffer", name, place)
            return buffer_named(self._func, name if place is None else BufferHandle(name, place))

    def split(self, loop: LoopName, by: int, *, tail: str = "short") -> None:
        """Splits a loop into `i.outer`, over blocks of `by` iterations, and `i.inner`, within a block.

        The last block is shorter, or, as `tail` says, guarded, masked, peeled or overlapped.
        """
        self.apply(split.Split(loop, by, tail))

    def reorder(self, *loops: LoopName) -> None:
        """Puts perfectly nested loops into this order, from the outside in."""
        self.apply(reorder.Reorder(loops))

    def fuse(self, outer: LoopName, inner: LoopName, *, flat: bool = False, rows_of: BufferName | None = None) -> None:
        """Fuses two nested loops into `i.j`; with `flat`, it indexes arrays with whole rows as flattened views.

        With `rows_of`, it goes through the longer rows of a buffer that is read at windows, in place.
        """
        self.apply(split.Fuse(outer, inner, flat, rows_of))

    def join(self, *loops: LoopName, behind: int | tuple[int, ...] = 0) -> None:
        """Joins consecutive loops into one; the others run `behind` iterations after the first."""
        self.apply(join.Join(loops, behind))

    def skew(self, loop: LoopName, *, along: LoopName, by: int = 1) -> None:
        """Shifts a loop by `by` for each iteration of `along`, a loop around it, so that both can be tiled."""
        self.apply(tile.Skew(loop, along, by))

    def tile(self, sizes: Mapping[LoopName, int]) -> None:
        """Tiles perfectly nested loops by these sizes."""
        self.apply(tile.Tile(_items("tile", sizes)))

    def specialize(self, loop: LoopName, least: Mapping[str, int | str]) -> None:
        """Makes a second version of a loop, `i.else`, for calls in which loops, or products of them, are shorter."""
        self.apply(specialize.Specialize(loop, _items("specialize", least)))

    def distribute(self, loop: LoopName, *, out_of: LoopName, behind: bool = False) -> None:
        """Moves the statements before `loop` into a nest of their own, out of the loops around it up to `out_of`.

        With `behind` the loop moves with them, and the statements after it stay.
        """
        self.apply(reorder.Distribute(loop, out_of, behind))

    def compute_at(self, loop: LoopName, *, at: LoopName) -> None:
        """Moves the nest that computes temporaries into the loop `at` that reads them, for what it needs."""
        self.apply(compute_at.ComputeAt(loop, at))

    def store_at(self, *buffers: Buffer | str, at: LoopName) -> None:
        """Keeps only the lines of temporaries that an iteration of `at` uses, as a sliding window."""
        self.apply(store_at.StoreAt(tuple(map(self._name, buffers)), at))

    def shrink(self, *buffers: Buffer | str) -> None:
        """Moves temporaries (all by default) into the innermost body with all their uses, and shrinks them."""
        self.apply(shrink.Shrink(tuple(map(self._name, buffers))))

    def inline(self, buffer: Buffer | str) -> None:
        """Computes the elements of a temporary where they are read, and stores none."""
        self.apply(inline.Inline(self._name(buffer)))

    def expand(self, buffer: Buffer | str, *, at: LoopName) -> None:
        """Allocates a buffer of the body of `at` once before the loop, with an axis for the iterations."""
        self.apply(expand.Expand(self._name(buffer), at))

    def precompute(self, loop: LoopName) -> None:
        """Stores the elementary function that a loop computes, for itself and for later loops that compute the same."""
        self.apply(precompute.Precompute(loop))

    def inline_lets(self, loop: LoopName) -> None:
        """Replaces the names in the body of a loop by their values, except for values that read memory."""
        self.apply(inline.InlineLets(loop))

    def pack(
        self,
        buffer: Buffer | str,
        *,
        at: LoopName,
        axes: Iterable[LoopName],
        whole: int = 1,
        masked: bool = False,
        cast: str = "",
    ) -> None:
        """Copies what the body of `at` reads of a buffer, in the order in which the loops `axes` read it."""
        self.apply(pack.Pack(self._name(buffer), at, _loops("pack", axes), whole, masked, cast))

    def pack_padded(self, buffer: Buffer | str, *, at: LoopName, axes: Iterable[LoopName], whole: int) -> None:
        """Packs what the body of `at` reads under a condition, with the constant that it uses elsewhere as padding."""
        self.apply(pack_padded.PackPadded(self._name(buffer), at, _loops("pack_padded", axes), whole))

    def dots(
        self,
        *,
        outside: LoopName,
        at: LoopName,
        axes: Iterable[LoopName],
        whole: int,
        types: tuple[str, str],
        once: bool = False,
        masked: bool = False,
    ) -> None:
        """Computes sums of products of narrow integers by dot products of packed copies, made in `outside` and `at`."""
        self.apply(dots.Dots(outside, at, _loops("dots", axes), whole, types, once, masked))

    def tensorize(self, loop: LoopName, definition: PrimFunc | HasIr, implementation: PrimFunc | HasIr) -> None:
        """Replaces a loop that computes what the kernel `definition` does by the kernel `implementation`."""
        with boundary:
            self.apply(tensorize.Tensorize(loop, _func(definition), _func(implementation)))

    def cache_read(self, buffer: Buffer | str, *, at: LoopName) -> None:
        """Copies the part of a buffer that an iteration of `at` reads, with the same axes."""
        self.apply(cache_write.CacheRead(self._name(buffer), at))

    def cache_write(self, buffer: Buffer | str, *, at: LoopName) -> None:
        """Keeps the elements of a buffer that the body of `at` updates in a local scalar, or in a tile."""
        self.apply(cache_write.CacheWrite(self._name(buffer), at))

    def vectorize(self, loop: LoopName, *lanes: int, padded: bool = False, masked: bool = False) -> None:
        """Vectorizes a loop with this many lanes; further, narrower widths are for the remainder."""
        self.apply(vectorize.Vectorize(loop, lanes, padded, masked))

    def rfactor(self, loop: LoopName, *, at: LoopName | None = None) -> None:
        """Gives each iteration of a reduction a partial result, for the nested reductions from `at` inwards."""
        self.apply(rfactor.Rfactor(loop, at))

    def rescale(self, first: LoopName, *others: LoopName) -> None:
        """Sums terms of exp(x - maximum) in the loop that computes the maximum, rescaling the sums when it grows."""
        self.apply(rescale.Rescale(first, others))

    def scan(self, loop: LoopName, by: int) -> None:
        """Splits a running sum into independent blocks of `by` iterations."""
        self.apply(scan.Scan(loop, by))

    def peel(self, loop: LoopName, *, first: int = 0, last: int = 0) -> None:
        """Peels iterations off the ends of a loop: as many as given, or those that reach beyond the ends of arrays."""
        self.apply(peel.Peel(loop, first, last))

    def unroll(self, loop: LoopName, by: int = 0) -> None:
        """Unrolls a loop by `by`, or completely."""
        self.apply(unroll_jam.Unroll(loop, by))

    def delinearise(self, loop: LoopName, by: int) -> None:
        """Splits a loop over flattened axes into one over rows of `by` elements, and one within a row."""
        self.apply(split.Delinearise(loop, by))

    def annotate(self, loop: LoopName, text: str) -> None:
        """Puts a remark around a loop."""
        self.apply(annotate.Annotate(loop, text))

    def nontemporal(self, buffer: Buffer | str, *, at: LoopName) -> None:
        """Has the vectors that a loop stores to a buffer bypass the caches."""
        self.apply(annotate.Nontemporal(self._name(buffer), at))

    def unroll_jam(self, loop: LoopName, by: int, *, rolled: bool = False) -> None:
        """Unrolls a loop by `by` and fuses the copies of its inner loops, which then share their loads."""
        self.apply(unroll_jam.UnrollJam(loop, by, rolled))

    def parallel(self, loop: LoopName) -> None:
        """Makes a loop parallel: its iterations are distributed over workers."""
        self.apply(annotate.Parallel(loop))

    def for_large(self, least: int, author: Callable[[Schedule], object]) -> None:
        """Applies the steps of `author` instead of these in calls whose arrays have at least `least` bytes."""
        self._for_sizes("large", least, author)

    def for_small(self, below: int, author: Callable[[Schedule], object]) -> None:
        """Applies the steps of `author` instead of these in calls whose arrays have fewer than `below` bytes."""
        self._for_sizes("small", below, author)

    def _for_sizes(self, size: str, given: int, author: Callable[[Schedule], object]) -> None:
        with boundary:
            demand_kind(f"for_{size}", given, Integral)
            demand_kind(f"for_{size}", author, Callable)  # type: ignore[arg-type]
            if not 0 < given <= i64.max:
                raise does_not_fit(f"s.for_{size}({given}, {size})", "it takes a number of bytes from 1 to 2**63 - 1")
            made = ForSizes(FormLimits(**{_LIMITS[size]: int(given)}), Schedule.by(author, self._written).steps)
            if any(isinstance(each, ForSizes) for each in made.steps):
                raise does_not_fit(f"s.for_{size}({given}, {size})", "its steps are for all sizes that it is for")
            if any(isinstance(each, ForSizes) and each.form is made.form for each in self.steps):
                raise does_not_fit(f"s.for_{size}({given}, {size})", f"there are steps for {made.form.value} already")
            self.apply(made)

    def _name(self, buffer: Buffer | str) -> BufferName:
        return name_of(self._func, buffer) if isinstance(buffer, Buffer) else buffer

    def __str__(self) -> str:
        notes = (f"# {each}" for each in self.notes)
        return "\n".join([f"s = tl.schedule({self._func.name})", *map(_text, self.steps), *notes])

    def __repr__(self) -> str:
        return f"<Schedule of {self._func.name}: {len(self.steps)} steps>"


def _demand_place(method: str, name: object, place: object) -> None:
    demand_kind(method, name, str)
    if place is not None:
        demand_kind(method, place, int)


def _items(method: str, given: Mapping[K, V]) -> tuple[tuple[K, V], ...]:
    with boundary:
        demand_kind(method, given, Mapping)
    return tuple(given.items())


def _loops(method: str, given: Iterable[LoopName]) -> tuple[LoopName, ...]:
    with boundary:
        demand_kind(method, given, Iterable)
    return tuple(given)


def _text(step: Pass) -> str:
    """The Python code that applies a step."""
    if isinstance(step, ForSizes):
        size = "large" if step.limits.large_from else "small"
        steps = [f"    {line}" for each in step.steps for line in _text(each).split("\n")]
        limit = getattr(step.limits, _LIMITS[size])
        return "\n".join((f"def {size}(s):", *steps, f"s.for_{size}({limit}, {size})"))
    if isinstance(step, ScheduleStep):
        return str(step)
    kind = type(step)
    if not hasattr(kind, "__dataclass_fields__"):
        return f"s.apply({getattr(step, '__name__', f'{kind.__name__}()')})"
    # A pass's target and version come from the compilation, not from the schedule.
    own = [each for each in fields(step) if each.name not in ("name", "form", "target")]  # type: ignore[arg-type]
    given = [f"{each.name}={value!r}" for each in own if (value := getattr(step, each.name)) != each.default]
    home = "tl.passes." if kind.__module__.startswith("tirlite.") else ""
    return f"s.apply({home}{kind.__name__}({', '.join(given)}))"


def schedule(kernel: PrimFunc | HasIr) -> Schedule:
    """A schedule of a kernel, or of a PrimFunc, without steps. Raises CallTypeError for anything else."""
    with boundary:
        return Schedule(_func(kernel))


def _func(kernel: PrimFunc | HasIr) -> PrimFunc:
    """The function of a kernel. Raises CallTypeError for anything else."""
    ir = getattr(kernel, "ir", kernel)
    demand_prim_func(ir, "schedule()")
    assert isinstance(ir, PrimFunc)
    return ir
