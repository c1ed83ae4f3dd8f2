"""What can stop a compiled kernel in, the blocks that end it out, each returning its number after freeing the heap."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tirlite.codegen.casts import convert
from tirlite.codegen.storage import LARGEST_BYTES
from tirlite.codegen.text import FunctionText
from tirlite.diag import KernelRunError, Message, Span
from tirlite.ir import Assert, Buffer, DType, f64, i64

if TYPE_CHECKING:
    from tirlite.codegen.told import Told


class NoMemory(Message):
    """There is no memory for a buffer whose size is known only inside of the kernel.

    Example: `t = tl.alloc(tl.f32[k * k])`, where `k` is read from an array and is a million.
    Fix: Give the buffer an extent that is bounded by the sizes of the arguments, or process the data in pieces.
    """

    code = "no-memory"
    raises = KernelRunError
    title = "there is no memory for `{buffer}`"
    label = "allocated here"

    buffer: str


class Faults:
    """The ways in which a function can end early.

    `cleanup` is the block to leave through: it frees what the heap holds at this point, and returns the number that
    the slot `%fault` holds.
    """

    def __init__(self, out: FunctionText, line: int, messages: list[Message], told: dict[int, Told]) -> None:
        self.out = out
        self.line = line  # the alignment of what is allocated
        self.messages = messages  # of the whole module; a fault's number is its place here, counted from 1
        self.told = told  # of the whole module: the faults that come with values, by their numbers
        self.cleanup = "fail"
        self._held: dict[str, tuple[str, str]] = {}  # block -> the pointer that it frees, the block that follows
        self._tail: list[str] = []

    def assertion(self, stmt: Assert) -> str:
        """The block to branch to where an assert without values does not hold."""
        from tirlite.ir import failure

        return self._stop(failure(stmt, ()))

    def tell(self, told: Told, values: list[str]) -> None:
        """Ends the function here with a fault that has values to tell, as bits in i64.

        They and the number of the fault are put into a record on the heap, which the caller frees; the function returns
        its address, negated.
        """
        self.messages.append(told.bare())
        number = len(self.messages)
        self.told[number] = told
        name = self._recorder(len(values) + 1)
        operands = ", ".join(f"i64 {value}" for value in (str(number), *values))
        self.out.branch(self._leave(self.out.value(f"call i64 @{name}({operands})")))

    def _recorder(self, count: int) -> str:
        """The function that puts so many numbers into a record; the first of them alone where there is no memory."""
        module, name = self.out.module, f"tirlite.record{count}"
        if name not in module.inlined:
            body = FunctionText(module)
            record = body.call("ptr", "malloc", f"i64 {8 * count}")
            missing, filled = body.label("missing"), body.label("filled")
            body.branch_if(body.value(f"icmp eq ptr {record}, null"), missing, filled)
            body.start(missing)
            body.effect("ret i64 %x0")
            body.start(filled)
            for place in range(count):
                pointer = body.value(f"getelementptr i64, ptr {record}, i64 {place}")
                body.effect(f"store i64 %x{place}, ptr {pointer}")
            address = body.value(f"ptrtoint ptr {record} to i64")
            body.effect(f"ret i64 {body.value(f'sub i64 0, {address}')}")
            parameters = ", ".join(f"i64 %x{place}" for place in range(count))
            module.inlined[name] = body.definition(f"internal i64 @{name}({parameters}) cold noinline nounwind")
        return name

    def require(self, condition: str, message: Message) -> None:
        """Ends the function where a bool is false."""
        held = self.out.label("held")
        self.out.branch_if(condition, held, self._stop(message))
        self.out.start(held)

    def _stop(self, message: Message) -> str:
        self.messages.append(message)
        return self._leave(str(len(self.messages)))

    def _leave(self, code: str) -> str:
        """The block that ends the function with a number."""
        label = self.out.label("fault")
        self._tail += [f"{label}:", f"  store i64 {code}, ptr %fault", f"  br label %{self.cleanup}"]
        return label

    @property
    def can_stop(self) -> bool:
        """Whether the function may end with a fault."""
        return bool(self._tail)

    def check(self, code: str) -> None:
        """Ends the function too, where a function that it called ended with a fault."""
        passed = self.out.label("passed")
        stopped = self.out.value(f"icmp ne i64 {code}, 0")
        self.out.branch_if(stopped, self._leave(code), passed)
        self.out.start(passed)

    def allocate(self, buffer: Buffer, extents: list[str], overflows: list[str], span: Span | None) -> str:
        """The address of fresh memory on the heap, which `release_to` or a fault frees.

        `overflows` are the flags of what wrapped around in the extents.
        """
        out = self.out
        size, bad = checked_bytes(out, buffer, extents)
        wrapped = any_of(out, overflows) if overflows else "false"
        impossible, sized, got = out.label("impossible"), out.label("sized"), out.label("got")
        out.branch_if(any_of(out, [bad, wrapped]), impossible, sized)
        out.start(impossible)
        from tirlite.codegen.told_extents import ExtentsTold

        self.tell(ExtentsTold(buffer, span), [out.value(f"zext i1 {wrapped} to i64"), *extents])
        out.start(sized)
        more = out.value(f"add i64 {size}, {2 * self.line - 1}")
        pointer = out.call(
            "ptr", "aligned_alloc", f"i64 {self.line}", f"i64 {out.value(f'and i64 {more}, {-self.line}')}"
        )
        missing = out.value(f"icmp eq ptr {pointer}, null")
        out.branch_if(missing, self._stop(NoMemory(buffer.name, span=span)), got)
        out.start(got)
        self.hold(pointer)
        return pointer

    def hold(self, pointer: str) -> None:
        """Says that memory on the heap is to be freed, by `release_to` or a fault."""
        label = self.out.label("cleanup")
        self._tail += [f"{label}:", f"  call void @free(ptr {pointer})", f"  br label %{self.cleanup}"]
        self.out.module.declarations.setdefault("free", "declare void @free(ptr)")
        self._held[label] = (pointer, self.cleanup)
        self.cleanup = label

    def release_to(self, cleanup: str) -> None:
        """Frees what has been allocated since `cleanup` was the block to leave through."""
        while self.cleanup != cleanup:
            pointer, self.cleanup = self._held[self.cleanup]
            self.out.effect(f"call void @free(ptr {pointer})")

    def finish(self) -> None:
        """Ends the function: 0 where control arrived here, else the number of the fault."""
        self.out.effect("ret i64 0")
        if self.can_stop:
            self.out.allocas.append("  %fault = alloca i64")
            self.out.lines += [*self._tail, "fail:", "  %code = load i64, ptr %fault", "  ret i64 %code"]


def as_bits(out: FunctionText, value: str, dtype: DType) -> str:
    """A number as an i64: floats by the bits of their f64."""
    if dtype.is_float:
        return out.value(f"bitcast double {convert(out, value, dtype, f64)} to i64")
    return value if dtype.bits == 64 else convert(out, value, dtype, i64)


def checked_bytes(out: FunctionText, buffer: Buffer, extents: list[str]) -> tuple[str, str]:
    """The bytes of a buffer, and whether they are no size: an extent is negative, or the product above 2^62."""
    flags = []
    size = str(buffer.dtype.bytes)
    for extent in extents:
        flags.append(out.value(f"icmp slt i64 {extent}, 0"))
        pair = out.call("{i64, i1}", "llvm.umul.with.overflow.i64", f"i64 {size}", f"i64 {extent}")
        flags.append(out.value(f"extractvalue {{i64, i1}} {pair}, 1"))
        size = out.value(f"extractvalue {{i64, i1}} {pair}, 0")
    flags.append(out.value(f"icmp ugt i64 {size}, {LARGEST_BYTES}"))
    return size, any_of(out, flags)


def any_of(out: FunctionText, flags: list[str]) -> str:
    result = flags[0]
    for flag in flags[1:]:
        result = out.value(f"or i1 {result}, {flag}")
    return result
