"""Two plans beside each other: before and after, in letters and as SVG."""

from __future__ import annotations

from xml.etree import ElementTree

from tirlite.plan import Problem, Request, beside, solve
from tirlite.sizes import Dim

PROBLEM = Problem((Request("a", 64, ((0, 2),)), Request("b", 64, ((2, 4),)), Request("c", 64, ((4, 6),))))


def test_left_is_the_plan_that_shares_nothing_and_right_the_one_given() -> None:
    text = str(beside(solve(PROBLEM, "share")))
    first = text.splitlines()[0]
    assert first.startswith("none: 192 bytes")
    assert first.endswith("share: 64 bytes")


def test_both_are_drawn_to_one_scale() -> None:
    rows = [line for line in str(beside(solve(PROBLEM, "share"))).splitlines() if "|" in line]
    assert all(line.count("192 |") in (0, 2) for line in rows)
    assert rows[0].count("192 |") == 2


def test_the_picture_holds_both_charts_with_names_under_the_pointer() -> None:
    root = ElementTree.fromstring(beside(solve(PROBLEM, "share")).to_svg())
    titles = [each.text or "" for each in root.iter("{http://www.w3.org/2000/svg}title")]
    assert sum(title.startswith("a: 64 bytes") for title in titles) == 2
    assert len(list(root)) == 2


def test_another_plan_may_be_given_and_symbolic_sizes_a_binding() -> None:
    n = Dim("n")
    problem = Problem((Request("a", 4 * n, ((0, 2),)), Request("b", 8 * n, ((2, 4),))))
    compared = beside(solve(problem, "share"), solve(problem, "none"), {n: 10})
    assert "n = 10" in compared.to_text()
    assert "<svg" in compared._repr_html_()
