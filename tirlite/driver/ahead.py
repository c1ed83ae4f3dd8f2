"""Compiles a kernel before its first call, in a thread of its own."""

from __future__ import annotations

import os
from concurrent.futures import Future
from threading import Thread
from typing import TYPE_CHECKING

from tirlite.diag import boundary

if TYPE_CHECKING:
    from collections.abc import Callable

    from tirlite.driver.kernel import Kernel


class Compilation(Future["Kernel"]):
    """A compilation that runs beside its caller; its result is the kernel.

    In the child of a fork, where that thread is not, who asks for the result compiles.
    """

    def __init__(self, kernel: Kernel, make: Callable[[], object]) -> None:
        super().__init__()
        self._kernel = kernel
        self._make = make
        self._process = os.getpid()
        self.set_running_or_notify_cancel()
        # Python waits for it at its end: LLVM may not run on while the process is taken down.
        Thread(target=self._run, name=f"compile {kernel.name}").start()

    def _run(self) -> None:
        try:
            with boundary:
                self._make()
        except BaseException as error:
            self.set_exception(error)
        else:
            self.set_result(self._kernel)

    def result(self, timeout: float | None = None) -> Kernel:
        """The kernel, when it is compiled. Raises KernelError where it cannot be, TimeoutError after the seconds."""
        self._go_on()
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """What stopped the compilation, or None. Raises TimeoutError after so many seconds."""
        self._go_on()
        return super().exception(timeout)

    def _go_on(self) -> None:
        if self._process != os.getpid():
            self.__init__(self._kernel, self._make)  # type: ignore[misc]
