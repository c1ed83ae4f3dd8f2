"""Draws steps for random nests of loops, applies those that are not refused, and checks what comes out.

`PYTHONPATH=tests:. python -m fuzz.schedules 10000` draws so many pairs of a kernel and steps, and tells how many
steps of each kind were accepted, how many refused, and how many of a sample of those refused for the order of accesses
would have given other results. A second number says which pair is the first.
"""

from __future__ import annotations

import sys
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from random import Random
from unittest.mock import patch

import numpy as np
from effort import effort
from fuzz.harm import is_harmful, unproved
from fuzz.nests import Nests
from fuzz.stencils import Stencils
from fuzz.test_random_nests import MOST_ITERATIONS, SIZES, arguments, called, interpreted
from small_tiles import small_tiles

import tirlite as tl
from tirlite.codegen import Effort
from tirlite.ir.dtype import i64
from tirlite.ir.expr import Buffer, Call, FloorDiv, Load, Var, const
from tirlite.ir.rewrite import rewrite
from tirlite.ir.stmt import Allocate, For, ForKind, SeqStmt, Stmt, Store
from tirlite.ir.walk import statements_of, walk
from tirlite.schedules import LoopHandle
from tirlite.schedules.auto import auto, chains, stencils
from tirlite.schedules.handle import loop_named, loops_around

STEPS = (
    *("split", "reorder", "pack", "cache_write", "compute_at", "tile", "skew", "join") * 2,
    *("distribute", "distribute", "expand", "precompute", "specialize", "fuse", "peel", "unroll", "delinearise"),
    *(
        "cache_read",
        "cache_read",
        "rfactor",
        "rfactor",
        "scan",
        "scan",
        "annotate",
        "inline_lets",
        "time_tiles",
        "lanes",
        "inline",
        "store_at",
        "shrink",
        "shrink",
        "tensorize",
        "tensorize",
    ),
)
LAST = ("vectorize", "vectorize", "unroll_jam", "unroll_jam", "parallel", "nontemporal")
# Of so many pairs one shows what was refused to be harmful. Calls with more iterations than that take too long.
SAMPLE, MOST = 8, MOST_ITERATIONS // 4
# So many times a step is tried on other loops.
TRIES = 3
# This share of steps is asked for as an author does who has not looked: loops by their names alone, in any order.
CARELESS = 0.2
REFUSALS = (
    "step-does-not-fit",
    "step-breaks-order",
    "reduction-read",
    "reduction-mixture",
    "reduction-carried",
    "no-loop",
    "several-loops",
    "several-buffers",
)
# Tiles so small that arrays of some dozens of elements have several.
SMALL_TILES = {"_ROWS": 2, "_FEWEST": 4, "_MOST": 4, "_MUCH": 4, "_SMALL": 0}


