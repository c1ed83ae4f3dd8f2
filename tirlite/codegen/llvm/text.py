"""Writes the text of LLVM functions from typed values and the names of instructions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from typing import TYPE_CHECKING

from tirlite.codegen.llvm.numbers import known_order, known_result
from tirlite.codegen.llvm.values import FALSE, Value, flags_of, integer, register_type, suffix, undefined
from tirlite.diag import Message, Span
from tirlite.ir import DType, bool_, handle, i64, u32
from tirlite.record import record, replace
from tirlite.target.convention import MOST_PARAMETERS, SLOT_BYTES

if TYPE_CHECKING:
    from tirlite.codegen.llvm.lines import Lines
    from tirlite.codegen.reports import FaultReport
    from tirlite.target import Processor


# Lines from which on a function that may stay as written does. Most of these only call others: long blocks of calls,
# and of the pointers that they take, are work for LLVM, and nothing runs quicker for it.
_LONG = 200
_LAST = frozenset((1 - (1 << 63), -1 << 63, (1 << 63) - 1, 1 << 63))
_OF_SIZES = frozenset(("add", "sub", "mul"))
_COUNTING = frozenset(("add", "sub", "mul", "srem", "urem", "sdiv", "udiv"))


@record
class Definition:
    """The text of a function: its name, who else sees it, what stands in front of its body, that, and whom it calls.

    `by_vectors` says that it works with vectors already, without LLVM's help, `by_elements` that a loop takes element
    after element, and LLVM finds no vectors in it, `over_windows` that one sums vectors up over a few taps.
    """

    name: str
    linkage: str
    head: str
    body: str
    calls: tuple[str, ...] = ()
    by_vectors: bool = False
    by_elements: bool = False
    over_windows: bool = False

    @property
    def lines(self) -> int:
        return self.body.count("\n")

    def with_attributes(self, attributes: str) -> Definition:
        """The same with more attributes."""
        return replace(self, head=f"{self.head} {attributes}") if attributes else self

    def __str__(self) -> str:
        return f"define {self.linkage}{self.head} {{\n{self.body}\n}}"


@record
class Extent:
    """How much there is for LLVM to do."""

    lines: int = 0
    longest: int = 0  # lines of the longest function
    loops: int = 0  # of the function that has most, with the pieces that it was cut into
    deepest: int = 0  # loops around one another
    nested: int = 0  # blocks inside one another
    pieces: int = 0  # functions that the body of one function was cut into, at most
    vectors: int = 0  # lines of functions that work with vectors, without LLVM's help
    by_elements: int = 0  # 1 where a loop does, see `Definition`
    over_windows: int = 0  # the same

    @property
    def by_vectors(self) -> bool:
        """Whether most of it works with vectors."""
        return 2 * self.vectors > self.lines

    def joined(self, other: Extent) -> Extent:
        """That of the functions of both."""
        return Extent(
            self.lines + other.lines,
            max(self.longest, other.longest),
            max(self.loops, other.loops),
            max(self.deepest, other.deepest),
            max(self.nested, other.nested),
            max(self.pieces, other.pieces),
            self.vectors + other.vectors,
            max(self.by_elements, other.by_elements),
            max(self.over_windows, other.over_windows),
        )


class ModuleText:
    """What the functions of a module share: declarations, metadata, the numbers of values and blocks, and faults."""

    def __init__(self, processor: Processor, *, exported: bool = False, lines: bool = False) -> None:
        """`exported` is what goes into programs without Python, and without a heap.

        With `lines` it tells debuggers where each instruction comes from.
        """
        self.processor = processor
        self.exported = exported
        self.declarations: dict[str, str] = {}  # name -> its `declare` line
        self.functions: list[Definition] = []
        self.inlined: dict[str, Definition] = {}  # name -> a function of a formula, which others call
        self.tables: dict[str, tuple[str, str]] = {}  # elements -> name, definition
        self.texts: dict[bytes, str] = {}  # bytes -> name of a constant
        self.kept: list[str] = []  # functions of which LLVM must not know all callers
        self.metadata: list[str] = []
        self.lines: Lines | None = None
        if lines:
            from tirlite.codegen.llvm.lines import Lines

            self.lines = Lines(self.metadata)
        self.messages: list[Message] = []  # a fault's number is the place of its message, counted from 1
        self.reports: dict[int, FaultReport] = {}  # the faults that come with values, by their numbers
        self.externs: dict[str, None] = {}  # names of the extern functions that are called, in order
        self.addresses: dict[str, int] = {}  # symbols of those that are known by their addresses
        self.span: Span | None = None  # of the statement that is being written
        self.keeps_scalars = False  # LLVM must not join scalars into vectors: see `cast` and `op`
        self.tasks = 0  # how many loops are handed to workers
        self.polls = False  # whether some poll for signals
        self.extent = Extent()
        self.values = count(1)
        self.blocks = count(1)

    def node(self, *parts: str, distinct: bool = False) -> str:
        """The name of a new metadata node; a distinct one, equal to no other, has itself as its first part."""
        name = f"!{len(self.metadata)}"
        inside = ", ".join((name, *parts) if distinct else parts)
        self.metadata.append(f"{name} = {'distinct ' if distinct else ''}!{{{inside}}}")
        return name

    def group(self) -> str:
        """The name of a new group of accesses, which nothing else is equal to."""
        name = f"!{len(self.metadata)}"
        self.metadata.append(f"{name} = distinct !{{}}")
        return name

    def table(self, elements: str, count: int) -> str:
        """The name of a constant array of this many f64, given with their types."""
        if elements not in self.tables:
            name = f"@tirlite.table{len(self.tables)}"
            line = f"{name} = private unnamed_addr constant [{count} x double] [{elements}], align 64"
            self.tables[elements] = (name, line)
        return self.tables[elements][0]

    def constant_bytes(self, data: bytes) -> str:
        """The name of a constant that holds these bytes."""
        return self.texts.setdefault(data, f"@tirlite.text{len(self.texts)}")

    def text(self, name: str) -> str:
        return self.with_functions(name, self.functions)

    def with_functions(self, name: str, functions: Iterable[Definition], declared: Iterable[str] = ()) -> str:
        """A module of some of the functions, which declares others, and has all else that functions share."""
        parts = [f'source_filename = "{name}"', *map(str, functions), *map(str, self.inlined.values())]
        parts += [*self.declarations.values(), *declared]
        if self.kept:
            names = ", ".join(f"ptr @{name}" for name in self.kept)
            used = f"appending global [{len(self.kept)} x ptr] [{names}]"
            parts.append(f'@llvm.compiler.used = {used}, section "llvm.metadata"')
        for data, constant in self.texts.items():
            letters = "".join(f"\\{byte:02X}" for byte in data)
            parts.append(f'{constant} = private unnamed_addr constant [{len(data)} x i8] c"{letters}"')
        parts += [*(line for _, line in self.tables.values()), *self.metadata]
        if self.lines is not None:
            parts += self.lines.named
        return "\n".join(parts) + "\n"


class FunctionText:
    """A function that is being written: its allocas, its instructions so far, and the block that they go to.

    `inputs` are the values of other functions that it has used so far, by their names. They are to become parameters.
    """

    def __init__(self, module: ModuleText) -> None:
        self.module = module
        self.parameters: list[Value] = []
        self.allocas: list[str] = []
        self.lines: list[str] = []
        self.inputs: dict[str, Value] = {}
        self.calls: dict[str, None] = {}  # the names of the functions that it calls so far, or has called
        self.inlined_lines = 0  # of functions that will be inlined into it
        self.by_vectors = self.by_elements = self.over_windows = False
        self.as_written = False  # LLVM leaves it as it is, if it is long: it would not run quicker
        self.block = "entry"
        self.conditions = 0  # that are open around what is being written
        # What has been computed in the blocks that lead here for certain, by instruction, in the order of `_order`; the
        # first `_kept` of them lead to each block that begins.
        self._computed: dict[str, Value] = {}
        self._order: list[str] = []
        self._kept = 0
        # Elements accessed in the blocks that lead here for certain, each with its distance from what names it.
        self._near: dict[str, tuple[Value, int]] = {}
        self._node = "" if module.lines is None else module.lines.function(module.span)

    def _write(self, instruction: str) -> None:
        lines = self.module.lines
        place = "" if lines is None else lines.place(self._node, self.module.span)
        self.lines.append(f"  {instruction}{place}")

    def value(self, dtype: DType, instruction: str, *operands: Value) -> Value:
        """The result of `instruction`, which is written down and mentions `operands`."""
        for each in operands:
            if each.home is not self and each.home is not None:
                self.inputs.setdefault(each.text, each)
        if dtype.lanes > 1:
            self.by_vectors = True
        name = f"%v{next(self.module.values)}"
        self._write(f"{name} = {instruction}")
        return Value(dtype, name, self)

    def computed(self, dtype: DType, instruction: str, *operands: Value) -> Value:
        """The same for an instruction that gives the same each time: it is not written down twice."""
        known = self._computed.get(instruction)
        if known is not None and known.dtype == dtype:
            return known
        value = self.value(dtype, instruction, *operands)
        if known is None:
            self._computed[instruction] = value
            self._order.append(instruction)
        return value

    def effect(self, instruction: str, *operands: Value) -> None:
        for each in operands:
            if each.home is not self and each.home is not None:
                self.inputs.setdefault(each.text, each)
        self._write(instruction)

    def parameter(self, dtype: DType, name: str, fact: str = "") -> Value:
        """A further parameter of the function; `fact` is its attribute, after a blank."""
        self.parameters.append(Value(dtype, name, self, fact=fact))
        return self.parameters[-1]

    def later(self, dtype: DType) -> Value:
        """A value whose instruction is written later, by `define_later`."""
        return Value(dtype, f"%v{next(self.module.values)}", self)

    def define_later(self, value: Value, instruction: str, *operands: Value) -> None:
        self.effect(f"{value.text} = {instruction}", *operands)

    def op(self, name: str, a: Value, b: Value) -> Value:
        """An operation whose operands and result have one type; `name` has its flags."""
        if (a.number in _LAST or b.number in _LAST) and name.split(" ")[0] in _COUNTING:
            # LLVM 22 keeps distances between addresses in a map whose keys may not be the largest or the least number,
            # and aborts the process where `x[9223372036854775807 % n]` comes to such a distance.
            self.module.keeps_scalars = True
        if a.dtype.is_integer and (known := known_result(name, a, b)) is not None:
            return known
        instruction = f"{name} {register_type(a.dtype)} {a.text}, {b.text}"
        found = self.computed(a.dtype, instruction, a, b)
        is_size = a.dtype is i64 and name in _OF_SIZES and a.is_size and b.is_size
        return replace(found, made=(instruction, a, b)) if is_size else found

    def product(self, a: Value, b: Value) -> Value:
        """A product in i64; that of two known numbers is one."""
        if a.number is not None and b.number is not None:
            return integer(a.number * b.number)
        return a if b.number == 1 else self.op("mul", a, b)

    def unary(self, name: str, a: Value) -> Value:
        return self.computed(a.dtype, f"{name} {a.typed}", a)

    def compare(self, name: str, a: Value, b: Value) -> Value:
        """`icmp` or `fcmp` and the comparison."""
        if (known := known_order(name, a, b)) is not None:
            return known
        return self.computed(flags_of(a.dtype), f"{name} {register_type(a.dtype)} {a.text}, {b.text}", a, b)

    def select(self, condition: Value, yes: Value, no: Value) -> Value:
        if condition.number is not None and condition.dtype is bool_:
            return yes if condition.number else no
        return self.computed(yes.dtype, f"select {condition.typed}, {yes.typed}, {no.typed}", condition, yes, no)

    def cast(self, name: str, a: Value, dtype: DType) -> Value:
        if name == "uitofp" and a.dtype.bits > 8:
            # LLVM 22 joins scalars into vectors of fewer bits, and takes those of a number that was extended with its
            # sign for unsigned: 2**64 - 4 becomes 2**32 - 4. Only such conversions come to that.
            self.module.keeps_scalars = True
        return self.computed(dtype, f"{name} {a.typed} to {register_type(dtype)}", a)

    def extract(self, vector: Value, lane: int | Value) -> Value:
        where = integer(lane) if isinstance(lane, int) else lane
        return self.computed(vector.dtype.scalar, f"extractelement {vector.typed}, {where.typed}", vector, where)

    def insert(self, vector: Value, element: Value, lane: int) -> Value:
        where = f"{element.typed}, i64 {lane}"
        return self.computed(vector.dtype, f"insertelement {vector.typed}, {where}", vector, element)

    def splat(self, value: Value, lanes: int) -> Value:
        """A scalar in each of this many lanes."""
        if lanes == 1:
            return value
        dtype = value.dtype.with_lanes(lanes)
        if value.home is None:
            return Value(dtype, f"splat ({value.typed})", None, value.number)
        first = self.insert(undefined(dtype), value, 0)
        mask = f"<{lanes} x i32> zeroinitializer"
        return self.computed(dtype, f"shufflevector {first.typed}, {undefined(dtype).typed}, {mask}", first)

    def interleaved(self, a: Value, b: Value, *, is_high: bool) -> Value:
        """The lanes of the lower or the upper halves of two vectors in turn."""
        lanes = a.dtype.lanes
        first = lanes // 2 * is_high
        turns = range(first, first + lanes // 2)
        return self.shuffled(a, [lane + behind for lane in turns for behind in (0, lanes)], b)

    def shuffled(self, a: Value, lanes: Sequence[int | None], b: Value | None = None) -> Value:
        """These lanes of a vector, or of two, one after the other; any where None stands. One lane is a scalar."""
        if len(lanes) == 1 and lanes[0] is not None:
            return self.extract(a, lanes[0])
        mask = ", ".join(f"i32 {'poison' if lane is None else lane}" for lane in lanes)
        other, kind = b or undefined(a.dtype), a.dtype.scalar.with_lanes(len(lanes))
        return self.computed(kind, f"shufflevector {a.typed}, {other.typed}, <{len(lanes)} x i32> <{mask}>", a, other)

    def side_by_side(self, parts: list[Value]) -> Value:
        """One vector of several of one type, a power of two of them, by pairs."""
        while len(parts) > 1:
            both = range(2 * parts[0].dtype.lanes)
            parts = [self.shuffled(a, both, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
        return parts[0]

    def overflowing(self, name: str, a: Value, b: Value) -> tuple[Value, Value]:
        """A sum, difference or product in i64, and whether it wrapped around."""
        full = f"llvm.{name}.with.overflow.i64"
        self.module.declarations.setdefault(full, f"declare {{i64, i1}} @{full}(i64, i64)")
        pair = self.value(i64, f"call {{i64, i1}} @{full}({a.typed}, {b.typed})", a, b).text
        flag = self.value(bool_, f"extractvalue {{i64, i1}} {pair}, 1")
        return self.value(i64, f"extractvalue {{i64, i1}} {pair}, 0"), flag

    def any_lane(self, flags: Value) -> Value:
        """Whether any lane of a vector of bools is set."""
        if flags.dtype.lanes == 1:
            return flags
        return self.compare("icmp ne", *self._lanes_as_bits(flags))

    def _lanes_as_bits(self, flags: Value) -> tuple[Value, Value]:
        """Lanes as the bits of an integer, and the 0 of its type."""
        dtype = DType(u32.code, flags.dtype.lanes)
        return self.cast("bitcast", flags, dtype), Value(dtype, "0", None, 0)

    def first_lane(self, flags: Value, vector: Value) -> Value:
        """The element of a vector in the first lane that is flagged; if none is, that of the first."""
        bits, _ = self._lanes_as_bits(flags)
        lanes = vector.dtype.lanes
        first = self.call(bits.dtype, f"llvm.cttz.i{lanes}", bits, FALSE)
        return self.extract(vector, self.op("urem", first, Value(bits.dtype, str(lanes))))

    def load(self, dtype: DType, pointer: Value, more: str = "") -> Value:
        """What lies at a pointer; `more` ends the instruction."""
        return self.value(dtype, f"load {register_type(dtype)}, {pointer.typed}{more}", pointer)

    def store(self, value: Value, pointer: Value, more: str = "") -> None:
        self.effect(f"store {value.typed}, {pointer.typed}{more}", value, pointer)

    def prefetch(self, pointer: Value, *, level: int, writes: bool = False) -> None:
        """Asks for the line of a pointer, into the cache of a level, to read it or to write there."""
        name = "llvm.prefetch.p0"
        self.module.declarations[name] = f"declare void @{name}(ptr, i32, i32, i32)"
        self.effect(f"call void @{name}({pointer.typed}, i32 {writes:d}, i32 {4 - level}, i32 1)", pointer)

    def move(self, pointer: Value, distance: Value, kind: str = "i8", flags: str = "inbounds ") -> Value:
        """The pointer that lies this many elements of an LLVM type further, in the same allocation."""
        way = f"{flags}{kind}, {pointer.typed}, {distance.typed}"
        moved = self.computed(handle, f"getelementptr {way}", pointer, distance)
        behind = None
        if distance.number is not None and (kind, flags) == ("i8", "inbounds "):
            start, passed = pointer.behind or (pointer, 0)
            behind = start, passed + distance.number
        return Value(handle, moved.text, self, None, pointer.root, behind=behind)

    def near(self, name: str) -> tuple[Value, int] | None:
        """The address of an element that was accessed before, and how far it lies from what `name` tells of it."""
        return self._near.get(name)

    def accessed(self, name: str, pointer: Value, distance: int) -> None:
        """Notes an element that is accessed for `near`."""
        self._near[name] = pointer, distance
        self._order.append(name)

    def label(self, hint: str) -> str:
        """The name of a new block."""
        return f"{hint}{next(self.module.blocks)}"

    def start(self, label: str, *, follows: bool = False) -> None:
        """What follows goes to the block `label`; the one before has been ended by a branch.

        One that `follows` the block before is reached from that alone.
        """
        while not follows and len(self._order) > self._kept:
            forgotten = self._order.pop()
            self._computed.pop(forgotten, None)
            self._near.pop(forgotten, None)
        self.lines.append(f"{label}:")
        self.block = label

    def fork(self) -> int:
        """Says that all blocks which begin are reached through this one, until `join` is given what this returns."""
        before, self._kept = self._kept, len(self._order)
        return before

    def join(self, before: int) -> None:
        self._kept = before

    def branch(self, label: str) -> None:
        self._write(f"br label %{label}")

    def follow(self, label: str) -> None:
        """What follows goes to the block `label`, and so does control from here."""
        self.branch(label)
        self.start(label)

    def branch_if(self, condition: Value, then: str, otherwise: str, note: str = "") -> None:
        self.effect(f"br i1 {condition.text}, label %{then}, label %{otherwise}{note}", condition)

    def phi(self, dtype: DType, *incoming: tuple[Value, str]) -> Value:
        """The value of the block that control came from; `incoming` are values and labels."""
        pairs = ", ".join(f"[ {value.text}, %{label} ]" for value, label in incoming)
        return self.value(dtype, f"phi {register_type(dtype)} {pairs}", *(value for value, _ in incoming))

    def call(self, result: DType, name: str, *operands: Value) -> Value:
        """The result of a call of a function that the module only declares, as its operands say."""
        self.declare(register_type(result), name, operands)
        return self.invoke(result, name, operands)

    def invoke(self, result: DType, name: str, operands: Iterable[Value], convention: str = "") -> Value:
        """The result of a call of a function of this module."""
        given = tuple(operands)
        self.calls[name] = None
        texts = ", ".join(each.typed for each in given)
        return self.value(result, f"call {convention}{register_type(result)} @{name}({texts})", *given)

    def run(self, name: str, *operands: Value) -> None:
        """Calls a function that has no result."""
        self.declare("void", name, operands)
        self.effect(f"call void @{name}({', '.join(each.typed for each in operands)})", *operands)

    def intrinsic(self, name: str, *operands: Value) -> Value:
        """`llvm.NAME` on operands that all have the result's type."""
        dtype = operands[0].dtype
        return self.call(dtype, f"llvm.{name}.{suffix(dtype)}", *operands)

    def declare(self, result: str, name: str, operands: Iterable[Value]) -> None:
        if name not in self.module.declarations and name not in self.module.inlined:
            kinds = ", ".join(register_type(each.dtype) for each in operands)
            self.module.declarations[name] = f"declare {result} @{name}({kinds})"

    def alloca(self, size: int, align: int) -> Value:
        """The address of `size` bytes on the stack, which live as long as the function runs."""
        address = self.later(handle)
        self.allocas.append(f"  {address.text} = alloca [{size} x i8], align {align}")
        return address

    def loop_metadata(self, *properties: str) -> str:
        """The end of a loop's branch instruction, which says how the loop is meant."""
        return f", !llvm.loop {self.module.node(*properties, distinct=True)}"

    def define(self, name: str, attributes: str = "", *, result: str = "i64", linkage: str = "internal ") -> None:
        """Ends the function and adds it to the module; `result` is its type, after its calling convention."""
        self.module.functions.append(self.definition(name, attributes, result=result, linkage=linkage))

    def definition(
        self, name: str, attributes: str = "", *, result: str = "i64", linkage: str = "internal "
    ) -> Definition:
        if self.as_written and len(self.lines) >= _LONG:
            attributes = "noinline optnone"
        parameters = ", ".join(each.declared for each in self.parameters)
        head = f"{result} @{name}({parameters}){attributes and f' {attributes}'}"
        if self.module.lines is not None:
            head += self.module.lines.define(self._node, name)
        body = "\n".join(["entry:", *self.allocas, *self.lines])
        kinds = self.by_vectors, self.by_elements, self.over_windows
        return Definition(name, linkage, head, body, tuple(self.calls), *kinds)


def define_entry(out: FunctionText, name: str) -> None:
    """Ends a function that returns an i64 and adds it to its module, under the name by which it is called."""
    if len(out.parameters) <= MOST_PARAMETERS:
        out.define(name, linkage="")
        return
    inner = f"{name}_unpacked"
    # Copied into its only caller, each promise about a pointer would become notes on all accesses.
    out.define(inner, "noinline")
    _define_unpacking(out, name, inner)


def _define_unpacking(inner: FunctionText, name: str, inner_name: str) -> None:
    out = FunctionText(inner.module)
    out.as_written = True
    record = out.parameter(handle, "%record", " noalias")
    operands = []
    for number, parameter in enumerate(inner.parameters):
        slot = out.move(record, integer(SLOT_BYTES * number))
        operands.append(out.load(parameter.dtype, slot, ", align 1"))
    out.effect(f"ret i64 {out.invoke(i64, inner_name, operands).text}")
    out.define(name, linkage="")
