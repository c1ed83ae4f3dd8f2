"""SplitThreads makes ordinary loops of blocks of threads.

Blocks become iterations of parallel loops. The threads of a block run in a loop, one after the other; where they meet
at a barrier, the loop is split in two. Source: loop fission at barriers, as in "Efficient Compilation of Fine-Grained
SPMD-threaded Programs for Multicore CPUs" (Stratton et al., 2010).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tirlite.ir import Evaluate, For, ForKind, Node, PrimFunc, Stmt, statements_of
from tirlite.ir.checked import has_check
from tirlite.ir.demand import pass_call
from tirlite.ir.thread_tag import ThreadRole, is_barrier, thread_role
from tirlite.record import record
from tirlite.rewrite.threads.inject_virtual import Division, demand_injected

if TYPE_CHECKING:
    from tirlite.ir import Rule


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
    """Makes loops over blocks parallel on the way, and leaves out barriers where nobody waits."""

    def rules(self) -> dict[type[Node], Rule]:
        return {**super().rules(), Evaluate: self.evaluate}

    def evaluate(self, stmt: Evaluate) -> Stmt | tuple[Stmt, ...]:
        return () if is_barrier(stmt) and not self.depth else stmt

    def loop(self, loop: For) -> Node | tuple[Stmt, ...]:
        if thread_role(loop) is ThreadRole.BLOCK:
            return loop.replaced(kind=ForKind.PARALLEL, thread_tag="")
        return super().loop(loop)
