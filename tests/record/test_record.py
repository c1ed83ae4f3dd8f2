"""`@record`: what a frozen dataclass with slots does, without its price at import."""

import copy
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from inspect import signature
from types import MappingProxyType
from typing import ClassVar

import pytest

import tirlite.record
from tirlite.record import Record, cached_method, record


@record
class Point:
    """A place."""

    x: int
    y: int = 0
    marks: list[str] = field(default_factory=list)
    name: str = field(default="", kw_only=True)


@record
class Checked:
    low: int
    high: int
    length: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", self.high - self.low)


@record(frozen=False, eq=False)
class Counter:
    count: int = 0


@record(eq=False)
class Thing:
    value: int


@record(slots=False)
class Kept:
    COUNT: ClassVar[int] = 7
    values: tuple[int, ...]
    notes: dict[str, int] = field(default_factory=dict, hash=False)
    origin: str = field(default="here", compare=False)

    @cached_property
    def total(self) -> int:
        return sum(self.values)


@record(guarded=False)
class Mark:
    place: int


def test_fields_are_parameters_in_order_with_their_defaults() -> None:
    point = Point(3, name="p")
    assert (point.x, point.y, point.marks, point.name) == (3, 0, [], "p")
    assert point.marks is not Point(3).marks
    assert [f.name for f in fields(Point)] == ["x", "y", "marks", "name"]


def test_missing_and_unknown_arguments_are_named() -> None:
    with pytest.raises(TypeError, match=r"Point\.__init__\(\) missing 1 required positional argument: 'x'"):
        Point()
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        Point(1, z=2)


def test_a_record_is_frozen_unless_told_otherwise() -> None:
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        Point(1).x = 2
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'x'"):
        del Point(1).x
    counter = Counter()
    counter.count += 1
    assert counter.count == 1


def test_one_without_guard_is_frozen_for_the_type_checker_alone() -> None:
    mark = Mark(1)
    mark.place = 2  # type: ignore[misc]
    assert (mark, hash(mark)) == (Mark(2), hash(Mark(2)))
    assert pickle.loads(pickle.dumps(mark)) == copy.copy(mark) == replace(Mark(1), place=2)


def test_there_is_no_room_for_other_attributes() -> None:
    with pytest.raises(AttributeError):
        Counter().other = 1


def test_equality_goes_by_fields_or_by_identity() -> None:
    assert Checked(1, 3) == Checked(1, 3) != Checked(1, 4)
    assert hash(Checked(1, 3)) == hash(Checked(1, 3))
    assert Checked(1, 3) != (1, 3, 2)
    thing = Thing(1)
    assert thing == thing != Thing(1)
    assert len({thing, Thing(1)}) == 2


def test_what_can_change_and_is_compared_by_value_has_no_hash() -> None:
    @record(frozen=False)
    class Loose:
        x: int

    with pytest.raises(TypeError, match="unhashable"):
        hash(Loose(1))


def test_what_the_class_defines_itself_stays() -> None:
    @record
    class Own:
        x: int

        def __repr__(self) -> str:
            return "own"

        def __hash__(self) -> int:
            return 7

    assert (repr(Own(1)), hash(Own(1)), Own(1) == Own(1)) == ("own", 7, True)


def test_a_subclass_takes_the_fields_of_its_base_first() -> None:
    @record
    class Named(Checked):
        name: str = "n"

    assert repr(Named(1, 3)).endswith("Named(low=1, high=3, length=2, name='n')")


def test_copies_pickles_and_replacements() -> None:
    point = Point(1, 2, ["m"], name="p")
    assert copy.copy(point) == copy.deepcopy(point) == point
    assert pickle.loads(pickle.dumps(point)) == point
    for each in (replace, tirlite.record.replace):
        assert each(point, y=5) == Point(1, 5, ["m"], name="p")
        with pytest.raises(TypeError, match="z"):
            each(point, z=5)


def test_records_match_by_position() -> None:
    match Point(1, 2):
        case Point(x, y):
            assert (x, y) == (1, 2)


def test_the_signature_is_told_before_the_first_object_is_made() -> None:
    @record
    class New:
        x: int
        y: int = 2

    assert str(signature(New)) == "(x, y=2)"
    assert str(signature(Point)) == "(x, y=0, marks=<new>, *, name='')"


