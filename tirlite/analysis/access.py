"""Makes the linear access sequence of a function: which allocated buffers are touched where, in program order.

Source: the access-pattern finder of TVM's storage_rewrite (2017). A leaf statement is one entry. A composite (for,
while, if, the outermost thread-bound loop, an extern scope) is two: one before its body and one after it. A touch is
printed at the level where its buffer was allocated: on the leaf itself where that stands beside the Allocate, else on
the `after` of the composite, beside the Allocate, that holds it. Parameters are not printed, nor are leaves that touch
nothing else, and a view stands for the allocation at its root.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from tirlite.analysis.param_uses import Use, uses_of
from tirlite.analysis.threads import Visibility, visibilities
from tirlite.ir.demand import of_prim_func
from tirlite.ir.expr import Binary, Buffer, BufferRef, Call, FloatImm, IntImm, Load, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.kernel_call import KernelCall
from tirlite.ir.node import Node
from tirlite.ir.op import Op
from tirlite.ir.stmt import (
    Allocate,
    AttrKey,
    AttrStmt,
    For,
    ForKind,
    IfThenElse,
    SeqStmt,
    Stmt,
    Store,
    View,
    While,
    is_barrier,
)
from tirlite.ir.walk import composites, statements, statements_of
from tirlite.record import record

if TYPE_CHECKING:
    from tirlite.analysis.integers.definitions import Loop
    from tirlite.analysis.loops.reductions import Operation


class AccessKind(Enum):
    """How an entry touches a buffer. Opaque: its address is handed on, so that nothing is known of the use."""

    READ = "read"
    WRITE = "write"
    OPAQUE = "opaque"


@record(frozen=False, eq=False)
class Entry:
    """One point of the sequence.

    `position` counts the statements in program order, ends of composites included. `scope_pair_offset` leads from a
    composite's `before` to its `after` and back; it is 0 on a leaf.
    """

    stmt: Stmt
    position: int
    depth: int
    scope_pair_offset: int = 0


@record(frozen=False, eq=False, repr=False)
class Region:
    """A body: where allocations can stand. `before` and `after` are the positions of its composite's two entries."""

    composite: Stmt | None
    parent: Region | None
    depth: int
    before: int
    after: int = -1
    attach: Region | None = None  # the innermost parallel or thread-bound loop's region around, itself included
    then: Region | None = None  # of an else branch: the other one
    has_threads: bool = False  # whether thread-bound loops stand inside this one, which have no regions of their own
    barriers: list[int] = field(default_factory=list)  # the positions of those beside its statements

    @property
    def is_thread(self) -> bool:
        """Whether it is the body of a thread-bound loop."""
        return isinstance(self.composite, For) and self.composite.kind is ForKind.THREAD

    def __repr__(self) -> str:
        return f"Region([{self.before}, {self.after}), depth {self.depth})"  # not `attach`, which may be itself


@record(guarded=False)
class Touch:
    """An access and its place: the innermost region, the position of the statement, and that statement.

    `node` is the Load, Store, Call or KernelCall; for a KernelCall `param` is the callee's parameter.

    Bounds and conditions of a composite belong to the region around it, at the position of its `before`; the condition
    of a while belongs to its body.
    """

    kind: AccessKind
    region: Region
    position: int
    node: Node
    stmt: Stmt
    param: Buffer | None = None

    @property
    def reduction(self) -> Operation | None:
        """The operation by which its statement combines a value into the element, if that is all it touches it for."""
        from tirlite.analysis.loops.reductions import update_of

        update = update_of(self.stmt) if isinstance(self.stmt, Store) else None
        return None if update is None or self.node not in (update.store, update.element) else update.operation

    def __str__(self) -> str:
        node, buffer = self.node, self.buffer
        if isinstance(node, Load | Store):
            what = str(Load(node.buffer, node.indices))
        elif isinstance(node, KernelCall):
            what = f"{buffer.name} in {node.callee.name}()"
        else:
            what = f"the address of {buffer.name}"
        return what if self.stmt.span is None else f"{what} (line {self.stmt.span.line})"

    @property
    def buffer(self) -> Buffer:
        """The allocation, or the view of it, that is named at this place."""
        if isinstance(self.node, KernelCall):
            return next(buffer for param, buffer in self.node.buffers() if param is self.param)
        if isinstance(self.node, Call):  # the address of an element, or of several
            operand = self.node.args[0]
            assert isinstance(operand, Load | BufferRef)
            return operand.buffer
        assert isinstance(self.node, Load | Store | BufferRef)
        return self.node.buffer


