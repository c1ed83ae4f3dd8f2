"""A seed in, how a random program is compiled out: form, passes, strategy, workers, checks, how hard LLVM tries."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import product
from random import Random
from unittest.mock import patch

from fuzz.doubling import DoubleSome
from fuzz.externs import with_externs
from fuzz.outline import outlined
from fuzz.program import Arguments, Run
from fuzz.writer import TAGGED

import tirlite as tl
from tirlite.codegen import Effort
from tirlite.codegen.functions import outline
from tirlite.codegen.llvm import machine
from tirlite.ir import PrimFunc
from tirlite.rewrite import Pass, RemoveNoOps, SplitWebs, UnrollLoops, VectorizeLoops
from tirlite.schedules.auto import ScheduleTemporaries


def spliced(func: PrimFunc) -> PrimFunc:
    """The function with each loop at its top, and all that it calls, first a kernel of its own, then put in place."""
    return tl.parse(re.sub(r"tl\.call\((\w+)(, )?", r"\1(", str(outlined(func))))


# What is made of a program before it is compiled.
FORMS: dict[str, Callable[[PrimFunc], PrimFunc]] = {
    "as written": lambda func: func,
    "outlined": outlined,
    "spliced": spliced,
    "externs": with_externs,
}
STRATEGIES = ("none", "tvm", "share", "pack", "per_shape", "auto")
# A share of each: at full effort LLVM takes four times as long as all else.
EFFORTS = (*[Effort.NONE] * 13, Effort.LITTLE, Effort.SOME, Effort.FULL)
# What authors may run before the storage is planned.
PASSES: tuple[Pass, ...] = (
    SplitWebs(),
    UnrollLoops(),
    DoubleSome(),
    ScheduleTemporaries(),
    RemoveNoOps(),
    VectorizeLoops(),
)
_MEMORY = tl.MemoryInfo(unit_bits=8, max_simd_bits=256, max_num_bits=8 << 24)


@dataclass(frozen=True)
class Setup:
    """How a program is compiled. With `hands_out`, parallel loops go to the workers however little they do."""

    form: str = "as written"
    strategy: str = "share"
    debug: bool = False
    in_place: bool = True
    workers: int = 2
    hands_out: bool = False
    effort: Effort = Effort.FULL
    passes: tuple[Pass, ...] = ()

    def __str__(self) -> str:
        words = [self.form, self.strategy, f"{self.workers} workers", f"effort {self.effort.name.lower()}"]
        words += [name for name in ("debug", "in_place", "hands_out") if getattr(self, name)]
        words += [each.name for each in self.passes]
        return ", ".join(words)

    @contextmanager
    def applied(self) -> Iterator[Run]:
        """What compiles a function and calls it."""
        target = target_of(self.workers)
        kernels: dict[PrimFunc, tl.Kernel] = {}

        def run(func: PrimFunc, arguments: Arguments) -> None:
            if func not in kernels:
                kernels[func] = tl.compile(
                    func,
                    strategy=self.strategy,
                    debug=self.debug,
                    in_place=self.in_place,
                    target=target,
                    passes=self.passes,
                )
            kernels[func](*(arguments[param] for param in func.params))

        with ExitStack() as patches:
            patches.enter_context(patch.object(machine, "effort_for", lambda extent: self.effort))
            if self.hands_out:
                patches.enter_context(patch.object(outline, "_WORTHWHILE", 0.0))
            yield run


def target_of(workers: int) -> tl.Target:
    """This machine, with the memory that programs may use."""
    return tl.Target.host(workers=workers).with_memory(TAGGED, _MEMORY)


def setup_of(seed: int) -> Setup:
    """The setup of a seed: always the same."""
    random = Random(f"setup {seed}")
    return Setup(
        form=random.choice(("as written", *FORMS)),
        strategy=random.choice(STRATEGIES),
        debug=random.random() < 0.2,
        in_place=random.random() < 0.9,
        workers=random.choice((1, 2, 2, 3, 8)),
        hands_out=random.random() < 0.5,
        effort=random.choice(EFFORTS),
        passes=drawn_passes(random) if random.random() < 0.2 else (),
    )


def drawn_passes(random: Random) -> tuple[Pass, ...]:
    """Some passes in some order: most often in that of the list."""
    chosen = [each for each in PASSES if random.random() < 0.7]
    if random.random() < 0.3:
        random.shuffle(chosen)
    return tuple(chosen)


def full_cross() -> Iterator[Setup]:
    """All forms, strategies and checks, each at full effort and with none."""
    efforts = ((Effort.FULL, False), (Effort.NONE, True))
    for form, strategy, debug, (effort, hands_out) in product(FORMS, STRATEGIES, (False, True), efforts):
        yield Setup(form=form, strategy=strategy, debug=debug, hands_out=hands_out, effort=effort)