class Steps:
    """Applies random steps to a function; counts by name those that are accepted and refused.

    Of the refused ones `ordered` counts those refused for the order of accesses, `harmful` those of them that give
    other results.
    """

    def __init__(self, seed: int, nests: Nests, func: tl.PrimFunc) -> None:
        self.seed, self.nests = seed, nests
        self.random = Random(f"steps {seed}")
        self.schedule = tl.schedule(func)
        self.kernels: dict[str, tl.PrimFunc] = {}  # those that steps name
        self.accepted: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.ordered: Counter[str] = Counter()
        self.harmful: Counter[str] = Counter()
        steps = (*STEPS, *["rescale"] * 20) if "rescale" in str(func) else STEPS
        for name in (*self.random.choices(steps, k=self.random.randint(1, 8)), *self.random.choices(LAST, k=3)):
            self.draw(name)

    def draw(self, name: str) -> None:
        """Tries a step on loops that are drawn, some times until it is accepted."""
        for _ in range(TRIES):
            if self.accepts(name):
                return

    def accepts(self, name: str) -> bool:
        """Whether a step on loops that are drawn is accepted, or there are no loops."""
        around_each = [(*around, loop) for loop, around in loops_around(self.schedule._func)]
        if not around_each:
            return True
        self.name_loops()
        known = self.schedule.steps, self.schedule._func
        likely = [each for each in around_each if self.is_likely(name, each[-1])]
        chain = [self.handles[each] for each in self.random.choice(likely or around_each)]
        if self.random.random() < CARELESS:
            chain = [LoopHandle(self.random.choice([*self.handles.values()]).path) for _ in range(3)]
        state = self.random.getstate()
        try:
            self.apply(name, chain)
        except tl.KernelError as error:
            if error.code not in REFUSALS:
                raise
            # Of several steps the first ones may have been accepted.
            self.schedule.steps, self.schedule._func = known
            self.name_loops()
            self.refused[name] += 1
            # What passes values on has no other form without these accesses.
            if error.code == "step-breaks-order" and name != "scan" and self.seed % SAMPLE == 0:
                harms = self.harms(name, chain, state)
                self.ordered[name] += harms is not None
                self.harmful[name] += harms is True
            return False
        self.accepted[name] += 1
        return True

    def is_likely(self, name: str, loop: For) -> bool:
        """Whether a step has a chance with a loop: few loops are reductions, or have another one behind."""
        if name in ("rfactor", "lanes"):
            return loop.kind is ForKind.REDUCE
        if name == "delinearise":
            return any(isinstance(node, FloorDiv) and node.a is loop.var for node in walk(loop.body))
        if name == "scan":
            return loop.kind is ForKind.SERIAL and not any(isinstance(each, For) for each in loop.body.stmts)
        if name == "precompute":
            return any(isinstance(node, Call) and node.op.takes_fast for node in walk(loop.body))
        if name == "tensorize":
            return not any(isinstance(each, For) for each in loop.body.stmts)
        if name == "rescale":
            return bool(self.sums_behind(loop))
        if name in ("store_at", "shrink"):
            own = {each.buffer for each in statements_of(self.schedule._func.body, Allocate)}
            if own.isdisjoint(each.buffer for each in statements_of(loop, Store)):
                return False
        if name in ("join", "store_at", "shrink"):
            pairs = ((stmt, each) for stmt, each in self.neighbours() if stmt is loop and isinstance(each, For))
            return any(each.kind is loop.kind is not ForKind.REDUCE for _, each in pairs)
        return True

    def neighbours(self) -> Iterator[tuple[Stmt, Stmt]]:
        """Each statement with the next one in its block, but for allocations."""
        for block in (each for each in walk(self.schedule._func.body) if isinstance(each, SeqStmt)):
            yield from pairwise(stmt for stmt in block.stmts if not isinstance(stmt, Allocate))

    def sums_behind(self, loop: For) -> list[For]:
        """The reductions that stand in a block behind a reduction."""
        block = next(
            each for each in walk(self.schedule._func.body) if isinstance(each, SeqStmt) and loop in each.stmts
        )
        behind = block.stmts[block.stmts.index(loop) :]
        found = [each for each in behind if isinstance(each, For) and each.kind is ForKind.REDUCE]
        return found[1:] if found[:1] == [loop] else []

    def name_loops(self) -> None:
        """Finds the handle of each loop of the function as it is."""
        loops = [loop for loop, _ in loops_around(self.schedule._func)]
        names = [loop.var.name for loop in loops]
        self.handles = {loop: LoopHandle(names[at], names[:at].count(names[at])) for at, loop in enumerate(loops)}

    def harms(self, name: str, chain: list[LoopHandle], state: tuple[object, ...]) -> bool | None:
        """Whether the step that was refused, drawn again from this state, would have changed results.

        None where it is refused for its form, too, once nobody asks for the accesses.
        """
        kept, before = self.schedule, self.schedule._func
        self.random.setstate(state)
        self.schedule = tl.schedule(before)
        with unproved():
            try:
                self.apply(name, chain)
            except tl.KernelError:
                after = None
            else:
                after = self.schedule._func
        self.schedule = kept
        return None if after is None else is_harmful(self.nests, self.seed, before, after)

    def apply(self, name: str, chain: list[LoopHandle]) -> None:
        """A step on loops out of a chain, the outermost first."""
        s, draw = self.schedule, self.random
        some = sorted(draw.sample(range(len(chain)), min(len(chain), draw.choice((1, 2, 2, 3)))))
        outer, inner = chain[some[0]], chain[some[-1]]
        if name == "split":
            tail = draw.choice(("short", "short", "guarded", "masked", "peeled", "overlapped"))
            s.split(inner, draw.choice((1, 2, 3, 4, 8, 16)), tail=tail)
        elif name == "reorder":
            within = chain[some[0] : some[-1] + 1]
            s.reorder(*draw.sample(within, len(within)))
        elif name == "distribute":
            s.distribute(inner, out_of=outer, behind=draw.random() < 0.5)
        elif name == "expand":
            own = [stmt.buffer.name for stmt in loop_named(s._func, inner).body.stmts if isinstance(stmt, Allocate)]
            s.expand(draw.choice(own or ["x0"]), at=inner)
        elif name == "precompute":
            s.precompute(inner)
        elif name == "fuse":
            at = draw.randrange(len(chain))
            s.fuse(chain[at - 1], chain[at])
        elif name == "specialize":
            s.specialize(outer, {inner.path: draw.randint(1, 8)})
        elif name == "compute_at":
            self.compute_at(chain)
        elif name == "pack":
            self.pack(chain[some[0] :])
        elif name == "cache_write":
            stores = [*statements_of(loop_named(s._func, inner), Store)]
            s.cache_write(draw.choice([each.buffer.name for each in stores] or ["x0"]), at=inner)
        elif name == "tile":
            within = chain[some[0] : some[-1] + 1]
            s.tile({each: draw.choice((0, 1, 2, 3, 8)) for each in within})
        elif name == "skew":
            s.skew(inner, along=outer, by=draw.choice((1, 1, 2, 2, 3, -1)))
        elif name == "join":
            row = [loop_named(s._func, chain[-1])]
            following = dict(self.neighbours())
            while isinstance(each := following.get(row[-1]), For) and len(row) < draw.choice((2, 2, 3)):
                row.append(each)
            behind = tuple(draw.choice((0, 0, 1, 2)) for _ in row[1:])
            s.join(*(self.handles[each] for each in row), behind=behind)
        elif name == "inline":
            own = [each.buffer.name for each in statements_of(s._func.body, Allocate)]
            s.inline(draw.choice(own or ["x0"]))
        elif name in ("store_at", "shrink"):
            loop = loop_named(s._func, chain[-1])
            own = {each.buffer for each in statements_of(s._func.body, Allocate)}
            filled = [each.buffer.name for each in statements_of(loop, Store) if each.buffer in own]
            for behind in [each for stmt, each in self.neighbours() if stmt is loop and isinstance(each, For)]:
                s.join(chain[-1], self.handles[behind], behind=0 if name == "shrink" else draw.choice((0, 1, 2, 2)))
            buffer = draw.choice(filled or ["x0"])
            if name == "shrink":
                s.shrink(*draw.choice(((), (buffer,))))
            else:
                s.store_at(buffer, at=chain[-1])
        elif name == "tensorize":
            s.split(chain[-1], 4, tail="peeled")
            inner = f"{chain[-1].path}.inner"
            definition = defined(loop_named(s._func, inner), f"part{len(self.kernels)}")
            written_out = tl.schedule(definition)
            written_out.unroll("k")
            implementation = replace(written_out.func, name=f"{definition.name}_written_out")
            self.kernels |= {each.name: each for each in (definition, implementation)}
            s.tensorize(inner, definition, implementation)
        elif name == "rescale":
            first = loop_named(s._func, chain[-1])
            loops = [chain[-1], *(self.handles[each] for each in self.sums_behind(first))]
            if draw.random() < 0.4:
                blocks = [replace(each, path=f"{each.path}.outer") for each in loops]
                for each in reversed(loops):
                    s.split(each, 4)
                loops = blocks
            s.rescale(*loops)
        elif name == "time_tiles":
            self.time_tiles(chain)
        elif name == "lanes":
            s.split(chain[-1], draw.choice((2, 4)))
            s.rfactor(f"{chain[-1].path}.inner", at=f"{chain[-1].path}.outer")
        elif name == "peel":
            s.peel(inner, first=draw.choice((0, 0, 1, 3)), last=draw.choice((0, 0, 1, 2)))
        elif name == "unroll":
            s.unroll(inner, draw.choice((0, 2, 3)))
        elif name == "delinearise":
            s.delinearise(chain[-1], draw.choice((2, 4)))
        elif name == "cache_read":
            loads = [node for node in walk(loop_named(s._func, inner)) if isinstance(node, Load)]
            s.cache_read(draw.choice([each.buffer.name for each in loads] or ["x0"]), at=inner)
        elif name == "rfactor":
            s.rfactor(chain[-1], at=draw.choice((chain[-1], outer)))
        elif name == "scan":
            s.scan(chain[-1], draw.choice((1, 3, 8)))
        elif name == "annotate":
            s.annotate(inner, "a remark")
        elif name == "inline_lets":
            s.inline_lets(inner)
        elif name == "nontemporal":
            stores = [*statements_of(loop_named(s._func, outer), Store)]
            s.nontemporal(draw.choice([each.buffer.name for each in stores] or ["x0"]), at=outer)
        elif name == "vectorize":
            s.vectorize(inner, *draw.choice(((4,), (8, 2), (16, 4))), padded=draw.random() < 0.5)
        elif name == "unroll_jam":
            s.unroll_jam(outer, draw.choice((2, 3, 4)))
        else:
            s.parallel(outer)

    def time_tiles(self, chain: list[LoopHandle]) -> None:
        """Has a loop and the one inside of it, or the two that are joined there, go by tiles."""
        s, draw = self.schedule, self.random
        at = draw.randrange(len(chain))
        around = loop_named(s._func, chain[at])
        first, *others = [self.handles[each] for each in around.body.stmts if isinstance(each, For)] or [chain[at]]
        for other in others[:1]:
            s.join(first, other, behind=draw.choice((0, 1, 1, 2)))
        s.split(chain[at], draw.choice((2, 3, 4)))
        s.skew(first, along=f"{chain[at].path}.inner", by=draw.choice((1, 2, 2, 3)))
        s.tile({f"{chain[at].path}.inner": 0, f"{first.path}.skewed": draw.choice((1, 3, 8))})

    def compute_at(self, chain: list[LoopHandle]) -> None:
        """Moves a nest that stands before a chain into one of its loops."""
        outermost = [loop for loop, around in loops_around(self.schedule._func) if not around]
        first = loop_named(self.schedule._func, chain[0])
        before = outermost[: outermost.index(first)] if first in outermost else []
        nest = self.random.choice(before or outermost)
        self.schedule.compute_at(self.handles[nest], at=self.random.choice(chain))

    def pack(self, chain: list[LoopHandle]) -> None:
        """Packs what is read inside of the first loop of a chain, in some order of the loops that decide where."""
        loads = [node for node in walk(loop_named(self.schedule._func, chain[-1])) if isinstance(node, Load)]
        name, deciding = "x0", set()
        if loads:
            load = self.random.choice(loads)
            name = load.buffer.name
            deciding = {node.name for index in load.indices for node in walk(index) if isinstance(node, Var)}
        axes = [each for each in chain[1:] if each.path in deciding]
        self.random.shuffle(axes)
        self.schedule.pack(name, at=chain[0], axes=axes, whole=self.random.choice((1, 4)))


