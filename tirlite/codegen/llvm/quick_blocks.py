"""Writes what repeats in the LLVM text of quick calls: loads from records, and calls with each number of operands.

Integers and addresses go to a kernel in other registers than floats, or behind each other on the stack. So one kind of
call serves kernels that take these in any order: all words, then as many floats as there are registers for them.
"""

from __future__ import annotations

import re

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


def cases(name: str) -> str:
    """Where a `switch` goes for each number of operands."""
    return " ".join(f"i64 {count}, label %{name}{count}" for count in range(1, MOST_OPERANDS + 1))


def results(name: str) -> str:
    """What a `phi` takes behind the calls."""
    return ", ".join(f"[%{name}{count}.result, %{name}{count}]" for count in range(1, MOST_OPERANDS + 1))


def calls(name: str, function: str, operands: str, then: str) -> str:
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
