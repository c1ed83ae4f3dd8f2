"""The lower bound: the most bytes that are live at one time."""

from random import Random

from every import every

from tirlite.plan import Plan, Pool, Problem, Request, lower_bound, solve
from tirlite.sizes import Dim, evaluate


def test_it_is_the_largest_sum_of_sizes_live_at_one_point():
    assert lower_bound(Problem((Request("a", 10, (0, 2)), Request("b", 20, (1, 3)), Request("c", 25, (2, 4))))) == 45


def test_nothing_needs_nothing():
    assert lower_bound(Problem(())) == 0


def test_gaps_do_not_count():
    assert lower_bound(Problem((Request("a", 10, ((0, 2), (4, 6))), Request("b", 20, (2, 4))))) == 20


def test_memories_add_up_and_count_as_often_as_they_exist():
    problem = Problem(
        (Request("a", 10, (0, 2), pools=("p",)), Request("b", 20, (2, 3), pools=("q",))),
        (Pool("p", copies=3), Pool("q")),
    )
    assert lower_bound(problem) == 50


def test_a_choice_of_memories_makes_them_one_group():
    pools = (Pool("p"), Pool("q"))
    apart = (Request("a", 10, (0, 2), pools=("p",)), Request("b", 20, (2, 4), pools=("q",)))
    assert lower_bound(Problem((*apart, Request("c", 1, (0, 1), pools=("p", "q"))), pools)) == 30
    assert lower_bound(Problem((*apart, Request("c", 100, (0, 1), pools=("p", "q"))), pools)) == 110


def test_symbolic_sums_that_cannot_be_compared_make_a_maximum():
    n, m = Dim("n"), Dim("m")
    problem = Problem((Request("a", 4 * n, (0, 2)), Request("b", 8 * m, (2, 4)), Request("c", 2 * n, (0, 1))))
    assert str(lower_bound(problem)) == "2*max(3*n, 4*m)"


def brute_force(problem):
    times = {time for request in problem.requests for interval in request.live for time in interval}
    return max(
        sum(r.size for r in problem.requests if any(low <= time < high for low, high in r.live)) for time in times
    )


def test_of_many_sums_one_counts_that_is_largest_where_a_dim_is_ten_times_the_other():
    n, m = Dim("n"), Dim("m")
    alike = [Request(f"r{i}", 256 * n * m + 4 * i * m, (2 * i, 2 * i + 1)) for i in range(20)]
    bound = lower_bound(Problem((*alike, Request("square", 20 * n * n, (50, 51)))))
    assert evaluate(bound, {n: 100, m: 1}) == 20 * 100 * 100


@every("seed", range(30))
def test_against_all_points_in_time(seed):
    random = Random(seed)
    requests = []
    for i in range(random.randrange(1, 30)):
        spans = [(low, low + random.randrange(1, 6)) for low in random.sample(range(40), random.randrange(1, 4))]
        requests.append(Request(f"r{i}", random.randrange(100), tuple(spans)))
    assert lower_bound(Problem(tuple(requests))) == brute_force(Problem(tuple(requests)))


@every("seed", range(10))
def test_a_symbolic_bound_is_true_and_tight_at_small_numbers_of_sums(seed):
    n, m = Dim("n"), Dim("m")
    random = Random(seed)
    requests = []
    for i in range(12):
        low = random.randrange(12)
        requests.append(
            Request(f"r{i}", random.choice([4 * n, 4 * m, n * m, 64]), ((low, low + random.randrange(1, 5)),))
        )
    problem = Problem(tuple(requests))
    for _ in range(10):
        binding = {n: random.randrange(1, 50), m: random.randrange(1, 50)}
        assert evaluate(lower_bound(problem), binding) == brute_force(problem.at(binding))


def test_a_pair_that_strategies_leave_aside_may_still_be_taken():
    a = Request("a", 20, (0, 4), pools=("p", "q"))
    b = Request("b", 20, (3, 6), pools=("q", "p"))
    problem = Problem((a, b), (Pool("p"), Pool("q")), in_place=(("b", "a"),))
    mine = solve(problem, lambda problem: Plan.of(problem, {"a": ("p", 0), "b": ("p", 0)}, in_place=[("b", "a")]))
    assert mine.total == mine.lower_bound == mine.open_bound == 20
    assert not solve(problem, "share").proved_optimal


def test_a_pair_may_be_taken_where_one_is_fixed():
    a, b = Request("a", 20, (0, 4), fixed=0), Request("b", 20, (3, 6))
    problem = Problem((a, b), in_place=(("b", "a"),))
    mine = solve(problem, lambda problem: Plan.of(problem, {"a": ("m", 0), "b": ("m", 0)}, in_place=[("b", "a")]))
    assert mine.proved_optimal
    assert not solve(problem, "share").proved_optimal


def test_what_two_could_overwrite_is_saved_once():
    """As the outputs of a recurrent layer, each of which may take the place of the state at the begin."""
    n = Dim("n")
    state, rows, last = Request("state", 8 * n, (0, 3)), Request("rows", 24 * n, (2, 5)), Request("last", 8 * n, (2, 4))
    plan = solve(Problem((state, rows, last), in_place=(("rows", "state"), ("last", "state"))), "pack")
    assert str(plan.total) == str(plan.open_bound) == "32*n"
    assert plan.proved_optimal
