"""What dependences say of nests: plain cases to the letter, and nothing left out of many random ones."""

from __future__ import annotations

from textwrap import indent

import pytest
from analysis.nests import Instances, OutOfBoundsError, Run, distances, random_nest
from every import every
from parsed import parsed

import tirlite as tl
from tirlite.analysis import Dependence, Facts, IterationStep, dependences
from tirlite.analysis.loops.patterns import has_elements_apart
from tirlite.ir import For, Store
from tirlite.rewrite import Normalize

NESTS = 200
GROUP = 50
SIGNS = {"<": (1,), "=": (0,), ">": (-1,), "*": (-1, 0, 1)}

HEADER = """
n, m, k = tl.dims("n m k")
@tl.kernel
def f(x: tl.f32[n], y: tl.f32[n], a: tl.f32[n, m], b: tl.f32[m, k], c: tl.f32[n, k], z: tl.i64[n]):
"""


def told(body: str) -> list[str]:
    """The dependences of a kernel with this body, without the lines of its text."""
    func = parsed(HEADER, body)
    return [str(each) for each in dependences(func)]


def admits(step: IterationStep, distance: float) -> bool:
    if (distance > 0) - (distance < 0) not in SIGNS[step.direction]:
        return False
    return not isinstance(step.distance, int) or step.distance == distance


class Judge:
    """Holds what is told of a function against what happens in a run of it."""

    def __init__(self, func: tl.PrimFunc) -> None:
        self.facts = Facts(func)
        self.instances = [*Run(func).found.values()]
        self.told: dict[object, list[Dependence]] = {}
        for each in self.facts.dependences:
            self.told.setdefault((self.key(each.source), self.key(each.sink)), []).append(each)

    def key(self, of: object) -> object:
        return of.stmt, isinstance(of.node, Store), self.facts.addresses.of(of.node).key

    def ways(self, source: Instances, sink: Instances) -> list[list[float]]:
        """How the two meet in this run: for each loop around both the distance."""
        is_write = isinstance(source.node, Store) or isinstance(sink.node, Store)
        if source.root is not sink.root or not is_write:
            return []
        common = [one for one, other in zip(source.loops, sink.loops, strict=False) if one is other]
        return distances(source, sink, len(common)).tolist()

    def missed(self) -> list[str]:
        """Ways to meet that no dependence tells of."""
        return [
            f"{source.node} -> {sink.node}: {row} is not among {[*map(str, found)]}"
            for source in self.instances
            for sink in self.instances
            for found in [self.told.get((self.key(source), self.key(sink)), [])]
            for row in self.ways(source, sink)
            if not any(all(map(admits, each.steps, row)) and len(each.steps) == len(row) for each in found)
        ]


@pytest.mark.parametrize("first", range(0, NESTS, GROUP))
def test_nothing_that_happens_is_left_out(first: int) -> None:
    in_bounds = met = 0
    for seed in range(first, first + GROUP):
        func = Normalize()(random_nest(seed))
        try:
            judge = Judge(func)
        except OutOfBoundsError:
            continue
        assert judge.missed() == [], f"seed {seed}:\n{func}"
        in_bounds += 1
        met += bool(judge.told)
    assert in_bounds > GROUP // 4
    assert met > GROUP // 8


def test_a_stencil_has_its_distances() -> None:
    assert told("""
        for i in range(1, n):
            for j in range(1, m - 1):
                a[i, j] = a[i, j - 1] + a[i - 1, j + 1]
    """) == [
        "flow: a[i, j] (line 7) -> a[i, j - 1] (line 7), (=, <1)",
        "flow: a[i, j] (line 7) -> a[i - 1, j + 1] (line 7), (<1, >1)",
    ]


def test_a_sum_is_carried_by_its_loop_alone() -> None:
    assert told("""
        for i in range(n):
            for j in range(k):
                for p in range(m):
                    c[i, j] = c[i, j] + a[i, p] * b[p, j]
    """) == [
        "flow: c[i, j] (line 8) -> c[i, j] (line 8), (=, =, <), reduction",
        "anti: c[i, j] (line 8) -> c[i, j] (line 8), (=, =, <), reduction",
        "anti: c[i, j] (line 8) -> c[i, j] (line 8), (=, =, =), reduction",
        "output: c[i, j] (line 8) -> c[i, j] (line 8), (=, =, <), reduction",
    ]


