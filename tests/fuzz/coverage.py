"""Random programs in, the share of them that has each feature out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations

from fuzz.expressions import FUNCTIONS
from fuzz.externs import with_externs
from fuzz.program import Program
from fuzz.setups import target_of
from random_cases import some

from tirlite.analysis import lifetimes
from tirlite.ir.expr import Call, IntImm, LetExpr, Select
from tirlite.ir.func import PrimFunc
from tirlite.ir.op import Op
from tirlite.ir.stmt import Allocate, Assert, For, ForKind, IfThenElse, Let, View, While
from tirlite.ir.walk import walk
from tirlite.rewrite import StorageRewrite, default_pipeline, run_pipeline
from tirlite.rewrite.storage.storage_problem import storage_problem


def coverage(programs: Sequence[Program]) -> dict[str, float]:
    """The share of the programs that have each feature. Pairs, which take the most time, are sought in some of them."""
    return dict(sorted({**_shares(programs, _features), **_shares(some(programs), _pairs)}.items()))


def _shares(programs: Sequence[Program], features: Callable[[Program], set[str]]) -> dict[str, float]:
    counts = Counter(feature for program in programs for feature in features(program))
    return {feature: count / len(programs) for feature, count in counts.items()}


def _features(program: Program) -> set[str]:
    nodes = list(walk(program.func))
    found = set(program.features)
    kinds = {node.kind for node in nodes if isinstance(node, For)}
    found |= {f"{kind.name.lower()} loop" for kind in kinds if kind is not ForKind.SERIAL}
    names = {
        IfThenElse: "if",
        While: "while",
        View: "view",
        Assert: "assert",
        Let: "let",
        LetExpr: "let in an expression",
        Select: "select",
    }
    found |= {name for kind, name in names.items() if any(isinstance(node, kind) for node in nodes)}
    calls = {node.op for node in nodes if isinstance(node, Call)}
    if Op.IF_THEN_ELSE in calls:
        found.add("conditional expression")
    if any(op in calls for ops in FUNCTIONS.values() for op in ops):
        found.add("elementary function")
    if with_externs(program.func) is not program.func:
        found.add("extern call possible")
    buffers = [node.buffer for node in nodes if isinstance(node, Allocate)]
    found |= {f"{buffer.dtype} temporaries" for buffer in buffers if buffer.dtype.is_float and buffer.dtype.bits == 16}
    if len({buffer.dtype.scalar for buffer in buffers}) > 1:
        found.add("mixed types")
    if any(not isinstance(extent, IntImm) for buffer in buffers for extent in buffer.shape):
        found.add("symbolic temporaries")
    sizes = {extent.value(dict(sizes)) for sizes in program.bindings for s in program.shapes.values() for extent in s}
    found |= {f"extent {size}" for size in (0, 1) if size in sizes}
    if _reuse_possible(program.func):
        found.add("reuse possible")
    return found


def _pairs(program: Program) -> set[str]:
    """Whether a buffer can take over the bytes of another one."""
    target = target_of(2)
    passes = [each for each in default_pipeline(target=target) if not isinstance(each, StorageRewrite)]
    proofs = storage_problem(run_pipeline(program.func, passes), target).in_place
    pairs = [proof for proof in proofs if proof.allowed]
    found = {"pair in place"} if pairs else set()
    if any(pair.at is not pair.until for pair in pairs):
        found.add("pair in place over several statements")
    return found


def _reuse_possible(func: PrimFunc) -> bool:
    """Whether two temporaries of one scope are never live at the same time."""
    lives = [each for each in lifetimes(func).values() if each.live and each.buffer.scope in ("global", "shared")]
    return any(
        a.buffer.scope == b.buffer.scope
        and a.attach is b.attach
        and not any(lo < end and start < hi for lo, hi in a.live for start, end in b.live)
        for a, b in combinations(lives, 2)
    )
