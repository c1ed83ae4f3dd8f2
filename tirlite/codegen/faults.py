"""Emits the blocks that stop a compiled kernel at a fault: each frees the heap, and returns the number of the fault."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from tirlite.codegen.arithmetic import convert
from tirlite.codegen.llvm.text import FunctionText, ModuleText
from tirlite.codegen.llvm.values import FALSE, NULL, Value, integer
from tirlite.codegen.memory import Environment, Place
from tirlite.codegen.storage import LARGEST_BYTES
from tirlite.diag import KernelRunError, Message, Span
from tirlite.ir import Assert, Buffer, View, f64, handle, i64
from tirlite.record import replace
from tirlite.target.convention import GIVE, TAKE

if TYPE_CHECKING:
    from tirlite.codegen.reports import FaultReport


class NoMemory(Message):
    """There is no memory for a buffer whose size is known only inside of the kernel.

    Example: `t = tl.alloc(tl.f32[k * k])`, where `k` is read from an array and is a million.
    Fix: Give the buffer an extent that is bounded by the sizes of the arguments, or process the data in pieces.
    """

    raises = KernelRunError
    title = "there is no memory for `{buffer}`"
    label = "allocated here"


class KernelFunction(FunctionText):
    """A function that returns 0, or the fault that stopped it. What its buffers need is freed on all ways.

    `cleanup` is the block to leave through: it frees what the heap holds at this point, and returns the number that
    the slot `%fault` holds. `slots` are the addresses of the buffers on the stack.
    """

    def __init__(self, module: ModuleText, line: int) -> None:
        """`line` is the alignment of what is allocated."""
        super().__init__(module)
        self.line = line
        self.slots: dict[Buffer, Value] = {}
        self.cleanup = "fail"
        self._held: dict[str, tuple[Value, str]] = {}  # block -> the pointer that it frees, the block that follows
        self._tail: list[str] = []
        self.streams = False  # whether stores go past the caches: others see them after a fence
        self.has_tiles = False  # whether it may hold registers that threads are switched the faster without

    def fails(self, stmt: Assert) -> str:
        """The block to branch to where an assert without values does not hold."""
        from tirlite.ir import failure

        return self._stop(failure(stmt, ()))

    def tell(self, report: FaultReport, values: list[Value]) -> None:
        """Ends the function here with a fault that has values to tell, as bits in i64.

        They and the number of the fault are put into a record on the heap, which the caller frees; the function returns
        its address, negated.
        """
        module = self.module
        module.messages.append(report.bare())
        number = len(module.messages)
        module.reports[number] = report
        name = self._recorder(len(values) + 1)
        self.branch(self._leave(self.invoke(i64, name, (integer(number), *values))))

    def stop_if(self, wrong: Value, report: FaultReport, values: Callable[[], list[Value]]) -> None:
        """Ends the function where a bool is true; `values` writes what it takes to tell, which runs only then."""
        failed, passed = self.label("failed"), self.label("passed")
        self.branch_if(wrong, failed, passed)
        around = self.fork()
        self.start(failed)
        self.tell(report, values())
        self.start(passed)
        self.join(around)

    def _recorder(self, count: int) -> str:
        """The function that puts this many numbers into a record; the first of them alone where there is no memory."""
        module, name = self.module, f"tirlite.record{count}"
        if name not in module.inlined:
            body = FunctionText(module)
            numbers = [body.parameter(i64, f"%x{place}") for place in range(count)]
            record = body.call(handle, "malloc", integer(8 * count)) if not module.exported else NULL
            missing, filled = body.label("missing"), body.label("filled")
            body.branch_if(body.compare("icmp eq", record, NULL), missing, filled)
            body.start(missing)
            body.effect(f"ret i64 {numbers[0].text}")
            body.start(filled)
            for place, number in enumerate(numbers):
                body.store(number, body.move(record, integer(place), "i64", flags=""))
            address = body.cast("ptrtoint", record, i64)
            body.effect(f"ret i64 {body.op('sub', integer(0), address).text}")
            module.inlined[name] = body.definition(name, "cold noinline nounwind")
        return name

    def require(self, condition: Value, message: Message) -> None:
        """Ends the function where a bool is false."""
        held = self.label("held")
        self.branch_if(condition, held, self._stop(message))
        self.start(held)

    def _stop(self, message: Message) -> str:
        self.module.messages.append(message)
        return self._leave(integer(len(self.module.messages)))

    def _leave(self, code: Value) -> str:
        """The block that ends the function with a number."""
        label = self.label("fault")
        self._tail += [f"{label}:", f"  store i64 {code.text}, ptr %fault", f"  br label %{self.cleanup}"]
        return label

    @property
    def can_stop(self) -> bool:
        """Whether the function may end with a fault."""
        return bool(self._tail)

    def check(self, code: Value) -> None:
        """Ends the function too, where a function that it called ended with a fault."""
        passed = self.label("passed")
        stopped = self.compare("icmp ne", code, integer(0))
        self.branch_if(stopped, self._leave(code), passed)
        self.start(passed, follows=True)

    def allocate(self, buffer: Buffer, extents: list[Value], overflows: list[Value], span: Span | None) -> Value:
        """The address of fresh memory on the heap, which `release_to` or a fault frees.

        `overflows` are the flags of what wrapped around in the extents.
        """
        size, bad = checked_bytes(self, buffer, extents)
        wrapped = any_of(self, overflows) if overflows else FALSE
        impossible, sized, got = self.label("impossible"), self.label("sized"), self.label("got")
        self.branch_if(any_of(self, [bad, wrapped]), impossible, sized)
        self.start(impossible)
        from tirlite.codegen.reports import WrongExtents

        self.tell(WrongExtents(buffer, span), [self.cast("zext", wrapped, i64), *extents])
        self.start(sized)
        pointer = self.fresh(self.padded(size))
        self.branch_if(self.compare("icmp eq", pointer, NULL), self._stop(NoMemory(buffer.name, span=span)), got)
        self.start(got)
        self.hold(pointer)
        return pointer

    def padded(self, size: Value) -> Value:
        """Bytes rounded up to whole lines, and a line more."""
        return self.op("and", self.op("add", size, integer(2 * self.line - 1)), integer(-self.line))

    def fresh(self, size: Value) -> Value:
        """This many bytes on the heap, or null."""
        return self.call(handle, TAKE if self.module.exported else "aligned_alloc", integer(self.line), size)

    @property
    def _free(self) -> str:
        return GIVE if self.module.exported else "free"

    def hold(self, pointer: Value) -> None:
        """Says that memory on the heap is to be freed, by `release_to` or a fault."""
        label = self.label("cleanup")
        self._tail += [f"{label}:", f"  call void @{self._free}({pointer.typed})", f"  br label %{self.cleanup}"]
        self.declare("void", self._free, (pointer,))
        self._held[label] = (pointer, self.cleanup)
        self.cleanup = label

    def release_to(self, cleanup: str) -> None:
        """Frees what has been allocated since `cleanup` was the block to leave through."""
        while self.cleanup != cleanup:
            pointer, self.cleanup = self._held[self.cleanup]
            self.run(self._free, pointer)

    def finish(self) -> None:
        """Ends the function: 0 where control arrived here, else the number of the fault."""
        if self.streams:
            self.run("llvm.x86.sse.sfence")
        if self.has_tiles:
            from tirlite.codegen.llvm.tiles import release

            self.run(release(self.module))
        self.effect("ret i64 0")
        if self.can_stop:
            self.allocas.append("  %fault = alloca i64")
            self.lines += [*self._tail, "fail:", "  %code = load i64, ptr %fault", "  ret i64 %code"]
        extent, lines = self.module.extent, len(self.lines)
        vectors = extent.vectors + lines * self.by_vectors
        self.module.extent = replace(
            extent,
            lines=extent.lines + lines,
            longest=max(extent.longest, lines),
            vectors=vectors,
            by_elements=max(extent.by_elements, int(self.by_elements)),
            over_windows=max(extent.over_windows, int(self.over_windows)),
        )


def as_bits(out: FunctionText, value: Value) -> Value:
    """A number as an i64: floats by the bits of their f64."""
    if value.dtype.is_float:
        return out.cast("bitcast", convert(out, value, f64), i64)
    return convert(out, value, i64)


def checked_bytes(out: FunctionText, buffer: Buffer, extents: list[Value]) -> tuple[Value, Value]:
    """The bytes of a buffer, and whether they have no size: an extent is negative, or the product above 2^62."""
    flags = []
    size = integer(buffer.dtype.bytes)
    for extent in extents:
        flags.append(out.compare("icmp slt", extent, integer(0)))
        size, wraps = out.overflowing("umul", size, extent)
        flags.append(wraps)
    flags.append(out.compare("icmp ugt", size, integer(LARGEST_BYTES)))
    return size, any_of(out, flags)


def any_of(out: FunctionText, flags: list[Value]) -> Value:
    result = flags[0]
    for flag in flags[1:]:
        result = out.op("or", result, flag)
    return result


def require_exact(out: KernelFunction, buffer: Buffer, overflows: list[Value], extents: list[Value]) -> None:
    """Stops where extents have wrapped around: indices are proved to be below what they are without that."""
    if overflows:
        from tirlite.codegen.reports import WrongExtents

        wrapped = any_of(out, overflows)
        report = WrongExtents(buffer, out.module.span)
        out.stop_if(wrapped, report, lambda: [out.cast("zext", wrapped, i64), *extents])


def require_extents(out: KernelFunction, buffer: Buffer, extents: list[Value]) -> None:
    """Stops where an extent of a buffer is negative."""
    from tirlite.codegen.reports import ExtentReport

    flags = [out.compare("icmp slt", each, integer(0)) for each in extents if each.number is None or each.number < 0]
    if flags:
        out.stop_if(any_of(out, flags), ExtentReport(out.module.span, buffer), lambda: extents)


def require_view(out: FunctionText, environment: Environment, view: View, offset: Value, extents: list[Value]) -> Value:
    """The bytes of a view. Stops where an extent is negative, and where it reaches beyond its source."""
    from tirlite.codegen.reports import ViewReport

    assert isinstance(out, KernelFunction)
    buffer, source, span = view.buffer, environment.places[view.source], out.module.span
    whole, loops = source.extents, environment.counted()
    require_extents(out, buffer, extents)
    size, bad = checked_bytes(out, buffer, extents)
    available = integer(source.buffer.dtype.bytes)
    for extent in whole:
        available = out.product(available, extent)
    last = out.op("add", offset, size)
    beyond = [
        out.compare("icmp slt", offset, integer(0)),
        out.compare("icmp ugt", offset, available),
        out.compare("icmp ugt", last, available),
    ]
    report = ViewReport(span, buffer, source.buffer, tuple(name for name, _ in loops))
    counts = [value for _, value in loops]
    out.stop_if(any_of(out, [bad, *beyond]), report, lambda: [offset, *extents, *whole, *counts])
    return size


def require_inside(
    out: FunctionText,
    place: Place,
    indices: Mapping[int, tuple[Value, Value]],
    loops: Sequence[tuple[str, Value]],
    on: Value | None = None,
) -> None:
    """Stops where an index is outside of its axis. By axis, `indices` are those in i64, and as they were given.

    `loops` are the variables of those around. With a mask, only lanes that are on count, and other axes only where one
    is.
    """
    from tirlite.codegen.reports import IndexReport

    assert isinstance(out, KernelFunction)
    extents = [place.extents[axis] for axis in indices]
    wide, given = zip(*indices.values(), strict=True)
    # A negative index is above all extents, which are not negative.
    flags = [out.compare("icmp uge", a, out.splat(b, a.dtype.lanes)) for a, b in zip(wide, extents, strict=True)]
    if on is not None:
        any_on = out.any_lane(on)
        flags = [out.op("and", each, on if each.dtype.lanes > 1 else any_on) for each in flags]
    wrong = any_of(out, [out.any_lane(flag) for flag in flags])
    types = tuple(value.dtype for value in given)

    def values() -> list[Value]:
        lanes = [first_flagged(out, value, flag) for value, flag in zip(given, flags, strict=True)]
        pairs = [each for pair in zip(lanes, extents, strict=True) for each in pair]
        return [*pairs, *(value for _, value in loops)]

    names = tuple(name for name, _ in loops)
    out.stop_if(wrong, IndexReport(out.module.span, place.buffer.name, tuple(indices), types, names), values)


def first_flagged(out: FunctionText, value: Value, flag: Value) -> Value:
    """The first flagged lane of a value, as bits; of a value without lanes, itself."""
    return as_bits(out, out.first_lane(flag, value) if value.dtype.lanes > 1 else value)
