"""Adds to a function a check of each index that is not proved to lie in its axis."""

from __future__ import annotations

from operator import is_
from typing import TypeGuard, TypeVar

from tirlite.analysis.bounds import Bounds
from tirlite.analysis.facts import Facts
from tirlite.ir import Call, Expr, Function, KernelCall, Load, Op, PrimFunc, Store, rewrite
from tirlite.ir.callees import closure_of
from tirlite.record import record
from tirlite.rewrite.pipeline import FactsPass
from tirlite.sizes import Proof

Access = TypeVar("Access", Load, Store)


@record
class CheckBounds(FactsPass):
    """Marks indices with `tl.checked`, also in what the function calls: compiled code stops there with the fault that
    the interpreter would tell.

    Runs behind everything that moves accesses, as a check stays with its access. For functions in normal form.
    """

    name: str = "check-bounds"

    def rewritten(self, facts: Facts) -> PrimFunc:
        checked: dict[Function, PrimFunc] = {}
        for func in closure_of(facts.func):
            checked[func] = _checked(facts.of(func), checked)
        return checked[facts.func]


def _checked(facts: Facts, known: dict[Function, PrimFunc]) -> PrimFunc:
    bounds = Bounds(facts)

    def index(given: Expr, extent: Expr) -> Expr:
        is_safe = _is_checked(given) or bounds.proof(given, extent) is Proof.YES
        return given if is_safe else Call(given.dtype, Op.CHECKED, (given,))

    def access(node: Access) -> Access:
        indices = tuple(map(index, node.indices, node.buffer.shape))
        return node if all(map(is_, indices, node.indices)) else node.replaced(indices=indices)

    def kernel_call(node: KernelCall) -> KernelCall:
        callee = known[node.callee]
        return node if callee is node.callee else node.replaced(callee=callee)

    result = rewrite(facts.func, {Load: access, Store: access, Call: _address, KernelCall: kernel_call})
    assert isinstance(result, PrimFunc)
    return result


def _is_checked(index: Expr) -> TypeGuard[Call]:
    return isinstance(index, Call) and index.op is Op.CHECKED


def _address(node: Call) -> Call:
    """An address is not an access: it may be that of the end of a buffer."""
    element = node.args[0] if node.op is Op.ADDRESS_OF else None
    if not isinstance(element, Load):
        return node
    bare = tuple(index.args[0] if _is_checked(index) else index for index in element.indices)
    return node.replaced(args=(element.replaced(indices=bare),))
