"""Divides the touches of one allocation into its webs: groups between which no value goes.

A web is a set of writes and all the reads that may see what they wrote. A statement that overwrites the whole buffer
before it reads any of it begins a new one, as do a few in a row that do so together. Both branches of an `if` may go on
with a web, or begin others; what is read after it joins them. A web that a loop carries from one iteration to the next
joins the end of its body to the begin.
Source of the idea: the webs of register allocation (Muchnick, Advanced Compiler Design, 16.3.3), here of whole arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from tirlite.analysis.access import Allocation, Region, Touch
from tirlite.analysis.coverage.overwrites import MOST_TOGETHER, CallCoverage
from tirlite.analysis.facts import Facts
from tirlite.analysis.regions import by_statement, child_of, path_to
from tirlite.groups import by_key
from tirlite.ir import Buffer, For, ForKind, IfThenElse, Node, Steps, While, run
from tirlite.record import record

# What may be in the buffer: values of these webs. Nothing was written where it is empty.
_State = frozenset[int]
_ORDERED = (ForKind.SERIAL, ForKind.UNROLLED)


@record(frozen=False, eq=False)
class Web:
    """Some touches of an allocation, in program order, and the innermost body in which all of it can be allocated."""

    home: Region
    touches: list[Touch] = field(default_factory=list)


def webs_of(
    allocation: Allocation, facts: Facts, views: Mapping[Buffer, Buffer], calls: CallCoverage | None = None
) -> list[Web]:
    """The webs of an allocation in order of their first touch; touches that no web can tell apart are of one.

    `views` gives for each view of it the one that is made of the allocation itself: what is touched through that is of
    one web, and with views all webs stay in the body of the allocation. It is neither volatile nor is its address
    handed on. `calls` keeps what is known of functions from one allocation to the next.
    """
    return _Finder(allocation, facts, views, calls or CallCoverage(facts)).find()


class _Finder:
    """One walk over the touches, body by body, with the webs as disjoint sets of numbers."""

    def __init__(
        self, allocation: Allocation, facts: Facts, views: Mapping[Buffer, Buffer], calls: CallCoverage
    ) -> None:
        self.allocation = allocation
        self.space = facts.space
        self.views = views
        self.calls = calls
        self.parents: list[int] = []
        self.is_used: list[bool] = []  # of each set, by its root: whether anything was touched
        self.web_of_touch: list[tuple[Touch, int]] = []
        self.web_of_node: dict[Node, int] = {}
        self.web_of_view: dict[Buffer, int] = {}
        self.carried: dict[Region, int] = {}

    def find(self) -> list[Web]:
        run(self.body(self.allocation.home, self.allocation.touches, frozenset()))
        webs = by_key((self.root(number), touch) for touch, number in self.web_of_touch)
        return [Web(self.home(number, touches), touches) for number, touches in webs.items()]

    def body(self, region: Region, touches: Sequence[Touch], state: _State) -> Steps[_State]:
        """What may be in the buffer after `region`, entered with `state`, of which `touches` are all touches."""
        groups, at = list(by_statement(region, touches)), 0
        while at < len(groups):
            ahead = groups[at : at + MOST_TOGETHER]
            fresh = self.calls.count_that_overwrite(ahead, region, self.allocation.buffer, self.space)
            if fresh:
                state = frozenset((self.new(),))
                self.touch([touch for group in groups[at : at + fresh] for touch in group], state)
                at += fresh
                continue
            group = groups[at]
            at += 1
            inner = child_of(region, group[0].region)
            if inner is None:
                state = self.touch(group, state)
            elif isinstance(inner.composite, IfThenElse):
                state = yield self.branches(region, group, state)
            elif _is_serial(inner):
                state = yield self.loop(inner, group, state)
            else:
                state = self.touch(group, state)
        return state

    def branches(self, around: Region, touches: Sequence[Touch], state: _State) -> Steps[_State]:
        split: dict[Region, list[Touch]] = {}
        for touch in touches:
            branch = child_of(around, touch.region)
            assert branch is not None
            split.setdefault(branch, []).append(touch)
        after = state if len(split) < 2 else frozenset[int]()
        for branch, inside in split.items():
            left: _State = yield self.body(branch, inside, state)
            after |= left
        return after

    def loop(self, region: Region, touches: Sequence[Touch], state: _State) -> Steps[_State]:
        entry = self.new()
        end: _State = yield self.body(region, touches, frozenset((entry,)))
        if self.is_used[self.root(entry)]:
            self.carried[region] = entry
            return frozenset((self.join((entry, *sorted(state), *sorted(end))),))
        return state | end - {entry}

    def touch(self, touches: Sequence[Touch], state: _State) -> _State:
        """Make the touches of one web, with all of `state`."""
        web = self.join(sorted(state)) if state else self.new()
        self.is_used[web] = True
        for touch in touches:
            web = self.join((web, *self.known(touch)))
            self.web_of_touch.append((touch, web))
            self.web_of_node[touch.node] = web
        return frozenset((web,))

    def known(self, touch: Touch) -> Iterator[int]:
        """The webs that a touch is of for other reasons: its node stands elsewhere too, it goes through a view."""
        if touch.node in self.web_of_node:
            yield self.web_of_node[touch.node]
        view = self.views.get(touch.buffer)
        if view is not None:
            if view not in self.web_of_view:
                self.web_of_view[view] = self.new()
            yield self.web_of_view[view]

    def home(self, number: int, touches: Sequence[Touch]) -> Region:
        """The innermost body that holds all touches, and from which nothing is carried into its next run."""
        home = self.allocation.home
        if self.views:
            return home
        paths = [path_to(touch.region, home) for touch in touches]
        for place in zip(*paths, strict=False):
            inner = place[0]
            if any(other is not inner for other in place) or not self.may_hold(inner, number):
                break
            home = inner
        return home

    def may_hold(self, region: Region, number: int) -> bool:
        if isinstance(region.composite, IfThenElse):
            return True
        entry = self.carried.get(region)
        return _is_serial(region) and (entry is None or self.root(entry) != number)

    def new(self) -> int:
        self.parents.append(len(self.parents))
        self.is_used.append(False)
        return len(self.parents) - 1

    def root(self, number: int) -> int:
        while self.parents[number] != number:
            self.parents[number] = self.parents[self.parents[number]]
            number = self.parents[number]
        return number

    def join(self, numbers: Sequence[int]) -> int:
        roots = [self.root(number) for number in numbers]
        for other in roots[1:]:
            self.parents[other] = roots[0]
            self.is_used[roots[0]] |= self.is_used[other]
        return roots[0]


def _is_serial(region: Region) -> bool:
    composite = region.composite
    return isinstance(composite, While) or (isinstance(composite, For) and composite.kind in _ORDERED)