@every(
    "body, steps",
    [
        ("for i in range(4, n):\n    x[i] = x[i - 4] + y[i]", ["<4"]),
        ("for i in range(0, n - 3, 3):\n    x[i] = x[i + 3]", ["<1"]),
        ("for i in range(n - 1, 0, -1):\n    x[i] = x[i - 1]", ["<1"]),
        ("for i in range(n):\n    x[2 * i] = x[2 * i + 1]", []),
        ("for i in range(5):\n    x[i] = x[i + 5]", []),
        ("for i in range(m):\n    for j in range(k):\n        x[i + j] = 1", ["<, >"]),
        ("for i in range(n):\n    for j in range(i, n):\n        x[j] = 1", ["<, ="]),
        ("for i in range(n):\n    for j in range(i, n):\n        a[i, 0] = 1", ["=, <"]),
        ("for i in range(n):\n    for j in range(i):\n        x[i] = x[j]", ["<, *", "<, *", "=, <"]),
        ("for i in range(n):\n    for j in range(n - 1, i, -1):\n        x[i] = x[j]", ["<, *", "<, *", "=, <"]),
        ("for i in range(4):\n    for j in range(3):\n        x[i * 3 + j] = 1", []),
        ("for i in range(n):\n    x[z[i]] = 1", ["<"]),
        ("for i in range(n):\n    for j in range(m):\n        x[z[j]] = 1", ["<, *", "=, <"]),
        ("for i in tl.parallel(n):\n    for j in range(m):\n        x[i] = 1", ["=, <"]),
        ("x[0] = 1\nx[0] = 2", [""]),
        ("if n > 3:\n    x[0] = 1\nelse:\n    x[0] = 2", []),
        ("for i in range(n):\n    x[i // 2] = 1", ["<"]),
        ("for i in range(n):\n    t = tl.alloc(tl.f32[1])\n    t[0] = x[i]\n    y[i] = t[0]", [""]),
        ("while x[0] < 3:\n    x[0] = x[0] + 1", ["<", "<", "=", "<", "<", "=", "<"]),
    ],
)
def test_directions_are_exact_in_plain_cases(body: str, steps: list[str]) -> None:
    func = tl.parse(HEADER + indent(body, "    "))
    assert [", ".join(map(str, each.steps)) for each in dependences(func)] == steps


def test_the_carrier_is_the_outermost_loop_that_lies_between() -> None:
    body = "for i in range(n):\n    for j in range(1, m):\n        a[i, j] = a[i, j - 1]"
    func = tl.parse(HEADER + indent(body, "    "))
    (each,) = dependences(func)
    assert each.carrier is each.loops[1]
    assert (each.kind.value, each.level, each.steps) == ("flow", 1, (IterationStep("=", 0), IterationStep("<", 1)))


def test_what_is_not_told_of_an_access_may_be_anything() -> None:
    body = "for i in range(n):\n    tl.call_extern('f32', 'f', tl.address_of(x[0]))\n    y[i] = x[i]"
    func = tl.parse(HEADER + indent(body, "    "))
    found = {(each.kind.value, str(each.steps[0])) for each in dependences(func) if tl.ir.Load is type(each.sink.node)}
    assert found == {("flow", "<"), ("flow", "=")}
    assert {each.source.kind.value for each in dependences(func)} == {"opaque", "read"}


def test_accesses_tell_their_reduction() -> None:
    func = tl.parse(
        HEADER
        + "    for i in range(n - 4):\n        if y[i] < 0:\n            x[i] = x[i] + 1\n        else:\n"
        + "            x[tl.ramp(i, 1, 4)] = tl.broadcast(tl.f32(0), 4)"
    )
    touches = [touch for each in Facts(func).sequence.params for touch in each.touches if each.buffer.name == "x"]
    load, store, vector = touches
    assert load.reduction is store.reduction is tl.ir.Add
    assert vector.reduction is None


