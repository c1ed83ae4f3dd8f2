"""Groups the operators of a program into functions: one operator, and the elementwise ones that use its result.

A group is computed at its first operator, when all of its operands exist. Only its last tensor exists: a result that
others use is outside of the group, or its end. So no tensor lives longer than before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Protocol

from tirlite.graph.expr import Call, Constant, Expr, If, Var
from tirlite.graph.extents import is_equal
from tirlite.graph.fuse.finish import Elements, elements_of
from tirlite.graph.op import Op
from tirlite.graph.program import Block, Part, Program
from tirlite.graph.types import TensorType
from tirlite.record import cached_method, record
from tirlite.show import table
from tirlite.sizes import Size

# The most operators of a group, and the most operands besides those of its first operator.
MOST_STEPS = 24
MOST_OPERANDS = 12


@record(eq=False)
class Group:
    """Calls that become one function, in order; all but the first are elementwise."""

    calls: tuple[Call, ...]

    @property
    def first(self) -> Call:
        return self.calls[0]

    @property
    def last(self) -> Call:
        return self.calls[-1]

    @property
    def saved(self) -> Size:
        """The bytes of the tensors between its calls, which do not exist."""
        return sum((call.tensor.bytes for call in self.calls[:-1]), 0)


@record(eq=False)
class Alone:
    """An elementwise call that is a function of its own, and why."""

    call: Call
    why: str


@record(eq=False)
class Grouping:
    """The groups of a program by their first calls, and the elementwise calls outside of groups.

    It prints as tables of both.
    """

    groups: Mapping[Call, Group]
    alone: tuple[Alone, ...] = ()

    def __str__(self) -> str:
        fused = [
            (called(group.first), " + ".join(call.op.name for call in group.calls), group.saved)
            for group in self.groups.values()
        ]
        alone = [(called(each.call), each.call.op.name, each.why) for each in self.alone]
        parts = [table(("call", "computed together", "bytes saved"), fused)] if fused else []
        parts += [table(("call", "operator", "alone, because"), alone)] if alone else []
        return "\n\n".join(parts) or "every operator is a function of its own"

    @property
    def behind(self) -> frozenset[Expr]:
        """The calls of groups, but for the first ones."""
        return frozenset(call for group in self.groups.values() for call in group.calls[1:])


NO_GROUPS = Grouping({})


class Functions(Protocol):
    """Builds the functions of calls and groups."""

    def why_not(self, call: Call) -> str:
        """Why a call cannot be the first of a group; "" where it can."""
        ...

    def has_group(self, group: Group, made: Program) -> bool:
        """Whether there is a function of a group: extents over dims may tell too little."""
        ...


def grouping(made: Program, folded: Collection[Expr], shown: Collection[Expr], functions: Functions) -> Grouping:
    """The groups of a program, blocks by themselves.

    The value of what is `folded` is known, and tensors of what is `shown` must exist.
    """
    users = _users(made)
    groups: dict[Call, Group] = {}
    alone: list[Alone] = []
    blocks = [made.body, *(block for pair in made.branches.values() for block in pair)]
    for block in blocks:
        maker = _Maker(made, block, users, folded, shown, functions)
        groups |= {group.first: group for group in maker.groups()}
        alone += maker.alone(groups)
    return Grouping(groups, tuple(alone))


def _users(made: Program) -> dict[Part, set[object]]:
    """The users of each tensor: steps, and the program if it is a result or an extent is read from it."""
    users: dict[Part, set[object]] = {}

    def note(expr: Expr, user: object) -> None:
        for part in made.parts[expr]:
            users.setdefault(part, set()).add(user)

    note(made.function.body, made)
    for pair in made.branches.values():
        for block in pair:
            note(block.result, block)
    for step in made.steps():
        if isinstance(step, Call | If):
            for source in step.sources:
                note(source, made)
        if isinstance(step, If):
            note(step.condition, step)
        elif isinstance(step, Call):
            for arg in step.args:
                note(arg, step)
    return users


class _Maker:
    """Finds the groups of one block."""

    def __init__(
        self,
        made: Program,
        block: Block,
        users: Mapping[Part, set[object]],
        folded: Collection[Expr],
        shown: Collection[Expr],
        functions: Functions,
    ) -> None:
        self.made = made
        self.users = users
        self.shown = shown
        self.functions = functions
        self.steps = [step for step in block.steps if isinstance(step, Call | If) and step not in folded]
        self.places: dict[Expr, int] = {step: place for place, step in enumerate(self.steps)}
        self.inside = frozenset(self.steps)
        self.taken: dict[Call, Group] = {}
        self.lost: set[Call] = set()
        self._depths: dict[Expr, int] = {}  # of each step, how many make each other, up to it
        for step in self.steps:
            args = step.args if isinstance(step, Call) else (step.condition,)
            before = (self._depths.get(part.step, 0) for arg in args for part in made.parts[arg])
            self._depths[step] = 1 + max(before, default=0)
        self._deepest = 0  # of the steps that exist before the one that is looked at

    def groups(self) -> Iterator[Group]:
        for place, step in enumerate(self.steps):
            if (group := self._behind(place, step)) is not None:
                for call in group.calls:
                    self.taken[call] = group
                    self.places[call] = place
                    self._deepest = max(self._deepest, self._depths[call])
                yield group
            self._deepest = max(self._deepest, self._depths[step])

    def _behind(self, place: int, first: Call | If) -> Group | None:
        """The group with this first call, if there is one."""
        if not isinstance(first, Call) or first in self.taken or not _is_operator(first):
            return None
        if not self._is_used_near(first) or self.functions.why_not(first):
            return None
        members = [first]
        seen = {first}
        waiting = list(self._calls_behind(first))
        while waiting and len(members) <= MOST_STEPS:
            waiting.sort(key=self.places.__getitem__)
            step = waiting.pop(0)
            if step in seen or not self._may_join(step, first, seen, place):
                continue
            seen.add(step)
            members.append(step)
            waiting += [each for each in self._calls_behind(step) if each not in seen]
        if not self.users[Part(first, 0)] <= seen:
            return None
        for last in reversed(members[1:]):
            calls = self._needed(last, members)
            if first in calls and self._is_closed(calls, last) and _is_no_wider(first, last):
                group = Group(tuple(calls))
                if self.functions.has_group(group, self.made):
                    return group
                self.lost.add(first)
        return None

    def _is_used_near(self, step: Call) -> bool:
        """Whether a group can contain all users of a result.

        Members of a long chain that do not exist before the group must be in it.
        """
        behind = list(self._calls_behind(step))
        if step in self.shown or not 0 < len(behind) == len(self.users[Part(step, 0)]):
            return False
        return all(self._depths[each] - self._deepest <= MOST_STEPS + 1 for each in behind)

    def _calls_behind(self, step: Call) -> Iterator[Call]:
        """Calls of operators in this block that use the result of a call."""
        for user in self.users.get(Part(step, 0), ()):
            if isinstance(user, Call) and user in self.inside and user not in self.taken:
                yield user

    def _may_join(self, step: Call, first: Call, members: Collection[Expr], place: int) -> bool:
        if not _is_operator(step) or not _same_shape(step, first) or (of := self._elements_of(step)) is None:
            return False
        whole = tuple(axis if extent != 1 else None for axis, extent in enumerate(first.shape))
        for arg, axes in zip(step.args, of.axes, strict=True):
            source = self._source(arg)
            if source in members:
                if axes != whole:
                    return False
            elif not self._is_there(source, place):
                return False
        return True

    @cached_method
    def _elements_of(self, step: Call) -> Elements | None:
        return elements_of(step)

    def _source(self, arg: Expr) -> Expr:
        (part,) = self.made.parts[arg]
        return part.step

    def _is_there(self, source: Expr, place: int) -> bool:
        """Whether a tensor exists before the step at a place."""
        return self.places.get(source, -1) < place

    def _needed(self, last: Call, members: list[Call]) -> list[Call]:
        """The members that a call depends on, in order."""
        needed: set[Expr] = {last}
        for call in reversed(members):
            if call in needed and call is not members[0]:
                needed.update(self._source(arg) for arg in call.args)
        return [call for call in members if call in needed]

    def _is_closed(self, calls: list[Call], last: Call) -> bool:
        """Whether the results of these calls, except the last one, are used by these calls alone."""
        within = frozenset(calls)
        others = {self._source(arg) for call in calls[1:] for arg in call.args} - within
        if len(others) > MOST_OPERANDS:
            return False
        return all(call is last or (call not in self.shown and self.users[Part(call, 0)] <= within) for call in calls)

    def alone(self, groups: Mapping[Call, Group]) -> Iterator[Alone]:
        """The elementwise calls that are not fused with a call before them."""
        behind = {call for group in groups.values() for call in group.calls[1:]}
        for step in self.steps:
            if (
                isinstance(step, Call)
                and _is_operator(step)
                and step not in behind
                and self._elements_of(step) is not None
            ):
                yield Alone(step, self._why(step))

    def _why(self, step: Call) -> str:
        """Why a call is not fused with its operands, judged by the one computed last."""
        sources = [self._source(arg) for arg in step.args]
        made = [each for each in sources if each in self.inside]
        if not made:
            return "nothing here makes its operands"
        before = max(made, key=self.places.__getitem__)
        name = f"`{called(before)}`"
        if not isinstance(before, Call) or not _is_operator(before):
            return f"{name} gives another view, several results, or those of a function"
        if before in self.shown:
            return f"{name} is asked for"
        if len(self.users[Part(before, 0)]) > 1:
            return f"{name} is used more than once"
        if not _same_shape(before, step):
            return f"{name} has another shape"
        if before in self.lost:
            return f"the extents of {name} do not tell which elements go together"
        return self.functions.why_not(before) or f"{name} comes before other operands, or is narrower"


def _is_operator(step: Call) -> bool:
    return isinstance(step.op, Op) and not step.is_view and isinstance(step.type, TensorType)


def _same_shape(a: Expr, b: Expr) -> bool:
    return len(a.shape) == len(b.shape) and all(map(is_equal, a.shape, b.shape))


def _is_no_wider(first: Call, last: Call) -> bool:
    """Whether the last result takes no more bytes than the first one, or than an operand whose place it may take."""
    if last.dtype.bytes <= first.dtype.bytes:
        return True
    if elements_of(first) is None:
        return False
    return all(
        isinstance(arg, Var | Constant) or (last.dtype.bytes <= arg.dtype.bytes and _same_shape(arg, last))
        for arg in first.args
    )


def called(step: Expr) -> str:
    """The name of a step in messages: its own, else that of its operator."""
    return (step.name or step.op.name) if isinstance(step, Call) else type(step).__name__
