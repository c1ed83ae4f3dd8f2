"""Storage scopes: rank and tag."""

from __future__ import annotations

import pytest

from tirlite.diag import PlanError
from tirlite.plan import Rank, StorageScope


@pytest.mark.parametrize(
    ("text", "rank", "tag"),
    [
        ("global", Rank.GLOBAL, ""),
        ("shared", Rank.SHARED, ""),
        ("warp", Rank.WARP, ""),
        ("local", Rank.LOCAL, ""),
        ("local.UB", Rank.LOCAL, "UB"),
        ("shared.dyn", Rank.SHARED, "dyn"),
        ("global.a.b", Rank.GLOBAL, "a.b"),
    ],
)
def test_a_scope_is_read_and_written(text: str, rank: Rank, tag: str) -> None:
    scope = StorageScope.parse(text)
    assert (scope.rank, scope.tag) == (rank, tag)
    assert str(scope) == text


def test_equal_means_the_same_rank_and_the_same_tag() -> None:
    assert StorageScope.parse("local.UB") == StorageScope.parse("local.UB")
    assert StorageScope.parse("local.UB") != StorageScope.parse("local.ub")
    assert StorageScope.parse("local") != StorageScope.parse("warp")


def test_ranks_are_ordered_from_far_to_near() -> None:
    assert Rank.GLOBAL < Rank.SHARED < Rank.WARP < Rank.LOCAL


def test_a_typo_is_answered_with_the_nearest_name() -> None:
    with pytest.raises(PlanError) as caught:
        StorageScope.parse("locl.UB")
    assert "there is no storage scope `locl.UB`" in str(caught.value)
    assert "did you mean `local`" in str(caught.value)


@pytest.mark.parametrize("text", ["", ".UB", "local.", "Local", "local UB", "vram"])
def test_what_is_no_scope_is_refused(text: str) -> None:
    with pytest.raises(PlanError) as caught:
        StorageScope.parse(text)
    assert caught.value.code == "unknown-scope"


def test_what_is_no_text_is_no_scope() -> None:
    with pytest.raises(PlanError, match="there is no storage scope `3`"):
        StorageScope.parse(3)  # type: ignore[arg-type]
