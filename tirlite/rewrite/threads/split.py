"""SplitThreads makes ordinary loops of blocks of threads.

Blocks become iterations of parallel loops. The threads of a block run in a loop, one after the other; where they meet
at a barrier, the loop is split in two. Source: loop fission at barriers, as in "Efficient Compilation of Fine-Grained
SPMD-threaded Programs for Multicore CPUs" (Stratton et al., 2010).
"""

from __future__ import annotations

from tirlite.ir import Evaluate, For, ForKind, Node, PrimFunc, Stmt, statements_of
from tirlite.ir.checked import has_check
from tirlite.ir.demand import pass_call
from tirlite.ir.thread_tag import ThreadRole, is_barrier, thread_role
from tirlite.record import record
from tirlite.rewrite.threads.inject_virtual import demand_injected


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
        from tirlite.analysis.threads.nesting import check_thread_nesting

        check_thread_nesting(func)
        demand_injected(func, self.name)
        is_checked = has_check(func.body)
        return _Splitter(windows=self.windows or is_checked).split(func)


class _Splitter:
    """One walk; `depth` loops over threads are open."""

    def __init__(self, *, windows: bool) -> None:
        self.windows = windows
        self.depth = 0

    def split(self, func: PrimFunc) -> PrimFunc:
        from tirlite.ir import rewrite

        return rewrite(func, {For: self.loop, Evaluate: self.evaluate}, enter={For: self.enter})

    def enter(self, loop: For) -> None:
        self.depth += thread_role(loop) is ThreadRole.THREAD

    def evaluate(self, stmt: Evaluate) -> Stmt | tuple[Stmt, ...]:
        """Outside of threads nobody waits at a barrier."""
        return () if is_barrier(stmt) and not self.depth else stmt

    def loop(self, loop: For) -> Node | tuple[Stmt, ...]:
        role = thread_role(loop)
        if role is ThreadRole.BLOCK:
            return loop.replaced(kind=ForKind.PARALLEL, thread_tag="")
        if role is None:
            return loop
        self.depth -= 1
        if self.depth:
            return loop
        from tirlite.rewrite.threads.emission import divided

        return divided(loop, windows=self.windows).stmts
