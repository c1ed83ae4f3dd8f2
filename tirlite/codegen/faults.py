"""Emits the blocks that stop a compiled kernel at a fault: each frees heap memory and returns the fault's number."""

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
    """A function that returns 0, or the fault that stopped it, and frees its heap memory on every path.
    `line`: the alignment of allocated memory. `slots`: the addresses of the buffers on the stack. `cleanup`: the block
    to branch to on a fault, which frees what is allocated at this point; slot `%fault` holds the code.
    """

    def __init__(self, module: ModuleText, line: int) -> None:
        super().__init__(module)
        self.line = line
        self.slots: dict[Buffer, Value] = {}
        self.cleanup = "fail"
        self._held: dict[str, tuple[Value, str]] = {}  # cleanup block -> the pointer that it frees, the next block
        self._tail: list[str] = []
        self.streams = False  # whether it has non-temporal stores, which need a fence at the end
        self.has_tiles = False  # whether it uses tile registers, which are released at the end

    def fails(self, stmt: Assert) -> str:
        """The block to branch to where an assert without values fails."""
        from tirlite.ir import failure

        return self._stop(failure(stmt, ()))

    def tell(self, report: FaultReport, values: list[Value]) -> None:
        """Ends the function with a fault that reports values, each as the bits of an i64.

        The fault's number and the values go into a record on the heap, which the caller frees; the function returns the
        record's address, negated.
        """
        module = self.module
        module.messages.append(report.bare())
        number = len(module.messages)
        module.reports[number] = report
        name = self._recorder(len(values) + 1)
        self.branch(self._leave(self.invoke(i64, name, (integer(number), *values))))

    def stop_if(self, wrong: Value, report: FaultReport, values: Callable[[], list[Value]]) -> None:
        """Ends the function if `wrong` is true; `values` emits the values to report, in the fault's own block."""
        failed, passed = self.label("failed"), self.label("passed")
        self.branch_if(wrong, failed, passed)
        around = self.fork()
        self.start(failed)
        self.tell(report, values())
        self.start(passed)
        self.join(around)

    def _recorder(self, count: int) -> str:
        """The function that stores `count` numbers in a record; without memory it returns the fault's number."""
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
        """Ends the function if `condition` is false."""
        held = self.label("held")
        self.branch_if(condition, held, self._stop(message))
        self.start(held)

    def _stop(self, message: Message) -> str:
        self.module.messages.append(message)
        return self._leave(integer(len(self.module.messages)))

    def _leave(self, code: Value) -> str:
        """A block that ends the function with the fault `code`."""
        label = self.label("fault")
        self._tail += [f"{label}:", f"  store i64 {code.text}, ptr %fault", f"  br label %{self.cleanup}"]
        return label

    @property
    def can_stop(self) -> bool:
        """Whether the function may end with a fault."""
        return bool(self._tail)

    def check(self, code: Value) -> None:
        """Ends the function if a function that it called returned a fault."""
        passed = self.label("passed")
        stopped = self.compare("icmp ne", code, integer(0))
        self.branch_if(stopped, self._leave(code), passed)
        self.start(passed, follows=True)

    def allocate(self, buffer: Buffer, extents: list[Value], overflows: list[Value], span: Span | None) -> Value:
        """Allocates heap memory for a buffer, which `release_to` or a fault frees.

        `overflows`: the overflow flags of the extents' computation.
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
        """A size rounded up to whole lines, plus one line."""
        return self.op("and", self.op("add", size, integer(2 * self.line - 1)), integer(-self.line))

    def fresh(self, size: Value) -> Value:
        """Allocates `size` bytes on the heap; null if there is no memory."""
        return self.call(handle, TAKE if self.module.exported else "aligned_alloc", integer(self.line), size)

    @property
    def _free(self) -> str:
        return GIVE if self.module.exported else "free"

    def hold(self, pointer: Value) -> None:
        """Registers heap memory to be freed by `release_to` or at a fault."""
        label = self.label("cleanup")
        self._tail += [f"{label}:", f"  call void @{self._free}({pointer.typed})", f"  br label %{self.cleanup}"]
        self.declare("void", self._free, (pointer,))
        self._held[label] = (pointer, self.cleanup)
        self.cleanup = label

    def release_to(self, cleanup: str) -> None:
        """Frees the memory that was allocated since `cleanup` was the current cleanup block."""
        while self.cleanup != cleanup:
            pointer, self.cleanup = self._held[self.cleanup]
            self.run(self._free, pointer)

    def finish(self) -> None:
        """Ends the function: returns 0 here, and defines the cleanup blocks of its faults."""
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
    """A number as an i64; a float as the bits of its f64."""
    if value.dtype.is_float:
        return out.cast("bitcast", convert(out, value, f64), i64)
    return convert(out, value, i64)


def checked_bytes(out: FunctionText, buffer: Buffer, extents: list[Value]) -> tuple[Value, Value]:
    """The size of a buffer in bytes, and whether it is invalid: a negative extent, or more than 2^62 bytes."""
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
    """Stops if the computation of an extent overflowed: proofs of indices assume that it did not."""
    if overflows:
        from tirlite.codegen.reports import WrongExtents

        wrapped = any_of(out, overflows)
        report = WrongExtents(buffer, out.module.span)
        out.stop_if(wrapped, report, lambda: [out.cast("zext", wrapped, i64), *extents])


def require_extents(out: KernelFunction, buffer: Buffer, extents: list[Value]) -> None:
    """Stops if an extent of the buffer is negative."""
    from tirlite.codegen.reports import ExtentReport

    flags = [out.compare("icmp slt", each, integer(0)) for each in extents if each.number is None or each.number < 0]
    if flags:
        out.stop_if(any_of(out, flags), ExtentReport(out.module.span, buffer), lambda: extents)


def require_view(out: FunctionText, environment: Environment, view: View, offset: Value, extents: list[Value]) -> Value:
    """The size of a view in bytes. Stops if an extent is negative or the view does not lie in its source."""
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
    """Stops if an index is outside of its axis.
    `indices`: for each axis to check, the index as i64, and as it was given. `loops`: the variables of the loops
    around, for the message. `on`: the mask of the access; lanes that are off are ignored.
    """
    from tirlite.codegen.reports import IndexReport

    assert isinstance(out, KernelFunction)
    extents = [place.extents[axis] for axis in indices]
    wide, given = zip(*indices.values(), strict=True)
    # As unsigned numbers, negative indices are above all extents.
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
    """The first flagged lane of a value, or a scalar itself, as bits."""
    return as_bits(out, out.first_lane(flag, value) if value.dtype.lanes > 1 else value)
