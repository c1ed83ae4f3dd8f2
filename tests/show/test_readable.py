"""Texts of several lines that notebooks and consoles show as lines."""

from __future__ import annotations

import tirlite as tl


def test_what_a_plan_explains_reads_as_lines() -> None:
    requests = [tl.plan.Request("a<b", 4, (0, 2)), tl.plan.Request("c", 4, (1, 3))]
    told = tl.plan.solve(tl.plan.Problem(requests)).explain()
    assert isinstance(told, str)
    assert "a&lt;b: 4 bytes" in told._repr_html_()
    assert "\n" in told._repr_html_()
    shown: list[str] = []
    told._repr_pretty_(type("Printer", (), {"text": lambda _, text: shown.append(text)})(), False)
    assert shown == [told]
