"""Instructions in, the text of an LLVM function out."""

from __future__ import annotations

import re
from itertools import count

from tirlite.codegen.types import register_type, suffix
from tirlite.ir import DType


class ModuleText:
    """What the functions of a module share: declarations, metadata, and the numbers of values and blocks."""

    def __init__(self) -> None:
        self.declarations: dict[str, str] = {}  # name -> its `declare` line
        self.functions: list[str] = []
        self.inlined: dict[str, str] = {}  # name -> a function of a formula, which others call
        self.tables: dict[str, tuple[str, str]] = {}  # elements -> name, definition
        self.kept: list[str] = []  # functions of which LLVM must not know all callers
        self.metadata: list[str] = []
        self.values = count(1)
        self.blocks = count(1)

    def node(self, *parts: str, distinct: bool = False) -> str:
        """The name of a new metadata node; a distinct one, equal to no other, has itself as its first part."""
        name = f"!{len(self.metadata)}"
        inside = ", ".join((name, *parts) if distinct else parts)
        self.metadata.append(f"{name} = {'distinct ' if distinct else ''}!{{{inside}}}")
        return name

    def table(self, elements: str, count: int) -> str:
        """The name of a constant array of so many f64, given with their types."""
        if elements not in self.tables:
            name = f"@tirlite.table{len(self.tables)}"
            line = f"{name} = private unnamed_addr constant [{count} x double] [{elements}], align 64"
            self.tables[elements] = (name, line)
        return self.tables[elements][0]

    def text(self, name: str) -> str:
        """The whole module."""
        parts = [f'source_filename = "{name}"', *self.functions, *self.inlined.values(), *self.declarations.values()]
        if self.kept:
            names = ", ".join(f"ptr @{name}" for name in self.kept)
            used = f"appending global [{len(self.kept)} x ptr] [{names}]"
            parts.append(f'@llvm.compiler.used = {used}, section "llvm.metadata"')
        parts += [*(line for _, line in self.tables.values()), *self.metadata]
        return "\n".join(parts) + "\n"


class FunctionText:
    """A function that is being written: its allocas, its instructions so far, and the block that they go to."""

    def __init__(self, module: ModuleText) -> None:
        self.module = module
        self.allocas: list[str] = []
        self.lines: list[str] = []
        self.inlined_lines = 0  # of functions that will be inlined into it
        self.block = "entry"
        self.conditions = 0  # that are open around what is being written

    def value(self, instruction: str) -> str:
        """The name of the result of `instruction`, which is written down."""
        name = f"%v{next(self.module.values)}"
        self.lines.append(f"  {name} = {instruction}")
        return name

    def name(self) -> str:
        """A name for a value that is written later."""
        return f"%v{next(self.module.values)}"

    def effect(self, instruction: str) -> None:
        self.lines.append(f"  {instruction}")

    def label(self, hint: str) -> str:
        """The name of a new block."""
        return f"{hint}{next(self.module.blocks)}"

    def start(self, label: str) -> None:
        """What follows goes to the block `label`; the one before has been ended by a branch."""
        self.lines.append(f"{label}:")
        self.block = label

    def branch(self, label: str) -> None:
        self.lines.append(f"  br label %{label}")

    def branch_if(self, condition: str, then: str, otherwise: str, note: str = "") -> None:
        self.lines.append(f"  br i1 {condition}, label %{then}, label %{otherwise}{note}")

    def phi(self, dtype: DType, *incoming: tuple[str, str]) -> str:
        """The value of the block that control came from; `incoming` are values and labels."""
        pairs = ", ".join(f"[ {value}, %{label} ]" for value, label in incoming)
        return self.value(f"phi {register_type(dtype)} {pairs}")

    def call(self, result: str, name: str, *operands: str) -> str:
        """The result of a call; operands come with their types, and the declaration follows from them."""
        self.declare(result, name, operands)
        return self.value(f"call {result} @{name}({', '.join(operands)})")

    def intrinsic(self, name: str, dtype: DType, *operands: str) -> str:
        """`llvm.NAME` on operands that all have the result's type, given without it."""
        kind = register_type(dtype)
        return self.call(kind, f"llvm.{name}.{suffix(dtype)}", *(f"{kind} {operand}" for operand in operands))

    def declare(self, result: str, name: str, operands: tuple[str, ...]) -> None:
        if name not in self.module.declarations:
            kinds = ", ".join(_type_of(operand) for operand in operands)
            self.module.declarations[name] = f"declare {result} @{name}({kinds})"

    def alloca(self, size: int, align: int) -> str:
        """The address of `size` bytes on the stack, which live as long as the function runs."""
        name = self.name()
        self.allocas.append(f"  {name} = alloca [{size} x i8], align {align}")
        return name

    def loop_metadata(self, *properties: str) -> str:
        """The end of a loop's branch instruction, which says how the loop is meant."""
        return f", !llvm.loop {self.module.node(*properties, distinct=True)}"

    def mentioned(self) -> dict[str, None]:
        """All names of values and blocks in the text, in order."""
        return dict.fromkeys(re.findall(r"%\w+", "\n".join(self.lines)))

    def define(self, signature: str) -> None:
        """Ends the function and adds it to the module."""
        self.module.functions.append(self.definition(signature))

    def definition(self, signature: str) -> str:
        """The text of the function."""
        return "\n".join([f"define {signature} {{", "entry:", *self.allocas, *self.lines, "}"])


def _type_of(operand: str) -> str:
    """The type in front of an operand: `<4 x i32> %v1` gives `<4 x i32>`."""
    if operand.startswith("<"):
        return operand[: operand.index(">") + 1]
    return operand.split(" ", 1)[0]
