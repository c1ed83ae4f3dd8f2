"""Writes the part of a quick call's LLVM text that runs kernels, with calls for each number of operands.

Integers and addresses go to a kernel in other registers than floats, or behind each other on the stack. So one kind of
call serves kernels that take these in any order: all words, then as many floats as there are registers for them.
"""

from __future__ import annotations

import re

from tirlite.target.convention import VERSIONS

MOST_OPERANDS = 16  # strides, arrays, numbers and dims of a kernel together
MOST_REALS = 8  # of these may be floats, besides
# How the text says that something is loaded from so many units behind a pointer: `load i64, word 2 of %p`.
_LOAD_OF = re.compile(r"  (\S+) = load (\S+), (word|byte|pointer) (\S+) of (\S+)")
_UNITS = {"word": "i64", "byte": "i8", "pointer": "ptr"}


def with_addresses(text: str) -> str:
    """The text with what is short in it written out."""
    return _LOAD_OF.sub(_load_of, text)


def _load_of(short: re.Match[str]) -> str:
    """`%x = load i64, word 2 of %p` in two instructions, the first of which gives the address."""
    name, dtype, unit, number, start = short.groups()
    address = f"  {name}.at = getelementptr {_UNITS[unit]}, ptr {start}, i64 {number}"
    return f"{address}\n  {name} = load {dtype}, ptr {name}.at"


def run_text(words: int) -> str:
    """The blocks that run the version in `%served` on operands that have been checked, and then others that take them.

    `words` is where the words of a bytes object begin.
    """
    return _RUN.format(
        words=words,
        versions=VERSIONS,
        call_cases=_cases("call"),
        calls=_calls("call", "%kernel", "%operands", "ran"),
        faults=_results("call"),
        size_cases=_cases("size"),
        size_calls=_calls("size", "%size.function", "%numbers", "measured"),
        sizes=_results("size"),
    )


def _cases(name: str) -> str:
    """Where a `switch` goes for each number of operands."""
    return " ".join(f"i64 {count}, label %{name}{count}" for count in range(1, MOST_OPERANDS + 1))


def _results(name: str) -> str:
    """What a `phi` takes behind the calls."""
    return ", ".join(f"[%{name}{count}.result, %{name}{count}]" for count in range(1, MOST_OPERANDS + 1))


def _calls(name: str, function: str, operands: str, then: str) -> str:
    """The blocks that call a function with each number of operands, from where these lie."""
    return "".join(_call(f"{name}{count}", count, function, operands, then) for count in range(1, MOST_OPERANDS + 1))


def _call(name: str, count: int, function: str, operands: str, then: str) -> str:
    lines = [f"{name}:"]
    for number in range(count):
        lines.append(f"  %{name}.at{number} = getelementptr i64, ptr {operands}, i64 {number}")
        lines.append(f"  %{name}.{number} = load i64, ptr %{name}.at{number}")
    given = ", ".join(
        [f"i64 %{name}.{number}" for number in range(count)] + [f"double %real.{k}" for k in range(MOST_REALS)]
    )
    return "\n".join([*lines, f"  %{name}.result = call i64 {function}({given})", f"  br label %{then}", ""])


_RUN = """\
serve:
  %running = load ptr, ptr %served
  %kernel = load ptr, word 2 of %running
  %record = load ptr, word 7 of %running
  %size.function = load ptr, word 8 of %running
  %needs.block = icmp ne ptr %record, null
  br i1 %needs.block, label %measure, label %run

measure:
  %is.known = icmp eq ptr %size.function, null
  br i1 %is.known, label %known.size, label %ask.size

known.size:
  %bytes = load i64, word 9 of %running
  br label %measured

ask.size:
  switch i64 %size.operands, label %give.up [{size_cases}]

{size_calls}
measured:
  %wanted.bytes = phi i64 [%bytes, %known.size], {sizes}
  %room = load i64, word 2 of %record
  %has.room = icmp ule i64 %wanted.bytes, %room
  br i1 %has.room, label %take, label %give.up

take:
  %taking = cmpxchg ptr %record, i64 0, i64 1 acquire monotonic
  %is.mine = extractvalue {{i64, i1}} %taking, 1
  br i1 %is.mine, label %taken, label %give.up

taken:
  %block = load i64, word 1 of %record
  %last.at = getelementptr i64, ptr %operands, i64 %total
  store i64 %block, ptr %last.at
  %total.more = add i64 %total, 1
  br label %run

run:
  %all = phi i64 [%total, %serve], [%total.more, %taken]
  switch i64 %all, label %impossible [{call_cases}]

{calls}
ran:
  %fault = phi i64 {faults}
  br i1 %needs.block, label %give.back, label %back

give.back:
  store atomic i64 0, ptr %record release, align 8
  br label %back

back:
  %is.fine = icmp eq i64 %fault, 0
  br i1 %is.fine, label %done, label %stopped

stopped:
  %elsewhere = load i64, word 13 of %running
  %is.elsewhere = icmp eq i64 %fault, %elsewhere
  br i1 %is.elsewhere, label %for.another, label %tell

for.another:
  %takes.same = load i64, word 16 of %running
  %is.checked = icmp ne i64 %takes.same, 0
  br i1 %is.checked, label %another, label %give.up

another:
  %other.object = load ptr, word 12 of %running
  %other.spec = getelementptr i8, ptr %other.object, i64 {words}
  store ptr %other.spec, ptr %served
  br label %serve

give.up:
  call void @PyEval_RestoreThread(ptr %thread)
  br label %refuse

tell:
  call void @PyEval_RestoreThread(ptr %thread)
  %number = load i64, word 14 of %running
  %faults = mul i64 %fault, {versions}
  %told.number = add i64 %faults, %number
  %told = call ptr @PyLong_FromLongLong(i64 %told.number)
  ret ptr %told

done:
  call void @PyEval_RestoreThread(ptr %thread)
  %none = load ptr, word 5 of %running
  call void @Py_IncRef(ptr %none)
  ret ptr %none
"""
