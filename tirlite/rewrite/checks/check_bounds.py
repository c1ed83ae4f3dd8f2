"""CheckBounds adds to a function a check of each access that is not proved to lie in its buffer."""

from __future__ import annotations

from collections.abc import Collection

from tirlite.analysis.facts import Facts
from tirlite.ir.expr import Binary, Buffer, Expr, FloatImm, IntImm, Load, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.kernel_call import calls_in
from tirlite.ir.node import Node
from tirlite.ir.stmt import Allocate, AttrKey, AttrStmt, For, Store, View
from tirlite.record import record
from tirlite.rewrite.pipeline import FactsPass

# What most programs are made of, and what no access stands below.
_ATOMS: frozenset[type[Node]] = frozenset((IntImm, FloatImm, Var, Allocate))
# So few buffers are looked through as quickly as a set of them.
_FEW = 8


@record
class CheckBounds(FactsPass):
    """Marks with `tl.checked` what is not proved: indices, and the byte offsets of views, which must lie in their
    sources. Compiled code stops there with the fault that the interpreter would tell.

    What the tests around an access say counts. Nothing is marked under `tl.unchecked`. With `at_entry` no mark is put
    where conditions on dims and scalar parameters decide: an assert at the top says these, and a call that breaks it is
    for a function without `at_entry`; then what the function calls has its checks, too, which it has not otherwise.
    With `at_loops`, an innermost loop whose accesses a condition in front of it decides stands there twice, once
    without marks. `plainly` marks all that takes more than a glance to prove: for a function that is to find the fault
    of a call. For functions in normal form.
    """

    at_entry: bool = False
    at_loops: bool = False
    plainly: bool = False

    def rewritten(self, facts: Facts) -> PrimFunc:
        func = facts.func
        stmts = func.body.stmts
        if len(stmts) == 1 and isinstance(stmts[0], AttrStmt) and stmts[0].key is AttrKey.UNCHECKED:
            return func.replaced(body=stmts[0].body)
        # What is called is looked at, too.
        if is_plainly_inside(func) and not (self.at_entry and calls_in(func.body)):
            return func
        from tirlite.rewrite.checks.marks import with_checks, with_marks

        if self.plainly:
            return with_marks(facts)
        return with_checks(facts, at_entry=self.at_entry, at_loops=self.at_loops)


def is_plainly_inside(func: PrimFunc) -> bool:
    """Whether each index of a function in normal form is a constant below a constant, or counts up to its extent.

    False where it takes more than a look, where an author makes a view or leaves checks out, and where nothing is seen
    to give an allocation that is read a first value.
    """
    ends: dict[Var, tuple[Expr, ...]] = {}
    loaded: set[Buffer] = set()
    stored: set[Buffer | Var] = {*func.params}
    stack: list[Node] = [func.body]
    while stack:
        node = stack.pop()
        if isinstance(node, (Load, Store)):
            if not _are_inside(node, ends):
                return False
            if isinstance(node, Load):
                loaded.add(node.buffer)
                continue
            found = _loaded_by(node.value, ends)
            if found is None:
                return False
            loaded.update(found)
            # What a value takes part of gets no first value by it.
            if node.buffer not in found:
                stored.add(node.buffer)
            continue
        stack += [each for each in node.children() if type(each) not in _ATOMS]
        if isinstance(node, For):
            if node.step > 0 and isinstance(node.start, IntImm) and node.start.value >= 0:
                ends[node.var] = (node.stop,)
        elif (isinstance(node, View) and not node.fresh) or _says_unchecked(node):
            return False
    return loaded <= stored


def _loaded_by(value: Expr, ends: dict[Var, tuple[Expr, ...]]) -> Collection[Buffer] | None:
    """The buffers that a value takes elements of; None where an index takes more than a look."""
    found: list[Buffer] = []
    stack: list[Node] = [value]
    while stack:
        node = stack.pop()
        kind = type(node)
        if kind in _ATOMS:
            continue
        if isinstance(node, Load):
            if not _are_inside(node, ends):
                return None
            found.append(node.buffer)
        elif isinstance(node, Binary):
            stack += (node.a, node.b)
        else:
            stack += node.children()
    return found if len(found) < _FEW else set(found)


def _are_inside(access: Load | Store, ends: dict[Var, tuple[Expr, ...]]) -> bool:
    for index, extent in zip(access.indices, access.buffer.shape, strict=True):
        if not _is_inside(index, extent, ends):
            return False
    return True


def _says_unchecked(node: Node) -> bool:
    return isinstance(node, AttrStmt) and node.key is AttrKey.UNCHECKED


def _is_inside(index: Expr, extent: Expr, ends: dict[Var, tuple[Expr, ...]]) -> bool:
    if type(index) is IntImm:
        if type(extent) is IntImm:
            return 0 <= index.value < extent.value
        return type(extent) is Var and extent.dim is not None and 0 <= index.value < extent.dim.min
    for stop in ends.get(index, ()) if type(index) is Var else ():
        if stop is extent or (type(stop) is IntImm and type(extent) is IntImm and stop.value <= extent.value):
            return True
    return False