@every(
    "body, carries, inner",
    [
        ("a[i, j] = x[i] + y[i]", False, False),
        ("a[i, j] = a[i, j - 1] + 1", False, True),
        ("x[i] = x[i] + a[i, j]", False, True),
        ("x[j] = a[i, j]", True, False),
        ("t = tl.alloc(tl.f32[1])\n        t[0] = a[i, j]\n        a[i, j] = t[0]", False, False),
        ("x[z[i]] = 1", True, True),
        # However far a product goes, and if it wraps around, elements beside each other are not the same.
        ("x[j + m * m * m * i] = x[j + m * m * m * i + m]", True, False),
        # Every fourth multiple of 2**62 is the same number.
        ("x[m * m * m + 4611686018427387904 * j] = 1", True, True),
    ],
)
def test_a_loop_is_independent_where_it_carries_nothing(body: str, carries: bool, inner: bool) -> None:
    facts = Facts(tl.parse(HEADER + f"    for i in range(n):\n      for j in range(1, m):\n        {body}"))
    (loop,) = facts.func.body.stmts
    assert facts.is_independent(loop) is not carries
    assert facts.is_independent(loop.body.stmts[0]) is not inner
    assert bool([*facts.carried_by(loop)]) is carries


def test_loops_of_very_many_accesses_are_not_looked_at() -> None:
    body = "\n        ".join(f"x[64 * i + {k}] = x[64 * i + {k + 1}]" for k in range(60))
    facts = Facts(tl.parse(HEADER + f"    for i in range(n // 64):\n        {body}"))
    assert not facts.is_independent(facts.func.body.stmts[0])


@every(
    "body, apart",
    [
        ("x[i] = x[i] + y[i]", True),
        ("t = y[i]\n        x[i] = t", True),
        ("x[i] = a[i, 0]\n        a[i, m - 1] = y[i + 1]", True),
        ("a[i, z[i]] = a[i, 0]", True),
        ("x[i] = x[i + 1]", False),
        ("x[n - i] = y[i]", False),
        ("a[i, 0] = a[0, i]", False),
        ("v = tl.view(x, tl.f32[n])\n        x[i] = v[i + 1]", False),
        ("if y[i] < 0:\n            x[i] = 0.0", False),
        ("x[i] = tl.call_extern('f32', 'f', tl.address_of(x[0]))", False),
    ],
)
def test_a_look_tells_what_dependences_tell(body: str, apart: bool) -> None:
    facts = Facts(Normalize()(tl.parse(HEADER + f"    for i in range(n):\n        {body}")))
    (loop,) = facts.func.body.stmts
    assert has_elements_apart(loop, facts.alone) is apart
    assert not apart or not [*facts.carried_by(loop)]


def test_a_look_tells_of_what_is_allocated_and_of_views_that_are_read() -> None:
    text = (
        HEADER
        + """
    v = tl.view(x, tl.f32[n])
    t = tl.alloc(tl.f32[n])
    u = tl.alloc(tl.f32[n])
    w = tl.view(u, tl.f32[n])
    for i in range(1, n):
        t[i] = v[i - 1] + u[i - 1]
    for i in range(1, n):
        u[i] = y[i]
    for i in range(1, n):
        w[i] = u[i - 1]
    for i in range(1, n):
        y[i] = t[i - 1] + w[i]
"""
    )
    facts = Facts(Normalize()(tl.parse(text)))
    loops = [stmt for stmt in facts.func.body.stmts if isinstance(stmt, For)]
    assert [has_elements_apart(loop, facts.alone) for loop in loops] == [True, False, False, True]
    assert [facts.is_independent(loop) for loop in loops] == [True, True, False, True]


def test_a_look_tells_nothing_of_two_names_for_one_array() -> None:
    text = HEADER + "    v = tl.view(x, tl.f32[n])\n    for i in range(1, n):\n        x[i] = v[i - 1]"
    facts = Facts(Normalize()(tl.parse(text)))
    assert not facts.is_independent(facts.func.body.stmts[-1])
