"""The page of a plan: what stands in it as data, that nothing of it is markup, and what a browser makes of it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape
from itertools import product
from pathlib import Path

import pytest

import tirlite as tl
from tirlite.plan import PerShape, Plan, Pool, Problem, Request, solve
from tirlite.sizes import ceildiv, evaluate, maximum

EVIL = "</script><img src=x onerror=alert(1)>"
N, M = tl.dims("n m")
SYMBOLIC = Problem(
    (
        Request("rows", 4 * N * M, (0, 3)),
        Request("halves", 4 * ceildiv(N, 2), (2, 5)),
        Request("most", maximum(8 * N, 4 * M) + N % 3, (4, 6)),
    )
)


def data_of(page: str) -> dict:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return json.loads(found[1])


def value_of(data: dict, size: object, values: list[int]) -> int:
    """What the page's script makes of a size."""
    if not isinstance(size, list):
        return int(size)

    def atom(index: int) -> int:
        told = data["atoms"][index]
        if "name" not in told:
            return values[told["dim"]]
        operands = [value_of(data, each, values) for each in told["of"]]
        return {
            "quotient": lambda a, b: a // b,
            "remainder": lambda a, b: a % b,
            "maximum": lambda *all: max(all),
            "minimum": lambda *all: min(all),
        }[told["name"]](*operands)

    total = 0
    for factor, *atoms in data["formulas"][size[0]]["terms"]:
        product = int(factor)
        for each in atoms:
            product *= atom(each)
        total += product
    return total


@pytest.mark.parametrize("values", [(1, 1), (7, 3), (640, 10**9)])
def test_sizes_and_offsets_are_those_of_the_plan_for_all_values(values: tuple[int, int]) -> None:
    plan = solve(SYMBOLIC)
    data = data_of(plan.to_html())
    dims = SYMBOLIC.dims
    assert [dim["name"] for dim in data["dims"]] == [dim.name for dim in dims]
    binding = dict(zip(dims, values, strict=True))
    (told,) = data["plans"]
    for place, request in enumerate(SYMBOLIC.requests):
        placement = plan.placements[request.id]
        assert value_of(data, data["buffers"]["size"][place], list(values)) == evaluate(request.size, binding)
        assert value_of(data, told["offset"][place], list(values)) == evaluate(placement.offset, binding)
        assert told["pools"][told["pool"][place]]["name"] == placement.pool
        assert data["reasons"][told["why"][place]] == str(plan.decisions[request.id])
    assert value_of(data, told["total"], list(values)) == evaluate(plan.total, binding)


def test_a_page_of_plans_by_shape_has_one_for_each_position_of_the_sliders() -> None:
    plans = PerShape(SYMBOLIC)
    data = data_of(plans.to_html())
    first, second = (dim["values"] for dim in data["dims"])
    assert len(first) >= 3
    assert sorted(plan["at"] for plan in data["plans"]) == sorted([a, b] for a in first for b in second)
    some = data["plans"][-1]
    at = dict(zip(plans.dims, some["at"], strict=True))
    assert value_of(data, some["total"], some["at"]) == plans.plan_at(at).total


def test_very_many_dims_have_a_plan_for_each_position_too() -> None:
    dims = tl.dims("a b c d e f g h")
    problem = Problem(tuple(Request(dim.name, 4 * dim, (place, place + 2)) for place, dim in enumerate(dims)))
    data = data_of(PerShape(problem).to_html())
    plans = [plan["at"] for plan in data["plans"]]
    assert sorted(plans) == sorted(map(list, product(*(dim["values"] for dim in data["dims"]))))
    assert [dim["value"] for dim in data["dims"]] in plans
    assert 1 < len(plans) <= 64


def test_where_no_plan_fits_a_shape_the_page_says_so() -> None:
    problem = Problem((Request("a", 4 * N, (0, 2)),), (Pool("global", capacity=1000),))
    faults = [(each["at"], each.get("fault")) for each in data_of(PerShape(problem).to_html())["plans"]]
    assert all((fault is not None) == (4 * n > 1000) for ((n,), fault) in faults)
    assert {fault is None for _, fault in faults} == {True, False}


def test_names_are_text_wherever_they_come_from() -> None:
    evil = Problem((Request(EVIL, 8, (0, 2)), Request("b", 8, (2, 4))), outside=((EVIL, EVIL),))
    page = solve(evil).to_html(EVIL)
    assert EVIL not in page
    assert "<img" not in page
    assert data_of(page)["buffers"]["id"][0] == data_of(page)["title"] == EVIL
    assert "<img" not in solve(evil)._repr_html_().replace("&lt;img", "")


def test_the_page_asks_nothing_of_a_network() -> None:
    page = solve(SYMBOLIC).to_html()
    assert "default-src 'none'" in page
    assert not re.search(r"https?:|src=|href=|fetch\(|import\b", page)


def test_what_stands_in_no_number_of_a_browser_is_text() -> None:
    data = data_of(solve(Problem((Request("a", 2**60 + 1, (0, 2)),))).to_html())
    assert data["buffers"]["size"] == [str(2**60 + 1)]


def shown_pair(page: Path, first: str, second: str) -> str:
    """What a browser shows of two buffers."""
    browser = next(found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name)))
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={page.parent / 'profile'}"]
    command = [browser, *options, "--dump-dom", f"{page.as_uri()}#{first},{second}"]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    return unescape(re.search(r'<div id="pair"><p>(.*?)</p>', shown, re.DOTALL)[1])


@pytest.mark.skipif(
    not any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), reason="there is no Chromium"
)
@pytest.mark.parametrize("pair", [("rows", "halves"), ("rows", "most"), ("in", "out")])
def test_a_browser_tells_of_two_buffers_what_explain_tells(tmp_path: Path, pair: tuple[str, str]) -> None:
    more = (Request("in", 64, (7, 9)), Request("out", 64, (8, 10)))
    plan: Plan = solve(Problem((*SYMBOLIC.requests, *more), in_place=(("out", "in"),)))
    page = tmp_path / "plan.html"
    page.write_text(plan.to_html(), "utf-8")
    assert shown_pair(page, *pair) == plan.explain(*pair)