def defined(loop: For, name: str) -> tl.PrimFunc:
    """A kernel that does what a loop does, which takes a part of an array for each of its accesses that differ.

    Of a loop whose values depend on other loops it is a kernel that does nothing.
    """
    counter, params = Var("k"), dict[str, Buffer]()
    own: set[object] = {getattr(node, name) for node in walk(loop.body) for name in node.DEFINES}

    def taken(access: Load | Store) -> Load | Store:
        if access.buffer in own or not access.indices:
            return access
        moves = any(node is loop.var for node in walk(access.indices[-1]))
        shape = (const(4 if moves else 1, i64),)
        key = str(Load(access.buffer, access.indices))
        part = params.setdefault(key, Buffer(f"part{len(params)}", access.buffer.dtype, shape))
        return access.replaced(buffer=part, indices=(counter if moves else const(0, i64),))

    body = rewrite(loop.body, {Load: taken, Store: taken})
    used = (getattr(node, name) for node in walk(body) for name in node.USES)
    variables = (node for node in walk(body) if isinstance(node, Var))
    if any(each not in {counter, *own, *params.values()} for each in (*used, *variables)):
        body = SeqStmt()
    count = loop.replaced(var=counter, start=const(0, i64), stop=const(4, i64), body=body)
    return tl.PrimFunc(name, tuple(params.values()), SeqStmt((count,)))


