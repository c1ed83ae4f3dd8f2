"""InjectVirtualThreads interleaves the statements of virtual threads; SplitThreads makes ordinary loops of blocks.

Sources: the pass of the first name in TVM (2017), which lets one thread do the work of several, so that what they load
can be under way while others compute; and loop fission at barriers, as in "Efficient Compilation of Fine-Grained
SPMD-threaded Programs for Multicore CPUs" (Stratton et al., 2010). Blocks become iterations of parallel loops. The
threads of a block run in a loop, one after the other; where they meet at a barrier, the loop is split in two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tirlite.diag import Message
from tirlite.ir import Evaluate, For, ForKind, Node, PrimFunc, Stmt, statements_of
from tirlite.ir.checked import has_check
from tirlite.ir.demand import pass_call
from tirlite.ir.stmt import ThreadRole, is_barrier, thread_role
from tirlite.record import record

if TYPE_CHECKING:
    from tirlite.ir import Rule


class VirtualThreadsLeft(Message):
    """A pass meets virtual threads, which another pass must take away first.

    Example: `tl.passes.StorageRewrite()(func)`, where `func` has a loop over `tl.thread("vthread", 2)`.
    """

    title = "{pass_name} cannot handle the virtual threads of `{tag}`"
    label = "these"
    help = "run `tl.passes.InjectVirtualThreads()` first"


@record
class InjectVirtualThreads:
    """Interleaves virtual threads: each statement is done for all of them before the next one.

    Each virtual thread gets a copy of what is allocated inside, by an axis in front. Loops and branches that are the
    same for all of them move outside; barriers are passed once. With `windows` a copied buffer keeps its name and axes,
    as `SplitThreads` has it. The function is in normal form (see `Normalize`).

    Raises KernelError for a barrier that not all virtual threads come to alike.
    """

    windows: bool = False
    name: str = "inject-virtual-threads"

    @pass_call
    def __call__(self, func: PrimFunc) -> PrimFunc:
        if not any(thread_role(loop) is ThreadRole.VIRTUAL for loop in statements_of(func.body, For)):
            return func
        # What works on threads is loaded for functions that have some.
        from tirlite.analysis.threads import check_thread_nesting

        check_thread_nesting(func)
        return Division(ThreadRole.VIRTUAL, windows=self.windows or has_check(func.body)).applied(func)


class Division:
    """The walk that divides the outermost loops over threads of one role; `depth` loops of it are open."""

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
    """Raises KernelError where virtual threads are left in `func`."""
    for loop in statements_of(func.body, For):
        if thread_role(loop) is ThreadRole.VIRTUAL:
            raise VirtualThreadsLeft(pass_name, loop.thread_tag, span=loop.span).error()


@record
class SplitThreads:
    """Makes loops over blocks parallel, and loops over threads serial, one for each stretch between two barriers.

    Loops and branches around a barrier move outside of the loops over threads; they must run alike in all threads.
    Shared memory is declared once for all threads, and what one thread carries past a barrier gets a copy for each
    thread. With `windows` a copied buffer keeps its name and axes, as a view of the thread's part: for code that names
    elements in errors. The function is in normal form (see `Normalize`), its virtual threads are injected (see
    `InjectVirtualThreads`).

    Raises KernelError for a barrier that not all threads come to alike, and for thread-bound loops in a wrong order.
    """

    windows: bool = False
    name: str = "split-threads"

    @pass_call
    def __call__(self, func: PrimFunc) -> PrimFunc:
        found = statements_of(func.body, For, Evaluate)
        if not any(thread_role(stmt) is not None or is_barrier(stmt) for stmt in found):
            return func
        # What works on threads is loaded for functions that have some.
        from tirlite.analysis.threads import check_thread_nesting

        check_thread_nesting(func)
        demand_injected(func, self.name)
        is_checked = has_check(func.body)
        return _Splitter(ThreadRole.THREAD, windows=self.windows or is_checked).applied(func)


class _Splitter(Division):
    """Makes loops over blocks parallel on the way, and leaves out barriers at which no thread waits."""

    def rules(self) -> dict[type[Node], Rule]:
        return {**super().rules(), Evaluate: self.evaluate}

    def evaluate(self, stmt: Evaluate) -> Stmt | tuple[Stmt, ...]:
        return () if is_barrier(stmt) and not self.depth else stmt

    def loop(self, loop: For) -> Node | tuple[Stmt, ...]:
        if thread_role(loop) is ThreadRole.BLOCK:
            return loop.replaced(kind=ForKind.PARALLEL, thread_tag="")
        return super().loop(loop)
