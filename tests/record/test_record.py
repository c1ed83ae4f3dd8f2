"""`@record`: what a frozen dataclass with slots does, without its price at import."""

import copy
import pickle
from dataclasses import FrozenInstanceError, field, fields, replace
from inspect import signature

import pytest

from tirlite.record import record


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
    assert replace(point, y=5) == Point(1, 5, ["m"], name="p")


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