def trial(seed: int) -> Steps:
    """The steps of a pair that does what is written; fails with its text. Every third one is scheduled by rules."""
    nests = (Stencils if seed % 8 in (1, 3, 6) else Nests)(seed)
    func = tl.parse(nests.text())
    steps = Steps(seed, nests, func)
    if seed % SAMPLE == 0:
        names: dict[str, object] = {"tl": tl, func.name: func, **steps.kernels}
        exec(str(steps.schedule), names)
        assert str(names["s"]) == str(steps.schedule)
    draw = Random(f"pair {seed}")
    by_rules = seed % 3 == 0
    with ExitStack() as stack:
        stack.enter_context(effort(Effort.NONE))
        stack.enter_context(small_tiles())
        stack.enter_context(patch.multiple(chains, **SMALL_TILES))
        stack.enter_context(patch.object(stencils, "_HELD", draw.choice((2, 1 << 60))))
        target = tl.Target.host(workers=1 + seed % 2)
        chosen_by = draw.choice(("auto", "compact"))
        after = auto(target, given=chosen_by) if by_rules else draw.choice(((), auto(target)[3:]))
        chosen = (*(() if by_rules else steps.schedule.steps), *after)
        kernel = tl.compile(func, schedule=chosen, target=target)
        for numbers in SIZES[seed % 3 :: 3]:
            sizes = dict(zip("nmk", numbers, strict=True))
            if nests.iterations(sizes) > MOST:
                continue
            given = arguments(nests, seed, sizes)
            told = f"seed {seed} at {sizes}:\n{func}\n{steps.schedule}\n{kernel.lowered}"
            code, written = called(kernel, given), interpreted(func, given, sizes)
            lowered = interpreted(kernel.lowered, given, sizes) if 0 not in numbers else {}
            for name, array in lowered.items():
                np.testing.assert_array_equal(code[name], array, told, strict=True)
            for name, array in written.items():
                if nests.has_functions:
                    np.testing.assert_allclose(code[name], array, 1e-3, 1e-3, err_msg=told)
                else:
                    np.testing.assert_array_equal(code[name], array, told, strict=True)
    return steps


def main(count: int, first: int = 0) -> int:
    """Runs so many pairs and prints which of them failed, and what was accepted and refused."""
    failed = 0
    accepted, refused, ordered, harmful = (Counter[str]() for _ in range(4))
    for seed in range(first, first + count):
        try:
            steps = trial(seed)
        except Exception:
            print(f"seed {seed} fails:\n{traceback.format_exc(limit=-2)}", flush=True)
            failed += 1
            continue
        accepted += steps.accepted
        refused += steps.refused
        ordered += steps.ordered
        harmful += steps.harmful
    for name in sorted(accepted | refused):
        refusals = f"{refused[name]:7} refused"
        if ordered[name]:
            refusals += f", {ordered[name]} for the order of accesses, {harmful[name]} of these shown harmful"
        print(f"{name:12} {accepted[name]:7} accepted {refusals}")
    print(f"{failed} of {count} pairs failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