def test_without_slots_there_is_room_for_what_is_computed_once() -> None:
    kept = Kept((1, 2))
    assert kept.total == 3
    assert vars(kept) == {"values": (1, 2), "notes": {}, "origin": "here", "total": 3}
    with pytest.raises(FrozenInstanceError):
        kept.values = ()
    other = pickle.loads(pickle.dumps(Kept((1, 2), MappingProxyType({"a": 1}))))
    assert other == Kept((1, 2), {"a": 1})
    assert (type(other.notes), vars(other).keys()) == (MappingProxyType, {"values", "notes", "origin"})
    assert [f.name for f in fields(kept)] == ["values", "notes", "origin"]


def test_a_field_can_stay_out_of_comparisons_and_out_of_the_hash() -> None:
    assert Kept((1,), {"a": 1}, "x") == Kept((1,), {"a": 1}, "y") != Kept((1,), {"a": 2})
    assert hash(Kept((1,), {"a": 1})) == hash(Kept((1,), {"a": 2}))


def test_others_take_a_record_for_a_dataclass() -> None:
    @dataclass(frozen=True)
    class Longer(Kept):
        more: int = 0

    assert is_dataclass(Point)
    assert is_dataclass(Kept)
    assert [f.name for f in fields(Longer)] == ["values", "notes", "origin", "more"]
    assert Longer((1,), more=2).more == 2
    assert fields(Point)[0].type is int


def test_what_derives_from_a_base_of_records_has_fields_of_its_own() -> None:
    class Base(Record):
        x: int = 1

    class Longer(Base):
        y: int = 2

    assert [f.name for f in fields(Base)] == ["x"]
    assert [(f.name, f.default) for f in fields(Longer)] == [("x", 1), ("y", 2)]
    assert replace(Longer(), y=3) == Longer(1, 3) != Longer()


def test_a_record_may_derive_from_a_base_of_records() -> None:
    class Base(Record):
        pass

    @record
    class Shown(Base):
        x: int
        y: int = 5

    assert repr(Shown(1)).endswith("Shown(x=1, y=5)")
    assert replace(Shown(1), y=2) == Shown(1, 2)
    assert [f.default for f in fields(Shown)][1] == 5


def test_the_first_objects_are_like_all_others() -> None:
    @record
    class Many:
        x: int
        y: int = 5
        marks: list[int] = field(default_factory=list)
        twice: int = field(init=False)
        name: str = field(default="n", kw_only=True)

        def __post_init__(self) -> None:
            object.__setattr__(self, "twice", 2 * self.x)

    made = [Many(1, y=2, name="m") for _ in range(100)]
    assert len(set(map(repr, made))) == 1
    assert made[0] == made[-1]
    assert made[0].marks is not made[1].marks
    assert (made[0].twice, made[-1].twice) == (2, 2)


@pytest.mark.parametrize("given", [((1, 2, [], "n"), {}), ((1,), {"x": 2}), ((), {"y": 2}), ((1,), {"at": 0})])
def test_the_first_object_may_be_refused(given: tuple[tuple[object, ...], dict[str, object]]) -> None:
    @record
    class New:
        x: int
        y: int = 0
        marks: list[int] = field(default_factory=list)
        name: str = field(default="", kw_only=True)
        at: int = field(default=0, init=False)

    with pytest.raises(TypeError, match=r"New\.__init__\(\)"):
        New(*given[0], **given[1])
    assert New(3).x == 3


def test_a_method_computes_its_result_once_for_each_argument_of_each_object() -> None:
    asked: list[int] = []

    class Squares:
        @cached_method
        def of(self, number: int) -> int | None:
            asked.append(number)
            return number * number or None

    class Negated(Squares):
        @cached_method
        def of(self, number: int) -> int | None:
            return -(super().of(number) or 0)

    squares = Squares()
    assert [squares.of(3), squares.of(0), squares.of(3), squares.of(0)] == [9, None, 9, None]
    assert asked == [3, 0]
    assert (Squares().of(3), Negated().of(3)) == (9, -9)
    assert asked == [3, 0, 3, 3]
