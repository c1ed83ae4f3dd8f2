"""Compiles the parts of a module in parallel, the first ones while others are still being emitted."""

from __future__ import annotations

from _thread import LockType, allocate_lock, start_new_thread
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from sys import getswitchinterval, setswitchinterval
from threading import Thread
from time import perf_counter, sleep
from typing import TYPE_CHECKING

from tirlite.codegen.llvm.machine import (
    Compiled,
    Effort,
    Settings,
    compiled,
    effort_of,
    machine_for,
    new_machine,
    options_off,
)
from tirlite.record import cached_property, record
from tirlite.target.processor import HOST, processors

if TYPE_CHECKING:
    from queue import SimpleQueue

    from llvmlite.binding import TargetMachine

    from tirlite.codegen.functions.parts import ModulePart
    from tirlite.codegen.lower import Lowered

_SOON = 0.0002  # seconds


@record
class ObjectCode:
    """The object files of a module's parts, and the seconds of each stage.
    `effort`: the lowest effort of all parts. Work that threads did before all parts were emitted is not among the
    seconds, as no call waited for it.
    """

    objects: tuple[bytes, ...]
    effort: Effort
    seconds: dict[str, float]


def compile_module(lowered: Lowered) -> ObjectCode:
    """The object code of a module for this machine; its parts are compiled in parallel."""
    with SideBySide() as beside:
        return beside.finished(lowered.parts)


class SideBySide:
    """Threads that compile parts as they are handed over, as many as processors, including the calling thread.
    A context manager: when it exits all threads have ended, so that a fork which waits for the caller finds none in
    LLVM. Parts are identified by their texts.
    """

    def __init__(self, target: str = HOST) -> None:
        self._target = target
        self._begun: set[str] = set()
        self._made: dict[str, Compiled] = {}
        self._failures: list[BaseException] = []
        self._threads: list[Thread] = []
        self._last: list[Callable[[], object]] = []
        self._doing_last: LockType | None = None  # held until another thread has done the last tasks
        self._settings = ExitStack()

    @cached_property
    def _waiting(self) -> SimpleQueue[ModulePart | Callable[[], object] | None]:
        from _queue import SimpleQueue  # the module queue loads others

        return SimpleQueue()

    def __enter__(self) -> SideBySide:
        import llvmlite.binding  # noqa: F401  # before the threads start, which would contend for the import lock

        self._settings.enter_context(_SWITCHES.held({"interval": _brief_switches}))
        return self

    def __exit__(self, *error: object) -> None:
        self._failures += [each for each in error if isinstance(each, BaseException)]
        raised: list[BaseException] = []
        while self._is_at_work:
            # Delay what a signal handler raises: LLVM's settings may not change while a thread is in LLVM.
            try:
                self._joined()
            except BaseException as each:
                raised.append(each)
                self._failures.append(each)
        self._settings.close()
        if raised:
            raise raised[0]

    @property
    def _is_at_work(self) -> bool:
        return bool(self._threads) or self._doing_last is not None

    def begin(self, part: ModulePart) -> None:
        """Hands a part to the other threads; with a single processor it is compiled at the end."""
        if part.text in self._begun:
            return
        if not self._begun:
            self._settings.enter_context(options_off(machine_for(effort_of(part), self._target)))
        self._begun.add(part.text)
        self._waiting.put(part)
        if len(self._threads) < processors() - 1:
            self._threads.append(Thread(target=self._work_beside))
            self._threads[-1].start()

    def do_last(self, *tasks: Callable[[], object]) -> None:
        """Adds tasks to run beside the parts when all are begun; their failures are ignored here.

        They need Python's lock, and would slow down the emission of parts if they ran earlier.
        """
        self._last += tasks

    def finished(self, parts: Sequence[ModulePart]) -> ObjectCode:
        """The objects of all parts; parts that are not begun are shared out now, the longest first."""
        start = perf_counter()
        efforts = [effort_of(part) for part in parts]
        machine = machine_for(efforts[0], self._target)
        loaded = perf_counter()
        if not self._begun and len(parts) == 1:
            self._do_last_beside()
            with options_off(machine):
                made = [compiled(parts[0], machine, efforts[0], locked=True)]
        else:
            made = self._shared_out(parts)
        total = {stage: sum(seconds[stage] for _, seconds in made) for stage in made[0][1]}
        share = (perf_counter() - loaded) / sum(total.values())
        seconds = {"llvm load": loaded - start, **{stage: each * share for stage, each in total.items()}}
        return ObjectCode(tuple(data for data, _ in made), max(efforts, key=[*Effort].index), seconds)

    def _do_last_beside(self) -> None:
        """Runs the last tasks in another thread while this one is in LLVM."""
        done = allocate_lock()

        def work() -> None:
            try:
                for each in self._last:
                    _tried(each)
            finally:
                done.release()

        if processors() > 1 and self._last:
            done.acquire()
            # Not `Thread.start`, which waits until the thread runs, and would delay LLVM.
            start_new_thread(work, ())
            self._doing_last = done

    def _shared_out(self, parts: Sequence[ModulePart]) -> list[Compiled]:
        for part in sorted(parts, key=lambda each: -len(each.text)):
            self.begin(part)
        for task in self._last:
            self._waiting.put(task)
        self._work()
        self._joined()
        if self._failures:
            raise self._failures[0]
        return [self._made[part.text] for part in parts]

    def _joined(self) -> None:
        for _ in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            _join(thread)
        self._threads = []
        if self._doing_last is not None:
            with self._doing_last:  # until it is released
                self._doing_last = None

    def _work_beside(self) -> None:
        try:
            machines = _Machines(self._target)
            while item := self._waiting.get():
                self._do(item, machines)
        except BaseException as failure:
            self._failures.append(failure)

    def _work(self) -> None:
        from _queue import Empty

        machines = _Machines(self._target)
        with suppress(Empty):
            while True:
                if item := self._waiting.get_nowait():
                    self._do(item, machines)

    def _do(self, item: ModulePart | Callable[[], object], machines: _Machines) -> None:
        if self._failures:
            return
        if callable(item):
            _tried(item)
        else:
            effort = effort_of(item)
            self._made[item.text] = compiled(item, machines.of(effort), effort, locked=False)


def _join(thread: Thread) -> None:
    """Waits for a thread to end; if Ctrl-C interrupted its `start`, it may begin late or never."""
    for _ in range(1000):
        with suppress(RuntimeError):
            thread.join()
            return
        sleep(1e-3)


def _tried(task: Callable[[], object]) -> None:
    with suppress(Exception):
        task()


_SWITCHES = Settings()


def _brief_switches() -> Callable[[], object]:
    """Shortens Python's switch interval while threads compile.
    A thread that compiles a part returns to Python a dozen times, and each time would wait up to 5 ms for the thread
    that emits the next part: as long as LLVM takes for a small part.
    """
    usual = getswitchinterval()
    setswitchinterval(min(usual, _SOON))
    return partial(setswitchinterval, usual)


class _Machines:
    """The target machines of one thread: LLVM's threads may not share them."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._made: dict[int, TargetMachine] = {}

    def of(self, effort: Effort) -> TargetMachine:
        level = effort.value[1]
        if level not in self._made:
            self._made[level] = new_machine(level, self._target)
        return self._made[level]
