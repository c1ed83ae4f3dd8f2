"""Proofs by cases: what holds of integers alone, where a dim may be 0 or operands of maxima cross."""

from __future__ import annotations

import pytest

from tirlite.sizes import Dim, Proof, Size, ceildiv, evaluate, maximum, minimum, prove_le, prove_le_by_cases

n, m = Dim("n", min=0), Dim("m", min=0)
cut = maximum(2 * n - 1, 0)
room = maximum(2 * m * n + 4 * n * n, 4 * n * n + 4 * cut, 4 * n * n + n)


@pytest.mark.parametrize(
    ("less", "more"),
    [(n + 0, 4 * cut), (8 * cut, 3 * maximum(8 * n - 4, n)), (8 * n * n + 2 * n, 8 * ceildiv(room, 4))],
)
def test_what_is_cut_off_at_nought_is_proved_from_one_on_and_at_nought(less: Size, more: Size) -> None:
    assert prove_le(less, more) is Proof.UNKNOWN
    assert prove_le_by_cases(less, more) is Proof.YES


frames, batch = Dim("frames"), Dim("batch")
taps = batch * maximum(frames - 2, 0)


@pytest.mark.parametrize(
    ("less", "more"),
    [
        (257 * taps, maximum(13 * batch, 321 * taps)),
        (maximum(257 * taps, 12 * batch), 3 * batch + maximum(13 * batch, 321 * taps)),
        (4 * 257 * taps, 8 * ceildiv(3 * batch + maximum(13 * batch, 321 * taps), 2)),
    ],
)
def test_one_operand_of_a_maximum_is_enough_whatever_is_cut_off_in_it(less: Size, more: Size) -> None:
    assert prove_le(less, more) is Proof.UNKNOWN
    assert prove_le_by_cases(less, more) is Proof.YES


@pytest.mark.parametrize(
    ("less", "more"),
    [
        (322 * taps, maximum(13 * batch, 321 * taps)),
        (maximum(257 * taps, 14 * batch), maximum(13 * batch, 321 * taps)),
        (4 * 257 * taps, 6 * ((3 * batch + maximum(13 * batch, 321 * taps)) // 2)),
        (257 * taps, 40000 - maximum(13 * batch, 321 * taps)),
    ],
)
def test_an_operand_is_not_enough_where_it_is_too_small_or_subtracted(less: Size, more: Size) -> None:
    assert any(evaluate(less, {frames: k, batch: 2}) > evaluate(more, {frames: k, batch: 2}) for k in (1, 9, 999))
    assert prove_le_by_cases(less, more) is Proof.UNKNOWN


@pytest.mark.parametrize(("less", "more"), [(n + 1, 4 * cut), (3 * n, 2 * n), (m + 0, 4 * cut)])
def test_what_does_not_hold_is_not_proved(less: Size, more: Size) -> None:
    assert any(evaluate(less, {n: a, m: b}) > evaluate(more, {n: a, m: b}) for a in range(3) for b in range(3))
    assert prove_le_by_cases(less, more) is Proof.UNKNOWN


below = Dim("below", min=-3)


@pytest.mark.parametrize(("less", "more"), [(-5 * below, 0), (0, 5 * below), (below + n, 2 * below + n)])
def test_more_of_what_may_be_negative_is_not_more(less: Size, more: Size) -> None:
    assert evaluate(less, {below: -2, n: 1}) > evaluate(more, {below: -2, n: 1})
    assert prove_le_by_cases(less, more) is Proof.UNKNOWN


def test_a_maximum_may_stand_in_what_it_is_at_most() -> None:
    frames, batch = maximum(Dim("d") - 7, 0), Dim("b") + 0
    assert prove_le_by_cases(frames, maximum(2 * batch * frames + 4 * frames, 5 * batch * frames)) is Proof.YES


@pytest.mark.parametrize("low", [0, 1])
def test_what_is_cut_off_at_several_values_is_proved_between_them(low: int) -> None:
    """The storage of a network of convolutions along frames, of which each takes two away."""
    k = Dim("frames", min=low)
    after = maximum(k - 6, 0)
    heads = (125 * after + 160 * maximum(k - 4, 0) + 1, 4 * after + 5, 6 * after + 4, 9 * after + 2)
    less, more = 32896 * maximum(k - 2, 0), 128 * maximum(*heads, 321 * k - 642, 11)
    assert prove_le(less, more) is Proof.UNKNOWN
    assert prove_le_by_cases(less, more) is Proof.YES


even, few = Dim("even", min=2, multiple_of=2), Dim("few", min=3, max=9)


@pytest.mark.parametrize(
    ("less", "more", "room"),
    [
        (3 * maximum(even - 512, 0), maximum(4 * even - 2048, 7), 2),
        (2 * maximum(few - 5, 0) + maximum(few - 7, 0), maximum(4 * few - 21, 1), 1),
        (n * maximum(m - 3, 0) + maximum(n - 5, 0), maximum(2 * n * m - 6 * n, 0) + maximum(2 * n - 9, 0), 0),
    ],
)
def test_cases_obey_the_facts_of_dims_and_go_together(less: Size, more: Size, room: int) -> None:
    assert prove_le_by_cases(less + room, more) is Proof.YES
    assert prove_le_by_cases(less + room + 1, more) is Proof.UNKNOWN


@pytest.mark.parametrize("peak", [5, 12, 77])
def test_what_fails_at_one_value_is_not_proved(peak: int) -> None:
    less = maximum(minimum(n - peak, peak - n) + 1, 0)
    assert evaluate(less, {n: peak}) == 1
    assert prove_le_by_cases(less, 0) is Proof.UNKNOWN
    assert prove_le_by_cases(less, 1) is Proof.YES


def test_where_a_case_divides_by_zero_nothing_is_to_be_shown() -> None:
    assert prove_le_by_cases(m // n + n, m // n + 4 * cut) is Proof.YES
    assert prove_le_by_cases(maximum(m // n - 2, 0), m // n) is Proof.YES
    assert prove_le_by_cases(m // n + 1, maximum(m // n, n)) is Proof.UNKNOWN
