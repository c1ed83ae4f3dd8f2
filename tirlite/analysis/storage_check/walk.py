"""Walks the original and the rewritten function in step, and finds roots, their residents and all events.

The statements of the two must be the same, in the same order, apart from declarations: an original Allocate may have
become a view, or stand further out; a new declaration may mention only what is known where it stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from tirlite.analysis.param_uses import Use, uses_of
from tirlite.analysis.shape_plan import ShapePlan, shape_plan
from tirlite.analysis.storage_check.resident import DeclaredBuffer, Flow, Happening, ProgramPart, Resident, Root, Wrong
from tirlite.ir.expr import Binary, Buffer, BufferRef, Call, FloatImm, IntImm, LetExpr, Load, Var
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
    Let,
    SeqStmt,
    Stmt,
    Store,
    ThreadRole,
    View,
    While,
    is_barrier,
    thread_role,
)
from tirlite.ir.trampoline import Steps, run

_Declaration: TypeAlias = Allocate | View
_DECLARATIONS = (Allocate, View)
# What is told apart by one look: nothing stands below it.
_ATOMS: frozenset[type[Node]] = frozenset((IntImm, FloatImm, Var))
# What names meant before a body.
_Outside: TypeAlias = "dict[Buffer, tuple[DeclaredBuffer | None, Resident | None]]"
_Composite: TypeAlias = For | While | IfThenElse | AttrStmt


class Walk:
    """One walk through both functions. `roots` are the Allocates of the rewritten one; `runs` tells for each of
    `watched` the positions from its begin to its end, once for each time that it stands in the program. `plan` is the
    one that only the rewritten function takes, if it does.
    """

    def __init__(self, original: PrimFunc, rewritten: PrimFunc, watched: Iterable[Stmt] = ()) -> None:
        self.roots: list[Root] = []
        self.runs: dict[Stmt, list[tuple[int, int, ProgramPart]]] = {stmt: [] for stmt in watched}
        self._clock = 0
        self._thread: For | None = None
        self._block: For | None = None
        self._known: set[Var] = {*original.dims}
        self._declared: dict[Buffer, DeclaredBuffer] = {}
        self._root_of: dict[DeclaredBuffer, Root] = {}
        self._residents: dict[Buffer, Resident | None] = {}
        for param in original.params:
            if isinstance(param, Buffer):
                self._declared[param] = DeclaredBuffer(None)
            else:
                self._known.add(param)
        self.plan = _plan_of(original, rewritten)
        region = ProgramPart(Flow.ONCE, None, 0, 0)
        run(self._body(original.body, rewritten.body if self.plan is None else self.plan.body, region))
        region.end = self._tick()

    def _tick(self) -> int:
        self._clock += 1
        return self._clock

    def _body(self, old: SeqStmt, new: SeqStmt, region: ProgramPart) -> Steps[None]:
        """Two bodies; what they declare is forgotten at their end."""
        names: list[Var] = []
        # What the function's own body declares is asked for by nothing after its end.
        buffers: _Outside | None = None if region.parent is None else {}
        after, rest, new_end = 0, new.stmts, len(new.stmts)
        before, olds, old_end = 0, old.stmts, len(old.stmts)
        while True:
            start, begin = after, before
            while after < new_end and type(rest[after]) in _DECLARATIONS:
                after += 1
            while before < old_end and type(olds[before]) in _DECLARATIONS:
                before += 1
            if after > start or before > begin:
                self._declarations(olds[begin:before], rest[start:after], region, buffers)
            if before == old_end or after == new_end:
                break
            stmt, new_stmt = olds[before], rest[after]
            begun = self._clock + 1
            if stmt is not new_stmt and not _same_but_bodies(stmt, new_stmt):
                raise Wrong("a statement is not what it was", at=stmt, by=new_stmt)
            if isinstance(stmt, Store):
                self._store(stmt, region)
            elif isinstance(stmt, (For, While, IfThenElse, AttrStmt)):
                yield self._composite(stmt, new_stmt, region)
            else:
                self._leaf(stmt, region)
                if isinstance(stmt, Let):
                    self._known.add(stmt.var)
                    names.append(stmt.var)
            if stmt in self.runs:
                self.runs[stmt].append((begun, self._tick(), region))
            before, after = before + 1, after + 1
        if before < old_end:
            raise Wrong("a statement is lost", at=olds[before])
        if after < new_end:
            raise Wrong("a statement is new", at=rest[after])
        self._known.difference_update(names)
        for buffer, (declared, resident) in (buffers or {}).items():
            if declared is None:
                self._declared.pop(buffer, None)
            else:
                self._declared[buffer] = declared
            if resident is None:
                self._residents.pop(buffer, None)
            else:
                self._residents[buffer] = resident

    def _declarations(
        self,
        olds: Sequence[Any],
        news: Sequence[Any],
        region: ProgramPart,
        outside: _Outside | None,
    ) -> None:
        """Declarations that stand between two statements. `outside` keeps what their names meant before."""
        stmt: _Declaration
        known, residents = self._declared, self._residents
        here = {stmt.buffer: stmt for stmt in olds}
        for stmt in news:
            buffer = stmt.buffer
            before = here.get(buffer)
            if before is not stmt:
                self._demand_known(stmt, is_moved=before is None)
            if before is None and buffer in known:
                raise Wrong(f"`{buffer.name}` is declared again where it was not", [buffer], stmt)
            if outside is not None and buffer not in outside:
                outside[buffer] = known.get(buffer), residents.get(buffer)
            known[buffer] = self._declare(stmt, region)
        for stmt in olds:
            buffer = stmt.buffer
            if outside is not None and buffer not in outside:
                outside[buffer] = known.get(buffer), residents.get(buffer)
            self._touch([*buffer.shape[::-1]], region, stmt)
            if isinstance(stmt, Allocate):
                residents[buffer] = self._begin(stmt, region)
            else:
                self._view(stmt, region)

    def _demand_known(self, stmt: Allocate | View, *, is_moved: bool) -> None:
        """A declaration that stands elsewhere than before, or is new, may use only variables that have a value.

        The extents of one that has not moved are computed as before.
        """
        exprs = list(stmt.buffer.shape) if is_moved else []
        if type(stmt) is View and type(stmt.byte_offset) is not IntImm:
            exprs.append(stmt.byte_offset)
        while exprs:
            expr = exprs.pop()
            if type(expr) is IntImm or (self.plan is not None and self.plan.entry(expr) is not None):
                continue
            if isinstance(expr, Var) and expr not in self._known:
                raise Wrong(f"`{stmt.buffer.name}` is declared where `{expr.name}` has no value yet", at=stmt)
            if isinstance(expr, (Load, Call, LetExpr)):
                raise Wrong(f"the declaration of `{stmt.buffer.name}` was moved, and it computes", at=stmt)
            exprs += expr.children()

    def _declare(self, stmt: Allocate | View, region: ProgramPart) -> DeclaredBuffer:
        if isinstance(stmt, Allocate):
            declared = DeclaredBuffer(stmt)
            root = self._root_of[declared] = Root(stmt, region, self._thread, self._block)
            self.roots.append(root)
            return declared
        source = self._declared.get(stmt.source)
        if source is None:
            raise Wrong(f"`{stmt.buffer.name}` is a view of `{stmt.source.name}`, which is not there", at=stmt)
        return DeclaredBuffer(stmt, source)

    def _begin(self, stmt: Allocate, region: ProgramPart) -> Resident | None:
        """An original Allocate; None where the rewritten program has dropped it."""
        declared = self._declared.get(stmt.buffer)
        if declared is None:
            return None
        root = self._root_of.get(declared if declared.source is None else declared.outermost)
        if root is None:
            raise Wrong(f"`{stmt.buffer.name}` lies in an array of the caller", [stmt.buffer], stmt)
        self._clock = position = self._clock + 1
        resident = Resident(stmt, region, position, declared, [], thread=self._thread, block=self._block)
        root.residents.append(resident)
        return resident

    def _view(self, stmt: View, region: ProgramPart) -> None:
        """An original View, which must be as it was, or gone with its source."""
        declared = self._declared.get(stmt.buffer)
        if declared is not None and declared.declaration is not stmt:
            raise Wrong(f"the view `{stmt.buffer.name}` is not what it was", [stmt.buffer], stmt)
        if declared is not None and declared.source is not self._declared.get(stmt.source):
            raise Wrong(f"`{stmt.buffer.name}` is a view of another `{stmt.source.name}`", [stmt.buffer], stmt)
        if stmt.source in self._residents:
            self._residents[stmt.buffer] = None if declared is None else self._residents[stmt.source]
        self._touch([stmt.byte_offset], region, stmt)

    def _call(self, call: KernelCall, region: ProgramPart) -> None:
        """What the callee may do to the buffers that it is given, in the order that harms most if any two meet.

        What it leaves alone must be there as well.
        """
        self._touch(list[Node](value for _, value in call.scalars())[::-1], region, call)
        uses = uses_of(call.callee)
        given = [(buffer, uses[param] or Use.READ) for param, buffer in call.buffers()]
        for buffer, use in given * 2:
            if use & Use.WRITE:
                self._happens(buffer, region, call, call, writes=True)
        for buffer, use in given:
            if use & Use.READ:
                self._happens(buffer, region, call, call)
            if use & Use.OPAQUE:
                self._opaque(buffer, region, call, call)

    def _store(self, stmt: Store, region: ProgramPart) -> None:
        self._touch([stmt.value, *stmt.indices[::-1]], region, stmt)
        self._happens(stmt.buffer, region, stmt, stmt, writes=True)

    def _leaf(self, stmt: Stmt, region: ProgramPart) -> None:
        if isinstance(stmt, KernelCall):
            self._call(stmt, region)
            return
        self._touch([*stmt.children()[::-1]], region, stmt)
        if is_barrier(stmt):
            region.barriers.append(self._tick())

    def _composite(self, old: _Composite, new: Stmt, region: ProgramPart) -> Steps[None]:
        if isinstance(old, IfThenElse):
            assert isinstance(new, IfThenElse)
            self._touch([old.condition], region, old)
            choice = self._open(Flow.CHOICE, region)
            yield self._inside(old.then_body, new.then_body, self._open(Flow.ONCE, choice, old))
            yield self._inside(old.else_body, new.else_body, self._open(Flow.ONCE, choice, old, is_else=True))
            choice.end = self._tick()
        elif isinstance(old, AttrStmt):
            assert isinstance(new, AttrStmt)
            if old.key is AttrKey.EXTERN_SCOPE:
                # What is declared here ends here, be its uses known or not.
                yield self._inside(old.body, new.body, self._open(Flow.ONCE, region))
            else:
                yield self._body(old.body, new.body, region)
        else:
            assert isinstance(new, For | While)
            yield self._loop(old, new, region)

    def _loop(self, old: For | While, new: For | While, region: ProgramPart) -> Steps[None]:
        if isinstance(old, While):
            inner = self._open(Flow.LOOP, region, old)
            self._touch([old.condition], inner, old)
            yield self._inside(old.body, new.body, inner)
            return
        self._touch([old.stop, old.start], region, old)
        self._known.add(old.var)
        around, role = (self._thread, self._block), thread_role(old)
        if role is ThreadRole.BLOCK:
            self._block = old
        elif role is not None:
            self._thread = old
        if old.kind is ForKind.THREAD and region.attach is not None and region.attach.kind is ForKind.THREAD:
            # Thread-bound loops inside one another are one launch.
            yield self._body(old.body, new.body, region)
        else:
            inner = self._open(Flow.LOOP, region, old)
            if old.kind in (ForKind.PARALLEL, ForKind.THREAD):
                inner.attach, inner.attached = old, inner
            yield self._inside(old.body, new.body, inner)
        self._thread, self._block = around
        self._known.discard(old.var)

    def _inside(self, old: SeqStmt, new: SeqStmt, region: ProgramPart) -> Steps[None]:
        yield self._body(old, new, region)
        region.end = self._tick()

    def _open(
        self, flow: Flow, parent: ProgramPart, composite: Stmt | None = None, *, is_else: bool = False
    ) -> ProgramPart:
        attach, attached = parent.attach, parent.attached
        return ProgramPart(
            flow, parent, parent.depth + 1, self._tick(), attach, attached, composite=composite, is_else=is_else
        )

    def _touch(self, stack: list[Node], region: ProgramPart, stmt: Stmt) -> None:
        """Note the loads and the opaque uses in expressions, of which the first one is the last of the list."""
        while stack:
            each = stack.pop()
            if type(each) in _ATOMS:
                continue
            if isinstance(each, Load):
                self._happens(each.buffer, region, stmt, each)
                stack += each.indices
                continue
            if isinstance(each, Binary):
                stack += (each.a, each.b)
                continue
            if isinstance(each, BufferRef):
                self._opaque(each.buffer, region, stmt, each)
            elif isinstance(each, Call):
                operand = each.args[0] if each.op is Op.ADDRESS_OF else None
                if isinstance(operand, Load):
                    self._opaque(operand.buffer, region, stmt, each)
            stack += each.children()

    def _happens(
        self, buffer: Buffer, region: ProgramPart, stmt: Stmt, node: Node, *, writes: bool = False
    ) -> Resident | None:
        self._clock += 1
        resident = self._residents.get(buffer)
        if resident is None:
            if buffer not in self._declared:
                raise Wrong(f"`{buffer.name}` is used and not declared", [buffer], stmt)
            if buffer in self._residents:
                raise Wrong(f"`{buffer.name}` is not declared where it was", [buffer], stmt)
            return None
        resident.happenings.append(Happening(self._clock, writes, region, stmt, node))
        if self._thread is not resident.thread:
            resident.is_forked = True
        if resident.opaque is None and resident.stmt.buffer.volatile:
            resident.opaque = stmt
        return resident

    def _opaque(self, buffer: Buffer, region: ProgramPart, stmt: Stmt, node: Node) -> None:
        """The address is handed on: from here to the end of the body, anything may happen to the buffer."""
        self._happens(buffer, region, stmt, node)
        resident = self._happens(buffer, region, stmt, node, writes=True)
        if resident is not None and resident.opaque is None:
            resident.opaque = stmt


def _plan_of(original: PrimFunc, rewritten: PrimFunc) -> ShapePlan | None:
    """The plan that the rewritten function takes and the original one does not. Raises Wrong for other parameters."""
    if original.params == rewritten.params:
        return None
    plan = shape_plan(rewritten)
    if plan is None or (*original.params, plan.buffer) != rewritten.params:
        raise Wrong("the parameters are not the same")
    return plan


def _same_but_bodies(old: Stmt, new: Stmt) -> bool:
    if type(old) is not type(new):
        return False
    for name in old.FIELDS:
        one, other = getattr(old, name), getattr(new, name)
        if one is not other and one != other and not isinstance(one, SeqStmt) and name != "span":
            return False
    return True
