"""In place at the level of problems: which pairs go together, and what they make of lifetimes."""

from tirlite.plan import Problem, Request
from tirlite.plan.in_place import chosen, grouped, handover, handovers


def test_a_handover_ends_one_life_and_begins_the_other():
    assert handover(((3, 7),), ((0, 4),)) == (3, 4)
    assert handover(((3, 7),), ((0, 5),)) == (3, 5), "a loop nest may take several points of time"
    assert handover(((3, 4),), ((0, 4),)) == (3, 4), "the destination may die at once"
    assert handover(((4, 7),), ((0, 4),)) is None, "they are never live together"
    assert handover(((3, 7),), ((0, 9),)) is None, "the source outlives the destination"
    assert handover(((0, 7),), ((1, 4),)) is None, "the destination was there before"
    assert handover(((3, 7),), ((0, 4), (8, 9))) is None, "the source is needed again"


def problem(*pairs, **changes):
    requests = (
        Request("a", changes.get("a", 64), (0, 3)),
        Request("b", 64, (0, 3)),
        Request("c", 32, (2, 5)),
        Request("d", 64, (4, 6)),
    )
    return Problem(requests, in_place=pairs)


def test_each_source_and_each_destination_is_in_one_pair():
    two_sources = problem(("c", "a"), ("c", "b"))
    assert [each.pair for each in chosen(handovers(two_sources), int)] == [("c", "a")]


def test_what_saves_most_is_taken_first():
    assert [each.pair for each in chosen(handovers(problem(("c", "a"), ("c", "b"), a=16)), int)] == [("c", "b")]


def test_a_chain_is_one_group_with_the_larger_size_at_each_handover():
    chain = problem(("c", "a"), ("d", "c"))
    groups = grouped(chain.requests, chosen(handovers(chain), int))
    assert [[request.id for request in group.members] for group in groups] == [["a", "c", "d"], ["b"]]
    assert groups[0].pieces == (((0, 2), 64), ((2, 3), 64), ((3, 4), 32), ((4, 5), 64), ((5, 6), 64))


def test_handovers_of_one_chain_that_overlap_do_not_go_together():
    requests = (Request("a", 64, (0, 6)), Request("b", 64, (4, 6)), Request("c", 64, (5, 8)))
    overlapping = Problem(requests, in_place=(("b", "a"), ("c", "b")))
    assert [each.pair for each in chosen(handovers(overlapping), int)] == [("b", "a")]


def test_pairs_of_other_shapes_are_never_taken():
    requests = (
        Request("a", 64, (0, 3), "shared"),
        Request("b", 64, (0, 3), fixed=0),
        Request("c", 32, (2, 5)),
        Request("d", 64, (5, 6)),
    )
    assert handovers(Problem(requests, in_place=(("c", "a"), ("c", "b"), ("d", "c")))) == []
