"""The gate: a fork of the process waits until no thread is inside, where modules are loaded and code is compiled.

The child of a fork has the thread that forked and no other. What another thread was at is never finished there, and
the locks that it held are never given back.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Condition, get_ident


class Gate:
    """Who is inside, and what each thread has claimed for itself.

    The gate takes the place of locks: what a thread claimed that is not in the child of a fork, is free there. Nobody
    waits inside for a claim, so that a fork waits for no thread that waits. The thread that forks may itself be inside.
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._depths: dict[int, int] = {}  # of the threads that are inside
        self._claims: dict[Hashable, tuple[int, int]] = {}  # the thread that has each, and how many times
        self._repairs: list[tuple[int, Callable[[], None]]] = []
        self._waiting = 0  # forks
        self._forking: int | None = None  # the thread
        self._llvm: AbstractContextManager[object] = nullcontext()  # the lock that a fork holds

    @contextmanager
    def inside(self, claim: Hashable = None) -> Iterator[None]:
        """No other thread forks meanwhile, and none is at the same `claim`. May be nested."""
        me = get_ident()
        with self._changed:
            depth = self._out(me)
            # Who begins gives way to a fork, which might otherwise wait as long as there is always some compilation.
            self._changed.wait_for(
                lambda: (
                    self._forking in (None, me)
                    and (depth > 0 or not self._waiting)
                    and self._claims.get(claim, (me, 0))[0] == me
                )
            )
            self._depths[me] = depth + 1
            if claim is not None:
                self._claims[claim] = (me, self._claims.get(claim, (me, 0))[1] + 1)
        try:
            yield
        finally:
            with self._changed:
                # Ctrl-C may have ended `outside` before it put the depth back.
                depth = self._depths.pop(me, 1) - 1
                if depth:
                    self._depths[me] = depth
                if claim is not None:
                    times = self._claims.pop(claim)[1] - 1
                    if times:
                        self._claims[claim] = (me, times)
                self._changed.notify_all()

    @contextmanager
    def outside(self) -> Iterator[None]:
        """The thread keeps its claims, but is not inside: around calls of what users gave, which may take any lock."""
        me = get_ident()
        with self._changed:
            depth = self._out(me)
        try:
            yield
        finally:
            with self._changed:
                self._changed.wait_for(lambda: self._forking in (None, me))
                if depth:
                    self._depths[me] = depth

    @contextmanager
    def repaired(self, repair: Callable[[], None]) -> Iterator[None]:
        """What the thread undoes afterwards; where it is not there to do so, the child of a fork calls `repair`."""
        entry = (get_ident(), repair)
        self._repairs.append(entry)
        try:
            yield
        finally:
            self._repairs.remove(entry)

    def _out(self, thread: int) -> int:
        depth = self._depths.pop(thread, 0)
        if depth:
            self._changed.notify_all()
        return depth

    def before_fork(self) -> None:
        """Waits until no other thread is inside or forks, and keeps all out."""
        me = get_ident()
        with self._changed:
            # Two threads that are inside and fork do not wait for each other.
            depth = self._out(me)
            self._waiting += 1
            try:
                self._changed.wait_for(lambda: not self._depths and self._forking is None)
                self._forking = me
            finally:
                self._waiting -= 1
                if depth:
                    self._depths[me] = depth
        # Objects of LLVM end in any thread, inside or not.
        self._llvm = _llvm_lock()
        self._llvm.__enter__()

    def after_in_parent(self) -> None:
        """Lets all in again."""
        with self._changed:
            if self._forking == get_ident():
                self._llvm.__exit__(None, None, None)
                self._forking = None
                self._changed.notify_all()

    def after_in_child(self) -> None:
        """Forgets the threads that are not here."""
        me = get_ident()
        if self._forking == me:
            self._llvm.__exit__(None, None, None)
        repairs = [repair for thread, repair in self._repairs if thread != me]
        self._repairs = [entry for entry in self._repairs if entry[0] == me]
        self._depths = {thread: depth for thread, depth in self._depths.items() if thread == me}
        self._claims = {claim: held for claim, held in self._claims.items() if held[0] == me}
        self._changed, self._waiting, self._forking = Condition(), 0, None
        _forget_imports(me)
        for repair in repairs:
            repair()


def _llvm_lock() -> AbstractContextManager[object]:
    """What llvmlite holds during each call of LLVM, if it is loaded."""
    module = sys.modules.get("llvmlite.binding.ffi")
    lock: AbstractContextManager[object] = getattr(getattr(module, "lib", None), "_lock", nullcontext())
    return lock


def _forget_imports(me: int) -> None:
    """Has modules loaded anew that other threads were loading. Python leaves such modules locked for ever."""
    locks = getattr(getattr(importlib, "_bootstrap", None), "_module_locks", {})
    for name, reference in list(locks.items()):
        if getattr(reference(), "owner", me) not in (None, me):
            del locks[name]
            if getattr(getattr(sys.modules.get(name), "__spec__", None), "_initializing", False):
                del sys.modules[name]


GATE = Gate()  # of this process

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=GATE.before_fork, after_in_parent=GATE.after_in_parent, after_in_child=GATE.after_in_child
    )
