"""Tells for two nodes of a function whether the one has surely run when the other does, in one run of a block."""

from __future__ import annotations

from tirlite.ir import Node, PrimFunc, SeqStmt, Stmt


class Blocks:
    """The nodes of a function, numbered in program order, and the block in which each statement stands.

    Of a node that stands at several places nothing is said.
    """

    def __init__(self, func: PrimFunc) -> None:
        self._numbers: dict[Node, int] = {}
        self._ends: dict[Stmt, int] = {}  # by statement, the first number behind the block that it stands in
        self._repeated: set[Node] = set()
        self._walk(func.body)

    def dominates(self, stmt: Stmt, node: Node) -> bool:
        """Whether `node` lies behind `stmt` in the block that `stmt` stands in, or in one inside of it."""
        if stmt in self._repeated or node in self._repeated:
            return False
        number = self._numbers[node]
        return self._numbers[stmt] < number < self._ends[stmt] and not self._is_within(number, stmt)

    def _is_within(self, number: int, stmt: Stmt) -> bool:
        return number <= self._last[stmt]

    def _walk(self, body: SeqStmt) -> None:
        clock = 0
        self._last: dict[Node, int] = {}  # of each node the greatest number inside of it
        stack: list[tuple[Node, bool]] = [(body, False)]
        while stack:
            node, is_done = stack.pop()
            if is_done:
                self._last[node] = clock - 1
                if isinstance(node, SeqStmt):
                    self._ends.update(dict.fromkeys(node.stmts, clock))
                continue
            if node in self._numbers:
                self._repeated.add(node)
            self._numbers[node] = clock
            clock += 1
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(node.children()))
