"""One process that forks while a thread of it compiles, and its child, which compiles too and must come to an end.

`PYTHONPATH=tests:. python -m forks.trial` forks 200 times, at moments from the beginning of a compilation to its end.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from threading import Thread

import numpy as np

import tirlite as tl

# A child that has not come to its end by then hangs: it takes tenths of a second on an idle machine.
PATIENCE = 60  # seconds

SOURCE = """
n, m = tl.dims("n m")
@tl.kernel
def {name}(x: tl.f32[n, m], y: tl.out[tl.f32[n, m]]):
    rows = tl.alloc(tl.f32[n, m])
    for i in range(n):
        for j in range(m):
            rows[i, j] = tl.exp(x[i, j]) + {number}
    for i in tl.parallel(n):
        for j in range(m):
            y[i, j] = rows[i, j] / (1 + rows[i, j])
"""


@dataclass(frozen=True)
class Trial:
    """When a process forks, and what its child does.

    `delay` counts in compilations: 0 is when one begins, 1 when it ends. In a `cold` process nothing has been compiled
    before. The child compiles the `same` kernel or another one. With `observer` the thread that compiles forks.
    """

    delay: float
    cold: bool
    same: bool
    observer: bool = False

    def __str__(self) -> str:
        words = ["cold" if self.cold else "warm", "the same kernel" if self.same else "another kernel"]
        words += ["from an observer"] * self.observer
        return f"{', '.join(words)}, at {self.delay:.2f}"


def kernel(number: int, *observers: Callable[[object], None]) -> tl.Kernel:
    return tl.compile(tl.parse(SOURCE.format(name=f"kernel_{number}", number=number)), observers=observers)


def run(made: tl.Kernel) -> None:
    y = made(np.zeros((8, 64), np.float32))
    assert ((0.5 <= y) & (y < 1)).all()


def seconds(*, cold: bool) -> float:
    """What a compilation takes."""

    def compile_one() -> None:
        if not cold:
            run(kernel(0))
        start = time.perf_counter()
        run(kernel(1))
        os.write(end, str(time.perf_counter() - start).encode())

    begin, end = os.pipe()
    assert ended(compile_one), "it does not even run without a fork"
    return float(os.read(begin, 100))


def ended(work: Callable[[], None], patience: int = PATIENCE) -> bool:
    """Whether a child process that does `work` comes to its end, and all goes well in it."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            faulthandler.register(signal.SIGALRM, chain=True)  # tells where it hangs
            signal.alarm(patience)
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def passes(trial: Trial, length: float) -> bool:
    """Whether all goes well, where a compilation takes so many seconds."""

    def tried() -> None:
        if not trial.cold:
            run(kernel(0))
        assert (fork_in_observer if trial.observer else fork_beside)(trial, length)

    return ended(tried, 3 * PATIENCE)


def fork_beside(trial: Trial, length: float) -> bool:
    made: list[tl.Kernel] = []

    def compile_it() -> None:
        made.append(kernel(1))
        run(made[0])

    thread = Thread(target=compile_it)
    thread.start()
    time.sleep(trial.delay * length)
    fine = ended(lambda: run(made[0] if trial.same and made else kernel(2)))
    thread.join()
    return fine


def fork_in_observer(trial: Trial, length: float) -> bool:
    found: list[bool] = []
    last = round(trial.delay * 10)
    steps: list[object] = []

    def fork(step: object) -> None:
        steps.append(step)
        if len(steps) == last + 1:
            found.append(ended(lambda: run(made if trial.same else kernel(2))))

    made = kernel(1, fork)
    thread = Thread(target=run, args=(made,))
    thread.start()
    thread.join()
    return all(found)


def trials(count: int) -> list[Trial]:
    """So many, of all kinds."""
    kinds = [Trial(0, *each) for each in product((False, True), repeat=3)]
    each = -(-count // len(kinds))
    return [replace(kind, delay=step / max(each - 1, 1)) for step in range(each) for kind in kinds][:count]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--forks", type=int, default=200)
    lengths = {cold: seconds(cold=cold) for cold in (False, True)}
    print(f"a compilation takes {lengths[False]:.3f} s, the first one {lengths[True]:.3f} s")
    chosen = trials(parser.parse_args().forks)
    failed = [trial for trial in chosen if not passes(trial, lengths[trial.cold])]
    for trial in failed:
        print("hung:", trial)
    print(f"{len(chosen)} forks, {len(failed)} of them hung")
    return len(failed) > 0


if __name__ == "__main__":
    sys.exit(main())
