"""Interleaves the statements of virtual threads, and turns blocks and threads into ordinary loops.

Sources: TVM's InjectVirtualThread (2017), which lets one thread do the work of several, so that loads of some overlap
computation of others; and loop fission at barriers, as in "Efficient Compilation of Fine-Grained SPMD-threaded Programs
for Multicore CPUs" (Stratton et al., 2010). Blocks become iterations of parallel loops. The threads of a block run in a
serial loop, which is split in two at each barrier.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tirlite.analysis.facts import Facts
from tirlite.analysis.threads import check_thread_nesting
from tirlite.diag import Message
from tirlite.ir import Evaluate, For, ForKind, Node, PrimFunc, Stmt, statements_of
from tirlite.ir.checked import has_check
from tirlite.ir.stmt import ThreadRole, is_barrier, thread_role

if TYPE_CHECKING:
    from tirlite.ir import Rule


class VirtualThreadsLeft(Message):
    """A pass meets virtual threads, which another pass must take away first.

    Example: `tl.passes.StorageRewrite()(func)`, where `func` has a loop over `tl.thread("vthread", 2)`.
    """

    title = "{pass_name} cannot handle the virtual threads of `{tag}`"
    label = "these"
    help = "run `tl.passes.InjectVirtualThreads()` first"


def without_virtual(facts: Facts, *, windows: bool) -> PrimFunc:
    """The function with its virtual threads interleaved, see `InjectVirtualThreads`."""
    func = facts.func
    if not any(thread_role(loop) is ThreadRole.VIRTUAL for loop in statements_of(func.body, For)):
        return func
    check_thread_nesting(func)
    return Division(ThreadRole.VIRTUAL, windows=windows or has_check(func.body)).applied(func)


class Division:
    """A walk that divides the outermost loops over threads of one role; `depth` counts such loops around."""

    def __init__(self, role: ThreadRole, *, windows: bool) -> None:
        self.role = role
        self.windows = windows
        self.depth = 0

    def applied(self, func: PrimFunc) -> PrimFunc:
        from tirlite.ir import rewrite

        return rewrite(func, self.rules(), enter={For: self.enter})

    def rules(self) -> dict[type[Node], Rule]:
        return {For: self.loop}

    def enter(self, loop: For) -> None:
        self.depth += thread_role(loop) is self.role

    def loop(self, loop: For) -> Node | tuple[Stmt, ...]:
        if thread_role(loop) is not self.role:
            return loop
        self.depth -= 1
        if self.depth:
            return loop
        from tirlite.rewrite.threads.emission import divided

        return divided(loop, windows=self.windows).stmts


def demand_injected(func: PrimFunc, pass_name: str) -> None:
    """Raises KernelError if virtual threads are left in `func`."""
    for loop in statements_of(func.body, For):
        if thread_role(loop) is ThreadRole.VIRTUAL:
            raise VirtualThreadsLeft(pass_name, loop.thread_tag, span=loop.span).error()


def without_threads(facts: Facts, *, windows: bool) -> PrimFunc:
    """The function without thread-bound loops, see `SplitThreads`."""
    func = facts.func
    found = statements_of(func.body, For, Evaluate)
    if not any(thread_role(stmt) is not None or is_barrier(stmt) for stmt in found):
        return func
    check_thread_nesting(func)
    demand_injected(func, "split-threads")
    return _Splitter(ThreadRole.THREAD, windows=windows or has_check(func.body)).applied(func)


class _Splitter(Division):
    """A division that also makes loops over blocks parallel, and removes barriers outside of threads."""

    def rules(self) -> dict[type[Node], Rule]:
        return {**super().rules(), Evaluate: self.evaluate}

    def evaluate(self, stmt: Evaluate) -> Stmt | tuple[Stmt, ...]:
        return () if is_barrier(stmt) and not self.depth else stmt

    def loop(self, loop: For) -> Node | tuple[Stmt, ...]:
        if thread_role(loop) is ThreadRole.BLOCK:
            return loop.replaced(kind=ForKind.PARALLEL, thread_tag="")
        return super().loop(loop)
