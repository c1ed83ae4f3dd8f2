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


# Functions `as_written` with at least this many lines are not optimised. They mostly call others: LLVM spends long on
# such blocks of calls and pointers without making them faster.
_LONG = 200
_LAST = frozenset((1 - (1 << 63), -1 << 63, (1 << 63) - 1, 1 << 63))
_OF_SIZES = frozenset(("add", "sub", "mul"))
_COUNTING = frozenset(("add", "sub", "mul", "srem", "urem", "sdiv", "udiv"))


@record
class Definition:
    """The text of a function: its name, linkage, head and body, and the names of the functions that it calls.
    `by_vectors`: it uses vectors already, without LLVM's vectorizer. `by_elements`: it has a scalar loop that LLVM
    cannot vectorize. `over_windows`: it has a loop that sums vectors over a few taps.
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
        """The same with further attributes."""
        return replace(self, head=f"{self.head} {attributes}") if attributes else self

    def __str__(self) -> str:
        return f"define {self.linkage}{self.head} {{\n{self.body}\n}}"


@record
class Extent:
    """The size of a module, which decides LLVM's effort."""

    lines: int = 0
    longest: int = 0  # lines of the longest function
    loops: int = 0  # most loops of a function, its pieces included
    deepest: int = 0  # deepest nesting of loops
    nested: int = 0  # deepest nesting of blocks
    pieces: int = 0  # most pieces that one function was split into
    vectors: int = 0  # lines of functions that use vectors already
    by_elements: int = 0  # 1 if any function is, see `Definition`
    over_windows: int = 0  # likewise

    @property
    def by_vectors(self) -> bool:
        """Whether most of the code uses vectors already."""
        return 2 * self.vectors > self.lines

    def joined(self, other: Extent) -> Extent:
        """The extent of both modules together."""
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
    """The shared state of a module's functions: declarations, metadata, counters for names, and faults."""

    def __init__(self, processor: Processor, *, exported: bool = False, lines: bool = False) -> None:
        """`exported`: for programs without Python and without a heap. `lines`: emit debug line information."""
        self.processor = processor
        self.exported = exported
        self.declarations: dict[str, str] = {}  # name -> its `declare` line
        self.functions: list[Definition] = []
        self.inlined: dict[str, Definition] = {}  # name -> a support function, such as a formula
        self.tables: dict[str, tuple[str, str]] = {}  # elements -> name, definition
        self.texts: dict[bytes, str] = {}  # bytes -> name of a constant
        self.kept: list[str] = []  # functions that LLVM must not specialise by their callers
        self.metadata: list[str] = []
        self.lines: Lines | None = None
        if lines:
            from tirlite.codegen.llvm.lines import Lines

            self.lines = Lines(self.metadata)
        self.messages: list[Message] = []  # a fault's number is the place of its message, counted from 1
        self.reports: dict[int, FaultReport] = {}  # the faults with values, by their numbers
        self.externs: dict[str, None] = {}  # names of the extern functions called, in order
        self.addresses: dict[str, int] = {}  # addresses of extern functions, by their symbols
        self.span: Span | None = None  # of the statement that is being emitted
        self.keeps_scalars = False  # the SLP vectorizer must not run: see `cast` and `op`
        self.tasks = 0  # number of loops that run on workers
        self.polls = False  # whether a loop polls for signals
        self.asks_caches = False  # whether a function asks what the caches hold
        self.extent = Extent()
        self.values = count(1)
        self.blocks = count(1)

    def node(self, *parts: str, distinct: bool = False) -> str:
        """Adds a metadata node and returns its name; a distinct node has itself as its first operand."""
        name = f"!{len(self.metadata)}"
        inside = ", ".join((name, *parts) if distinct else parts)
        self.metadata.append(f"{name} = {'distinct ' if distinct else ''}!{{{inside}}}")
        return name

    def group(self) -> str:
        """Adds a distinct access group and returns its name."""
        name = f"!{len(self.metadata)}"
        self.metadata.append(f"{name} = distinct !{{}}")
        return name

    def table(self, elements: str, count: int) -> str:
        """The name of a constant array of `count` f64, given with their types."""
        if elements not in self.tables:
            name = f"@tirlite.table{len(self.tables)}"
            line = f"{name} = private unnamed_addr constant [{count} x double] [{elements}], align 64"
            self.tables[elements] = (name, line)
        return self.tables[elements][0]

    def constant_bytes(self, data: bytes) -> str:
        """The name of a constant with these bytes."""
        return self.texts.setdefault(data, f"@tirlite.text{len(self.texts)}")

    def text(self, name: str) -> str:
        return self.with_functions(name, self.functions)

    def with_functions(self, name: str, functions: Iterable[Definition], declared: Iterable[str] = ()) -> str:
        """A module of these functions, with declarations of others and all that functions share."""
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
    """A function that is being emitted: its allocas, its instructions so far, and the current basic block.

    `inputs`: the values of other functions that it uses, by name; they become parameters when it is outlined.
    """

    def __init__(self, module: ModuleText) -> None:
        self.module = module
        self.parameters: list[Value] = []
        self.allocas: list[str] = []
        self.lines: list[str] = []
        self.inputs: dict[str, Value] = {}
        self.calls: dict[str, None] = {}  # the names of the functions that it calls
        self.inlined_lines = 0  # lines of functions that will be inlined into it
        self.by_vectors = self.by_elements = self.over_windows = False
        self.as_written = False  # do not optimise it if it is long: it would not run faster
        self.block = "entry"
        self.conditions = 0  # the number of conditions around the current point
        # The values computed in blocks that dominate the current one, by instruction, in the order of `_order`; the
        # first `_kept` of them dominate every block that starts.
        self._computed: dict[str, Value] = {}
        self._order: list[str] = []
        self._kept = 0
        # The addresses of elements accessed in dominating blocks, with their offsets from the address that names them.
        self._near: dict[str, tuple[Value, int]] = {}
        self._node = "" if module.lines is None else module.lines.function(module.span)

    def _write(self, instruction: str) -> None:
        lines = self.module.lines
        place = "" if lines is None else lines.place(self._node, self.module.span)
        self.lines.append(f"  {instruction}{place}")

    def value(self, dtype: DType, instruction: str, *operands: Value) -> Value:
        """Emits an instruction and returns its result; `operands` are the values that its text uses."""
        for each in operands:
            if each.home is not self and each.home is not None:
                self.inputs.setdefault(each.text, each)
        if dtype.lanes > 1:
            self.by_vectors = True
        name = f"%v{next(self.module.values)}"
        self._write(f"{name} = {instruction}")
        return Value(dtype, name, self)

    def computed(self, dtype: DType, instruction: str, *operands: Value) -> Value:
        """The same for a pure instruction: an equal one in a dominating block is reused."""
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
        """Adds a parameter; `fact` is its attribute, after a blank."""
        self.parameters.append(Value(dtype, name, self, fact=fact))
        return self.parameters[-1]

    def later(self, dtype: DType) -> Value:
        """A value whose instruction `define_later` emits."""
        return Value(dtype, f"%v{next(self.module.values)}", self)

    def define_later(self, value: Value, instruction: str, *operands: Value) -> None:
        self.effect(f"{value.text} = {instruction}", *operands)

    def op(self, name: str, a: Value, b: Value) -> Value:
        """An operation whose operands and result have the same type; `name` includes its flags."""
        if (a.number in _LAST or b.number in _LAST) and name.split(" ")[0] in _COUNTING:
            # LLVM 22's SLP vectorizer uses distances between addresses as map keys, among which the largest and the
            # smallest are reserved: a distance from `x[9223372036854775807 % n]` aborts the process.
            self.module.keeps_scalars = True
        if a.dtype.is_integer and (known := known_result(name, a, b)) is not None:
            return known
        instruction = f"{name} {register_type(a.dtype)} {a.text}, {b.text}"
        found = self.computed(a.dtype, instruction, a, b)
        is_size = a.dtype is i64 and name in _OF_SIZES and a.is_size and b.is_size
        return replace(found, made=(instruction, a, b)) if is_size else found

    def product(self, a: Value, b: Value) -> Value:
        """A product in i64, folded if both are constants."""
        if a.number is not None and b.number is not None:
            return integer(a.number * b.number)
        return a if b.number == 1 else self.op("mul", a, b)

    def unary(self, name: str, a: Value) -> Value:
        return self.computed(a.dtype, f"{name} {a.typed}", a)

    def compare(self, name: str, a: Value, b: Value) -> Value:
        """A comparison; `name` is `icmp` or `fcmp` and the predicate."""
        if (known := known_order(name, a, b)) is not None:
            return known
        return self.computed(flags_of(a.dtype), f"{name} {register_type(a.dtype)} {a.text}, {b.text}", a, b)

    def select(self, condition: Value, yes: Value, no: Value) -> Value:
        if condition.number is not None and condition.dtype is bool_:
            return yes if condition.number else no
        return self.computed(yes.dtype, f"select {condition.typed}, {yes.typed}, {no.typed}", condition, yes, no)

    def cast(self, name: str, a: Value, dtype: DType) -> Value:
        if name == "uitofp" and a.dtype.bits > 8:
            # LLVM 22's SLP vectorizer narrows a sign-extended operand of uitofp as if it were zero-extended: 2**64 - 4
            # becomes 2**32 - 4.
            self.module.keeps_scalars = True
        return self.computed(dtype, f"{name} {a.typed} to {register_type(dtype)}", a)

    def extract(self, vector: Value, lane: int | Value) -> Value:
        where = integer(lane) if isinstance(lane, int) else lane
        return self.computed(vector.dtype.scalar, f"extractelement {vector.typed}, {where.typed}", vector, where)

    def insert(self, vector: Value, element: Value, lane: int) -> Value:
        where = f"{element.typed}, i64 {lane}"
        return self.computed(vector.dtype, f"insertelement {vector.typed}, {where}", vector, element)

    def splat(self, value: Value, lanes: int) -> Value:
        """A scalar broadcast to `lanes` lanes."""
        if lanes == 1:
            return value
        dtype = value.dtype.with_lanes(lanes)
        if value.home is None:
            return Value(dtype, f"splat ({value.typed})", None, value.number)
        first = self.insert(undefined(dtype), value, 0)
        mask = f"<{lanes} x i32> zeroinitializer"
        return self.computed(dtype, f"shufflevector {first.typed}, {undefined(dtype).typed}, {mask}", first)

    def interleaved(self, a: Value, b: Value, *, is_high: bool) -> Value:
        """Alternates the lanes of the lower or of the upper halves of two vectors."""
        lanes = a.dtype.lanes
        first = lanes // 2 * is_high
        turns = range(first, first + lanes // 2)
        return self.shuffled(a, [lane + behind for lane in turns for behind in (0, lanes)], b)

    def shuffled(self, a: Value, lanes: Sequence[int | None], b: Value | None = None) -> Value:
        """These lanes of `a`, or of `a` and `b` concatenated; None for any. A single lane is a scalar."""
        if len(lanes) == 1 and lanes[0] is not None:
            return self.extract(a, lanes[0])
        mask = ", ".join(f"i32 {'poison' if lane is None else lane}" for lane in lanes)
        other, kind = b or undefined(a.dtype), a.dtype.scalar.with_lanes(len(lanes))
        return self.computed(kind, f"shufflevector {a.typed}, {other.typed}, <{len(lanes)} x i32> <{mask}>", a, other)

    def side_by_side(self, parts: list[Value]) -> Value:
        """Concatenates vectors of one type, a power of two of them, in pairs."""
        while len(parts) > 1:
            both = range(2 * parts[0].dtype.lanes)
            parts = [self.shuffled(a, both, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
        return parts[0]

    def overflowing(self, name: str, a: Value, b: Value) -> tuple[Value, Value]:
        """A sum, difference or product in i64, and its overflow flag."""
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
        """The lanes as the bits of an integer, and the 0 of its type."""
        dtype = DType(u32.code, flags.dtype.lanes)
        return self.cast("bitcast", flags, dtype), Value(dtype, "0", None, 0)

    def first_lane(self, flags: Value, vector: Value) -> Value:
        """The element of `vector` in the first lane that is flagged; in the first lane if none is."""
        bits, _ = self._lanes_as_bits(flags)
        lanes = vector.dtype.lanes
        first = self.call(bits.dtype, f"llvm.cttz.i{lanes}", bits, FALSE)
        return self.extract(vector, self.op("urem", first, Value(bits.dtype, str(lanes))))

    def load(self, dtype: DType, pointer: Value, more: str = "") -> Value:
        """The value at a pointer; `more` is appended to the instruction."""
        return self.value(dtype, f"load {register_type(dtype)}, {pointer.typed}{more}", pointer)

    def store(self, value: Value, pointer: Value, more: str = "") -> None:
        self.effect(f"store {value.typed}, {pointer.typed}{more}", value, pointer)

    def prefetch(self, pointer: Value, *, level: int, writes: bool = False) -> None:
        """Prefetches a pointer's cache line into the given level, for reading or writing."""
        name = "llvm.prefetch.p0"
        self.module.declarations[name] = f"declare void @{name}(ptr, i32, i32, i32)"
        self.effect(f"call void @{name}({pointer.typed}, i32 {writes:d}, i32 {4 - level}, i32 1)", pointer)

    def move(self, pointer: Value, distance: Value, kind: str = "i8", flags: str = "inbounds ") -> Value:
        """The pointer this many elements of an LLVM type further, in the same allocation."""
        way = f"{flags}{kind}, {pointer.typed}, {distance.typed}"
        moved = self.computed(handle, f"getelementptr {way}", pointer, distance)
        behind = None
        if distance.number is not None and (kind, flags) == ("i8", "inbounds "):
            start, passed = pointer.behind or (pointer, 0)
            behind = start, passed + distance.number
        return Value(handle, moved.text, self, None, pointer.root, behind=behind)

    def near(self, name: str) -> tuple[Value, int] | None:
        """The address recorded under `name`, and its offset from the address that `name` stands for."""
        return self._near.get(name)

    def accessed(self, name: str, pointer: Value, distance: int) -> None:
        """Records the address of an accessed element for `near`."""
        self._near[name] = pointer, distance
        self._order.append(name)

    def label(self, hint: str) -> str:
        """The name for a new basic block."""
        return f"{hint}{next(self.module.blocks)}"

    def start(self, label: str, *, follows: bool = False) -> None:
        """Starts the basic block `label`; the previous one has its terminator already.

        `follows`: its only predecessor is the previous block.
        """
        while not follows and len(self._order) > self._kept:
            forgotten = self._order.pop()
            self._computed.pop(forgotten, None)
            self._near.pop(forgotten, None)
        self.lines.append(f"{label}:")
        self.block = label

    def fork(self) -> int:
        """Declares that the current block dominates all that start until `join`, which takes the result."""
        before, self._kept = self._kept, len(self._order)
        return before

    def join(self, before: int) -> None:
        self._kept = before

    def branch(self, label: str) -> None:
        self._write(f"br label %{label}")

    def follow(self, label: str) -> None:
        """Branches to the basic block `label`, and starts it."""
        self.branch(label)
        self.start(label)

    def branch_if(self, condition: Value, then: str, otherwise: str, note: str = "") -> None:
        self.effect(f"br i1 {condition.text}, label %{then}, label %{otherwise}{note}", condition)

    def phi(self, dtype: DType, *incoming: tuple[Value, str]) -> Value:
        """The phi of pairs of a value and the label of its block."""
        pairs = ", ".join(f"[ {value.text}, %{label} ]" for value, label in incoming)
        return self.value(dtype, f"phi {register_type(dtype)} {pairs}", *(value for value, _ in incoming))

    def call(self, result: DType, name: str, *operands: Value) -> Value:
        """Calls a function that the module only declares, with the types of the operands."""
        self.declare(register_type(result), name, operands)
        return self.invoke(result, name, operands)

    def invoke(self, result: DType, name: str, operands: Iterable[Value], convention: str = "") -> Value:
        """Calls a function that the module defines."""
        given = tuple(operands)
        self.calls[name] = None
        texts = ", ".join(each.typed for each in given)
        return self.value(result, f"call {convention}{register_type(result)} @{name}({texts})", *given)

    def run(self, name: str, *operands: Value) -> None:
        """Calls a function without a result."""
        self.declare("void", name, operands)
        self.effect(f"call void @{name}({', '.join(each.typed for each in operands)})", *operands)

    def intrinsic(self, name: str, *operands: Value) -> Value:
        """`llvm.NAME` on operands of the result's type."""
        dtype = operands[0].dtype
        return self.call(dtype, f"llvm.{name}.{suffix(dtype)}", *operands)

    def declare(self, result: str, name: str, operands: Iterable[Value]) -> None:
        if name not in self.module.declarations and name not in self.module.inlined:
            kinds = ", ".join(register_type(each.dtype) for each in operands)
            self.module.declarations[name] = f"declare {result} @{name}({kinds})"

    def alloca(self, size: int, align: int) -> Value:
        """The address of `size` bytes on the stack."""
        address = self.later(handle)
        self.allocas.append(f"  {address.text} = alloca [{size} x i8], align {align}")
        return address

    def loop_metadata(self, *properties: str) -> str:
        """The text that attaches loop properties to a loop's branch."""
        return f", !llvm.loop {self.module.node(*properties, distinct=True)}"

    def define(self, name: str, attributes: str = "", *, result: str = "i64", linkage: str = "internal ") -> None:
        """Ends the function and adds it to the module; `result` is its type, with its calling convention."""
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
    """Ends a function that returns an i64, and adds it to its module as an entry point."""
    if len(out.parameters) <= MOST_PARAMETERS:
        out.define(name, linkage="")
        return
    inner = f"{name}_unpacked"
    # Inlining it would turn each noalias parameter into alias metadata on all accesses.
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