@record(frozen=False, eq=False)
class Allocation:
    """One Allocate as it stands at one place: its buffer, the body that it stands in, and all touches in order.

    A statement object that stands in the program twice makes two of them. `position` is that of the Allocate, -1 for a
    parameter. `visibility` says who sees what is allocated inside thread-bound loops.
    """

    buffer: Buffer
    home: Region
    position: int = -1
    touches: list[Touch] = field(default_factory=list)
    visibility: Visibility | None = None


@record
class LinearSequence:
    """The entries, and the allocations, both in program order.

    `params` are the buffer parameters, with their touches, as if they were allocated at the top of the function.
    """

    entries: tuple[Entry, ...]
    allocations: tuple[Allocation, ...]
    params: tuple[Allocation, ...] = ()

    def __str__(self) -> str:
        touched = self._touched()
        shown = [each for each in self.entries if each.scope_pair_offset or each.position in touched]
        numbers = {entry.position: number for number, entry in enumerate(shown)}
        lines = []
        for number, entry in enumerate(shown):
            offset = numbers[entry.position + entry.scope_pair_offset] - number
            end, told = "end " if offset < 0 else "", touched.get(entry.position)
            line = f"{entry.position:>3} {offset:>+3} {'  ' * entry.depth}{end}{_label(entry.stmt)}"
            lines.append(f"{line}: {', '.join(told)}" if told else line)
        return "\n".join(lines)

    def _touched(self) -> dict[int, dict[str, None]]:
        """By position, what is told of the allocations that are touched there."""
        found: list[tuple[int, int, bool, str]] = []
        for allocation in self.allocations:
            name, home = allocation.buffer.name, allocation.home
            found.append((allocation.position, allocation.position, False, f"alloc {name}"))
            for touch in allocation.touches:
                at, region = touch.position, touch.region
                while region is not home:
                    assert region.parent is not None
                    at, region = region.before, region.parent
                at += max(self.entries[at].scope_pair_offset, 0)
                found.append((at, touch.position, touch.kind is AccessKind.WRITE, f"{touch.kind.value} {name}"))
        touched: dict[int, dict[str, None]] = {}
        for at, *_, told in sorted(found, key=lambda each: each[:3]):
            touched.setdefault(at, {})[told] = None
        return touched

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)


@of_prim_func
def linear_sequence(func: PrimFunc) -> LinearSequence:
    """The linear access sequence of `func`; `str` of it has one line an entry."""
    return _Finder(func).find()


def touches_within(func: PrimFunc, loop: For) -> dict[Loop, dict[Allocation, list[Touch]]] | None:
    """`touches_in` of a sequence for a loop and those inside of it, without a look at what stands beside.

    None where there are thread-bound loops.
    """
    way = _way_to(loop, func.body)
    if not way or any(each.kind is ForKind.THREAD for each in statements_of(way[0][1], For)):
        return None
    found = touches_in(_Finder(func).find_within(way))
    return {each: found.get(each, {}) for each in statements(loop) if isinstance(each, For | While)}


def touches_in(sequence: LinearSequence) -> dict[Loop, dict[Allocation, list[Touch]]]:
    """For each loop the accesses inside of it, by buffer, of those that are allocated outside."""
    found: dict[Loop, dict[Allocation, list[Touch]]] = {}
    for allocation in (*sequence.params, *sequence.allocations):
        for touch in allocation.touches:
            region = touch.region
            while region is not allocation.home and region.parent is not None:
                if isinstance(region.composite, For | While):
                    found.setdefault(region.composite, {}).setdefault(allocation, []).append(touch)
                region = region.parent
    return found


def _way_to(loop: Stmt, body: SeqStmt) -> tuple[tuple[SeqStmt, Stmt], ...]:
    """The blocks around a statement that holds others, the outermost first, each with that in it which leads there."""
    stack: list[tuple[SeqStmt, tuple[tuple[SeqStmt, Stmt], ...]]] = [(body, ())]
    while stack:
        block, before = stack.pop()
        for stmt in composites(block):
            way = (*before, (block, stmt))
            if stmt is loop:
                return way
            stack += [(inner, way) for inner in stmt.bodies]
    return ()


# Python 3.11 finds a member through its enum in ten times the time that it takes to find a name of the module.
READ, WRITE, OPAQUE = AccessKind

# What most expressions are made of: told apart by one look.
_ATOMS: frozenset[type[Node]] = frozenset((IntImm, FloatImm, Var))

