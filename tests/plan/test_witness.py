"""Witnesses: a time at which more is live than there is room for, also for some values of the dims, also by padding."""

from tirlite.plan import Pool, Problem, Request
from tirlite.plan.report.witness import Witness, witness
from tirlite.sizes import Dim


def test_too_much_live_at_one_time_is_a_witness():
    problem = Problem((Request("a", 8, (0, 3)), Request("b", 8, (2, 4))), (Pool("global", capacity=15),))
    assert witness(problem) == Witness("global", 15, 2, 16, ("a", "b"))


def test_what_fits_has_none():
    assert witness(Problem((Request("a", 8, (0, 3)),), (Pool("global", capacity=8),))) is None
    assert witness(Problem((Request("a", 8, (0, 3)),))) is None


def test_padding_between_what_is_live_counts():
    requests = (Request("a", 10, (0, 3), align=64), Request("b", 10, (2, 4), align=64))
    found = witness(Problem(requests, (Pool("global", capacity=73),)))
    assert found == Witness("global", 73, 2, 74, ("a", "b"), is_padded=True)
    assert witness(Problem(requests, (Pool("global", capacity=74),))) is None


def test_sizes_over_dims_need_too_much_at_some_values():
    n = Dim("n", max=4)
    requests = (Request("a", 10 * n, (0, 3)), Request("b", 10 * n, (2, 4)))
    found = witness(Problem(requests, (Pool("global", capacity=79),)))
    assert found is not None
    assert (found.bytes, found.binding) == (80, (("n", 4),))
    assert witness(Problem(requests, (Pool("global", capacity=80),))) is None


def test_a_dim_without_limit_is_taken_as_large_as_it_must_be():
    problem = Problem((Request("a", 4 * Dim("n"), (0, 3)),), (Pool("global", capacity=1 << 34),))
    assert witness(problem) is not None
