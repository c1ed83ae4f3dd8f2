"""Seconds by stage of a compilation, in the order in which the stages ran."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping


class Timing(Mapping[str, float]):
    """Stage -> seconds; `note` reports anything unusual. `print` shows a table in milliseconds."""

    def __init__(self, stages: Iterable[tuple[str, float]], note: str = "") -> None:
        self._stages: dict[str, float] = {}
        for stage, seconds in stages:
            self._stages[stage] = self._stages.get(stage, 0.0) + seconds
        self.note = note

    @property
    def total(self) -> float:
        return sum(self._stages.values())

    def __getitem__(self, stage: str) -> float:
        return self._stages[stage]

    def __iter__(self) -> Iterator[str]:
        return iter(self._stages)

    def __len__(self) -> int:
        return len(self._stages)

    def __str__(self) -> str:
        rows = [*self._stages.items(), ("total", self.total)]
        width = max(len(stage) for stage, _ in rows)
        lines = [f"{stage:<{width}}  {seconds * 1e3:9.3f} ms" for stage, seconds in rows]
        return "\n".join([*lines, self.note] if self.note else lines)

    def __repr__(self) -> str:
        return f"Timing({self._stages!r})"