_KINDS = {Use.READ: READ, Use.WRITE: WRITE, Use.OPAQUE: OPAQUE}


# What is to be done on the way out of a body, with the composite that it is of.
_Step: TypeAlias = tuple[Callable[[Stmt], None], Stmt]


class _Finder:
    """One walk in program order, with a stack of the bodies that are open."""

    def __init__(self, func: PrimFunc) -> None:
        self.func = func
        self.entries: list[Entry] = []
        self.allocations: list[Allocation] = []
        self.open: list[Region] = [Region(None, None, 0, -1)]
        self.stmt: Stmt = func.body  # the one whose expressions are looked at
        self.params = {param: Allocation(param, self.open[0]) for param in func.arrays}
        # By buffer or view: the allocation at its root, or the parameter.
        self.roots: dict[Buffer, Allocation] = {**self.params}
        self.visible: dict[Allocate, Visibility] = {}  # in the launch that is open

    def find(self) -> LinearSequence:
        return self.found([*reversed(self.func.body.stmts)])

    def find_within(self, way: Sequence[tuple[SeqStmt, Stmt]]) -> LinearSequence:
        """What is touched in the last statement of a way: what is declared around it is all that counts of the rest."""
        for place, (block, composite) in enumerate(way):
            for stmt in block.stmts[: block.stmts.index(composite)]:
                if isinstance(stmt, Allocate):
                    self.allocate(stmt)
                elif isinstance(stmt, View):
                    self.leaf(stmt)
            if composite is way[-1][1]:
                break
            if self.opens_scope(composite):
                self.enter(composite)
                if isinstance(composite, IfThenElse) and way[place + 1][0] is composite.else_body:
                    self.open_else(composite)
        return self.found([way[-1][1]])

    def found(self, todo: list[Stmt | _Step]) -> LinearSequence:
        while todo:
            stmt = todo.pop()
            if isinstance(stmt, Store):
                self.store(stmt)
            elif isinstance(stmt, Allocate):
                self.allocate(stmt)
            elif isinstance(stmt, tuple):
                step, composite = stmt
                step(composite)
            elif self.opens_scope(stmt):
                self.enter(stmt)
                todo.append((self.leave, stmt))
                if isinstance(stmt, IfThenElse):
                    todo += reversed(stmt.else_body.stmts)
                    todo.append((self.open_else, stmt))
                    todo += reversed(stmt.then_body.stmts)
                else:
                    todo += reversed(_body(stmt).stmts)
            elif isinstance(stmt, (For, AttrStmt)):  # a thread-bound loop inside another, a remark: no scope of its own
                if isinstance(stmt, For):
                    attach = self.open[-1].attach
                    assert attach is not None
                    attach.has_threads = True
                todo += reversed(stmt.body.stmts)
            else:
                self.leaf(stmt)
        self.open[0].after = len(self.entries)
        return LinearSequence(tuple(self.entries), tuple(self.allocations), tuple(self.params.values()))

    def add(self, stmt: Stmt) -> tuple[Region, int]:
        """A new entry for a statement: the region that it stands in, and its position."""
        self.stmt = stmt
        region, position = self.open[-1], len(self.entries)
        self.entries.append(Entry(stmt, position, region.depth))
        return region, position

    def opens_scope(self, stmt: Stmt) -> bool:
        if isinstance(stmt, For):
            return stmt.kind is not ForKind.THREAD or not self.in_thread()
        return isinstance(stmt, (While, IfThenElse)) or (
            isinstance(stmt, AttrStmt) and stmt.key is AttrKey.EXTERN_SCOPE
        )

    def in_thread(self) -> bool:
        attach = self.open[-1].attach
        return attach is not None and attach.is_thread

    def enter(self, stmt: Stmt) -> None:
        outer, position = self.add(stmt)
        region = Region(stmt, outer, outer.depth + 1, position)
        starts_attach = isinstance(stmt, For) and stmt.kind in (ForKind.PARALLEL, ForKind.THREAD)
        region.attach = region if starts_attach else outer.attach
        if region.is_thread:
            assert isinstance(stmt, For)
            self.visible = visibilities(stmt)
        # A bound or the condition of an if is evaluated outside the body, but is listed on the composite's `after`.
        self.touch([*_outside(stmt)[::-1]], outer, position)
        self.open.append(region)
        if isinstance(stmt, While):
            self.touch([stmt.condition], region, position)

    def open_else(self, stmt: Stmt) -> None:
        then = self.open[-1]
        self.open[-1] = Region(stmt, then.parent, then.depth, then.before, attach=then.attach, then=then)

    def leave(self, stmt: Stmt) -> None:
        region = self.open.pop()
        region.after = len(self.entries)
        distance = region.after - region.before
        self.entries[region.before].scope_pair_offset = distance
        self.entries.append(Entry(stmt, region.after, region.depth - 1, -distance))
        if region.then is not None:
            region.then.after = region.after

    def store(self, stmt: Store) -> None:
        region, position = self.add(stmt)
        self.touch([stmt.value, *stmt.indices[::-1]], region, position)
        self.record(stmt.buffer, WRITE, region, position, stmt)

    def allocate(self, stmt: Allocate) -> None:
        region, position = self.add(stmt)
        self.touch([*stmt.buffer.shape[::-1]], region, position)
        visibility = self.visible.get(stmt) if self.visible and self.in_thread() else None
        allocation = self.roots[stmt.buffer] = Allocation(stmt.buffer, region, position, [], visibility)
        self.allocations.append(allocation)

    def leaf(self, stmt: Stmt) -> None:
        region, position = self.add(stmt)
        if isinstance(stmt, View):
            self.touch([*stmt.buffer.shape[::-1]], region, position)
            if stmt.source in self.roots:
                self.roots[stmt.buffer] = self.roots[stmt.source]
            self.touch([*stmt.children()[::-1]], region, position)
        elif isinstance(stmt, KernelCall):
            self.call(stmt, region, position)
        else:
            if is_barrier(stmt):
                region.barriers.append(position)
            self.touch([*stmt.children()[::-1]], region, position)

    def call(self, call: KernelCall, region: Region, position: int) -> None:
        """Record what the callee does to the buffers that it is given: what it leaves alone must be there as well."""
        self.touch(list[Node](value for _, value in call.scalars())[::-1], region, position)
        uses = uses_of(call.callee)
        for use, kind in _KINDS.items():
            for param, buffer in call.buffers():
                if (uses[param] or Use.READ) & use:
                    self.record(buffer, kind, region, position, call, param)

    def touch(self, stack: list[Node], region: Region, position: int) -> None:
        """Record the reads and opaque uses in expressions, of which the first one is the last of the list."""
        while stack:
            node = stack.pop()
            if type(node) in _ATOMS:
                continue
            if isinstance(node, Load):
                stack += node.indices[::-1]
                self.record(node.buffer, READ, region, position, node)
                continue
            if isinstance(node, Binary):
                stack += (node.b, node.a)
                continue
            stack += node.children()[::-1]
            if isinstance(node, Call) and node.op is Op.ACCESS_PTR:
                stack.pop()  # its buffer
                self.record_address(node, region, position)
            elif isinstance(node, BufferRef):
                self.record(node.buffer, OPAQUE, region, position, node)
            elif isinstance(node, Call) and node.op is Op.ADDRESS_OF:
                self.record_address(node, region, position)

    def record_address(self, call: Call, region: Region, position: int) -> None:
        operand = call.args[0]
        if isinstance(operand, Load | BufferRef):
            self.record(operand.buffer, OPAQUE, region, position, call)

    def record(
        self,
        buffer: Buffer,
        kind: AccessKind,
        region: Region,
        position: int,
        node: Node,
        param: Buffer | None = None,
    ) -> None:
        root = self.roots.get(buffer)
        if root is not None:
            root.touches.append(Touch(kind, region, position, node, self.stmt, param))


def _outside(stmt: Stmt) -> tuple[Node, ...]:
    if isinstance(stmt, For):
        return (stmt.start, stmt.stop)
    return (stmt.condition,) if isinstance(stmt, IfThenElse) else ()


def _body(stmt: Stmt) -> SeqStmt:
    assert isinstance(stmt, For | While | AttrStmt)
    return stmt.body


def _label(stmt: Stmt) -> str:
    if isinstance(stmt, For):
        return f"for {stmt.var.name}" if stmt.kind is ForKind.SERIAL else f"for {stmt.var.name} ({stmt.kind.value})"
    if isinstance(stmt, Store | Allocate):
        return f"{type(stmt).__name__.lower()} {stmt.buffer.name}"
    if isinstance(stmt, KernelCall):
        return f"call {stmt.callee.name}"
    names = {IfThenElse: "if", AttrStmt: "attr"}
    return names.get(type(stmt), type(stmt).__name__.lower())
