"""Compiles a kernel before its first call, in another thread."""

from __future__ import annotations

import os
from concurrent.futures import Future
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

from tirlite.diag import boundary

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Compilation(Future[T]):
    """A future for a compilation in another thread; its result is the compiled object.

    In the child of a fork, where that thread does not exist, asking for the result compiles.
    """

    def __init__(self, compiled: T, name: str, make: Callable[[], object]) -> None:
        super().__init__()
        self._compiled = compiled
        self._name = name
        self._make = make
        self._process = os.getpid()
        self.set_running_or_notify_cancel()
        # Not a daemon thread: Python must wait for it at exit, as LLVM may not run during shutdown.
        Thread(target=self._run, name=f"compile {name}").start()

    def _run(self) -> None:
        try:
            with boundary:
                self._make()
        except BaseException as error:
            self.set_exception(error)
        else:
            self.set_result(self._compiled)

    def result(self, timeout: float | None = None) -> T:
        """The compiled object. Raises KernelError if it cannot be compiled, TimeoutError after `timeout` seconds."""
        self._go_on()
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """The error that ended the compilation, or None. Raises TimeoutError after `timeout` seconds."""
        self._go_on()
        return super().exception(timeout)

    def _go_on(self) -> None:
        if self._process != os.getpid():
            self.__init__(self._compiled, self._name, self._make)  # type: ignore[misc]
