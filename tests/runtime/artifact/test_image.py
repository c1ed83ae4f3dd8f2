"""Images of machine code: what they are made of, what is refused, and how they run without what made them."""

from __future__ import annotations

import ctypes
import os
from dataclasses import replace
from pathlib import Path

import pytest

import tirlite as tl
from tirlite.codegen import compile_text
from tirlite.runtime.artifact.build import Unlinkable, linked
from tirlite.runtime.artifact.image import PAGE, Damaged, Image, Slot, Symbol
from tirlite.runtime.artifact.line_table import Stretch
from tirlite.runtime.artifact.load import loaded

COUNTER = """
@count = internal global i64 41
@zeros = internal global [9000 x i8] zeroinitializer
@table = private unnamed_addr constant [2 x ptr] [ptr @first, ptr @second]
@words = private unnamed_addr constant [4 x i64] [i64 5, i64 6, i64 7, i64 8]
declare double @hypot(double, double)

define internal i64 @first() { ret i64 100 }
define internal i64 @second() { ret i64 200 }

define i64 @next() {
  %old = load i64, ptr @count
  %new = add i64 %old, 1
  store i64 %new, ptr @count
  ret i64 %new
}

define i64 @zero(i64 %at) {
  %place = getelementptr i8, ptr @zeros, i64 %at
  %byte = load i8, ptr %place
  store i8 1, ptr %place
  %wide = zext i8 %byte to i64
  ret i64 %wide
}

define i64 @word(i64 %at) {
  %place = getelementptr i64, ptr @words, i64 %at
  %word = load i64, ptr %place
  ret i64 %word
}

define i64 @through_table(i64 %at) {
  %place = getelementptr ptr, ptr @table, i64 %at
  %function = load ptr, ptr %place
  %result = call i64 %function()
  ret i64 %result
}

define i64 @longest(double %x, double %y) {
  %z = call double @hypot(double %x, double %y)
  %result = fptosi double %z to i64
  ret i64 %result
}

define i64 @address_of_hypot() {
  %address = ptrtoint ptr @hypot to i64
  ret i64 %address
}
"""


@pytest.fixture(scope="module")
def image() -> Image:
    return linked([compile_text(COUNTER)])


def test_code_reads_constants_writes_data_and_calls_what_is_outside(image: Image) -> None:
    library = loaded(image, {})
    assert library.function("next", "")() == 42
    assert library.function("next", "")() == 43
    assert [library.function("zero", "q")(at) for at in (0, 8999, 8999)] == [0, 0, 1]
    assert library.function("word", "q")(2) == 7
    assert [library.function("through_table", "q")(at) for at in (0, 1)] == [100, 200]
    assert library.function("longest", "dd")(3.0, 4.0) == 5


def test_each_load_has_data_of_its_own(image: Image) -> None:
    libraries = [loaded(image, {}) for _ in range(2)]
    assert [library.function("next", "")() for library in libraries] == [42, 42]


def test_the_address_of_a_function_is_the_one_that_all_see(image: Image) -> None:
    address = ctypes.cast(ctypes.CDLL(None).hypot, ctypes.c_void_p).value
    found, told = loaded(image, {}), loaded(image, {"hypot": 5})
    assert found.function("address_of_hypot", "")() == address
    assert told.function("address_of_hypot", "")() == 5


def test_a_missing_function_is_named(image: Image) -> None:
    slots = tuple(Slot(slot.offset, slot.symbol and "no_such", slot.addend) for slot in image.slots)
    with pytest.raises(tl.KernelError, match="`no_such` is not in this process"):
        loaded(Image(image.code, image.data, image.data_bytes, slots, image.symbols), {})


def test_an_image_is_the_same_after_it_was_plain_data(image: Image) -> None:
    assert Image.of_plain(image.plain()) == image
    assert len(image.data) < PAGE < image.data_bytes  # zeros at the end are not kept


@pytest.mark.parametrize(
    "wrong",
    [
        (b"", b"", -1, (), ()),
        (b"", b"ab", 1, (), ()),
        (b"", b"", 1 << 40, (), ()),
        (bytearray(4), b"", 0, (), ()),
        (bytes(16), b"", 0, ((PAGE - 7, "f", 0),), ()),
        (bytes(16), b"", 0, ((-8, "f", 0),), ()),
        (bytes(16), b"", 0, ((0, "", 1 << 20),), ()),
        (bytes(16), b"", 0, (), (("f", 17, 0),)),
        (bytes(16), b"", 0, (), (("f", 0, -1),)),
        (bytes(16), b"", 0, (), ((b"f", 0, 1),)),
        (bytes(16), b""),
        None,
        "text",
    ],
    ids=str,
)
def test_plain_data_that_is_no_image_is_damaged(wrong: object) -> None:
    with pytest.raises(Damaged):
        Image.of_plain(wrong)


@pytest.mark.parametrize(
    "data", [b"", b"MZ" + bytes(100), b"\x7fELF\x02\x01" + bytes(100)], ids=["none", "other", "no"]
)
def test_files_of_another_kind_have_no_image(data: bytes) -> None:
    with pytest.raises(Unlinkable):
        linked([data])


def test_symbols_are_the_functions_and_lie_in_the_code(image: Image) -> None:
    assert {"next", "word", "first"} <= {symbol.name for symbol in image.symbols}
    assert all(isinstance(symbol, Symbol) and 0 < symbol.size for symbol in image.symbols)
    assert image.offset("word") % 16 == 0


def test_perf_is_told_where_functions_lie(image: Image, monkeypatch: pytest.MonkeyPatch) -> None:
    told = Path(f"/tmp/perf-{os.getpid()}.map")
    monkeypatch.setenv("TIRLITE_PERF", "1")
    library = loaded(image, {})
    lines = [line.split() for line in told.read_text().splitlines()]
    told.unlink()
    (word,) = ([int(at, 16), int(size, 16)] for at, size, name in lines if name == "word")
    assert word[0] == library.address("word")
    assert word[1] > 0


def test_perf_is_told_lines_where_they_are_known(image: Image, monkeypatch: pytest.MonkeyPatch) -> None:
    told = Path(f"/tmp/perf-{os.getpid()}.map")
    monkeypatch.setenv("TIRLITE_PERF", "lines")
    word = next(each for each in image.symbols if each.name == "word")
    start, end = word.offset, word.offset + word.size
    parts = (Stretch(start + 1, start + 3, "/a/b.py", 7), Stretch(start + 3, end, "/a/b.py", 8))
    base = loaded(replace(image, lines=parts), {}).address("word") - start
    lines = [line.split() for line in told.read_text().splitlines()]
    told.unlink()
    found = [(int(at, 16) - base, int(size, 16), name) for at, size, name in lines if name.startswith("word")]
    assert found == [(start, 1, "word"), (start + 1, 2, "word@b.py:7"), (start + 3, end - start - 3, "word@b.py:8")]
