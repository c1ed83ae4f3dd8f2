"""Which buffers may take over the bytes of others at a call, and why not."""

from __future__ import annotations

import pytest
from every import every
from small_functions import relu, reverse

import tirlite as tl

n = tl.dim("n")


@tl.kernel
def together(x: tl.f32[n], y: tl.f32[n], z: tl.f32[n]):
    for i in tl.parallel(n):
        z[i] = x[i] * y[i]


@tl.kernel
def normalized(x: tl.f32[n], y: tl.f32[n]):
    total = tl.f32(0)
    for i in range(n):
        total += x[i]
    for i in range(n):
        y[i] = x[i] / total


@tl.kernel
def restless(x: tl.f32[n], y: tl.f32[n]):
    for i in range(n):
        y[i] = 0
    for i in range(n):
        y[i] = x[i]


@tl.kernel
def passed_on(x: tl.f32[n], y: tl.f32[n]):
    flat = tl.view(y, tl.f32[n])
    tl.call(relu, x, flat)


@tl.kernel
def two_steps(x: tl.f32[n], y: tl.f32[n]):
    t = tl.alloc(tl.f32[n])
    tl.call(reverse, x, t)
    tl.call(relu, t, y)


@tl.kernel
def wrong_order(x: tl.f32[n], y: tl.f32[n]):
    t = tl.alloc(tl.f32[n])
    tl.call(relu, x, y)
    tl.call(relu, x, t)


m = tl.dim("m", max=100)
few = tl.dim("few", max=100)


@tl.kernel
def each_mth(x: tl.f32[few], y: tl.f32[few], width: tl.f32[m]):
    for i in range(few):
        if i * m < few:
            y[i * m] = x[i * m]


def verdicts(text: str) -> dict[tuple[str, str], tl.analysis.InPlaceProof]:
    """The proofs for a kernel of `x` and `y`, given by its lines, that allocates `a` and `b`."""
    # Those that call others first, as their text defines these once more.
    names = (passed_on, two_steps, wrong_order, relu, together, reverse, normalized, restless, each_mth)
    kernels = "\n\n".join(str(each.ir) for each in names if each.name in text)
    lines = ["a = tl.alloc(tl.f32[k])", "b = tl.alloc(tl.f32[k])", *text.splitlines()]
    head = 'k = tl.dim("k")\n\n@tl.kernel\ndef outer(x: tl.f32[k], y: tl.f32[k]):\n'
    func = tl.passes.Normalize()(tl.parse(f"{kernels}\n\n{head}" + "\n".join(f"    {line}" for line in lines)))
    proofs = tl.analysis.in_place_candidates(func)
    return {(proof.destination.name, proof.source.name): proof for proof in proofs}


@every(
    "call",
    [
        "tl.call(relu, a, b)",
        "tl.call(together, a, x, b)",
        "tl.call(together, a, a, b)",
        "tl.call(together, x, a, b)",
        "tl.call(normalized, a, b)",
        "tl.call(two_steps, a, b)",
        "tl.call(passed_on, a, b)",
        "width = tl.alloc(tl.f32[k])\ntl.call(relu, x, width)\ntl.call(each_mth, a, b, width)",
        "if k > 3:\n    tl.call(relu, a, b)\nelse:\n    tl.call(relu, a, b)",
    ],
)
def test_what_is_read_before_it_is_overwritten_goes_in_place(call: str) -> None:
    proof = verdicts(f"tl.call(relu, x, a)\n{call}\ntl.call(relu, b, y)")["b", "a"]
    assert proof.allowed, proof


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("tl.call(reverse, a, b)", "inside of `reverse`, `y[i]` may be written before `x[n - 1 - i]` is read"),
        ("tl.call(restless, a, b)", "inside of `restless`, `y[i]` may be written before `x[i]` is read"),
        ("tl.call(wrong_order, a, b)", "inside of `wrong_order`, `y` is written before `x` is done with"),
        (
            "lower = tl.view(a, tl.f32[k - 1])\n"
            "upper = tl.view(b, tl.f32[k - 1], byte_offset=4)\n"
            "tl.call(relu, lower, upper)",
            "`relu` is given `upper` and `lower`, which are not proved to begin at the same byte",
        ),
        (
            # With m = 0 it reads and writes element 0 again and again.
            "width = tl.alloc(tl.f32[k - 1])\ntl.call(each_mth, a, b, width)",
            "a dim of `each_mth` may be 0 at this call",
        ),
        ("for i in range(3):\n    tl.call(relu, a, b)", "is called again and again, in the loop over `i`"),
    ],
)
def test_what_may_be_overwritten_too_early_stays_apart(call: str, reason: str) -> None:
    proof = verdicts(f"tl.call(relu, x, a)\n{call}\ntl.call(relu, b, y)")["b", "a"]
    assert not proof.allowed
    assert reason in proof.reason


def test_lifetimes_end_at_the_call_that_reads_last() -> None:
    func = tl.parse(f"""{relu.ir}

k = tl.dim("k")

@tl.kernel
def outer(x: tl.f32[k], y: tl.f32[k]):
    a = tl.alloc(tl.f32[k])
    b = tl.alloc(tl.f32[k])
    tl.call(relu, x, a)
    tl.call(relu, a, b)
    tl.call(relu, b, y)
""")
    assert [str(each) for each in tl.analysis.lifetimes(func).values()] == ["a: [2, 4)", "b: [3, 5)"]
    assert str(tl.analysis.linear_sequence(func)).splitlines()[2:] == [
        "  2  +0 call relu: write a",
        "  3  +0 call relu: read a, write b",
        "  4  +0 call relu: read b",
    ]


def test_a_buffer_whose_address_a_callee_gives_away_lives_to_the_end() -> None:
    func = tl.parse("""
n = tl.dim("n")

@tl.kernel
def fill(x: tl.f32[n]):
    tl.call_extern("i32", "fill", x, n)

n = tl.dim("n")

@tl.kernel
def outer(x: tl.f32[n]):
    a = tl.alloc(tl.f32[n])
    tl.call(fill, a)
    for i in range(n):
        x[i] = 0
""")
    assert str(tl.analysis.lifetimes(func)["a"]) == "a: [1, 5)"
