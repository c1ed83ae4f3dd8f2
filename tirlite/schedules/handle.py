"""Finds the loops and buffers of a function that the steps of a schedule name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tirlite.diag import Message, nearest
from tirlite.ir import Allocate, Buffer, For, PrimFunc, SeqStmt, Stmt, Var, View, statements, walk
from tirlite.ir.printer_names import identifier
from tirlite.ir.walk import composites
from tirlite.record import record


class NoLoop(Message):
    """A step of a schedule names a loop that the function does not have.

    Example: `s.split("k", 64)`, where the loop is called `p`.
    Fix: Take one of the names that the message lists; steps name what they make, as `p.outer` and `p.inner`.
    """

    title = "there is no loop `{name}`{hint}"
    help = "the loops are {known}{step}"

    step: str = ""


class SeveralLoops(Message):
    """A step of a schedule names a loop by a name that several loops have.

    Example: `s.split("i", 64)` of a function with two nests over `i`.
    Fix: Give its place among them, as in `s.loop("i", 1)`, or a loop around it, as in `s.loop("t/i")`.
    """

    title = "there are {count} loops `{name}`"
    help = 'give a place, from s.loop("{name}", 0) on, or a loop around it, as in "{name}/j"{step}'

    step: str = ""


class NoBuffer(Message):
    """A step of a schedule names a buffer that the function does not have.

    Example: `s.pack("bb", at="i", axes=["j"])`, where the buffer is called `b`.
    Fix: Take one of the names that the message lists.
    """

    title = "there is no buffer `{name}`{hint}"
    help = "the buffers are {known}{step}"

    step: str = ""


class SeveralBuffers(Message):
    """A step of a schedule names a temporary by a name that several have, and does not tell which one by its loop.

    Example: `s.inline("rows")` of a function that allocates `rows` in two places.
    Fix: Give its place among them, as in `s.buffer("rows", 1)`, or other names to them in the kernel.
    """

    title = "there are {count} buffers `{name}`"
    help = 'give a place, from s.buffer("{name}", 0) on{step}'

    step: str = ""


# What names in steps cannot be: `step` tells which step it was.
NAMES_NOTHING = (NoLoop, SeveralLoops, NoBuffer, SeveralBuffers)


@record
class LoopHandle:
    """A loop, by its name or by a path of enclosing loops' names, as `i/j`.

    `place` picks one of several that match, in program order; None requires that there is exactly one.
    """

    path: str
    place: int | None = None

    def __str__(self) -> str:
        return repr(self.path) if self.place is None else f"s.loop({self.path!r}, {self.place})"


@record
class BufferHandle:
    """A buffer, by its name and its `place` among the buffers of that name, in program order."""

    name: str
    place: int

    def __str__(self) -> str:
        return f"s.buffer({self.name!r}, {self.place})"


# How the methods of a schedule name a loop or a buffer.
LoopName = str | LoopHandle
BufferName = str | BufferHandle


def handle_of(name: LoopName) -> LoopHandle:
    """The handle that a name stands for."""
    return LoopHandle(name) if isinstance(name, str) else name


def name_of_loop(loops: Iterable[For], var: Var) -> LoopName:
    """How a step names the one of these loops over `var`: by its name, with a place if others have the same."""
    alike = [loop.var for loop in loops if identifier(loop.var.name) == identifier(var.name)]
    return var.name if len(alike) == 1 else LoopHandle(var.name, alike.index(var))


def loops_around(func: PrimFunc) -> Iterator[tuple[For, tuple[For, ...]]]:
    """Each loop with its enclosing loops, outermost first, in program order."""
    stack: list[tuple[Stmt, tuple[For, ...]]] = [(func.body, ())]
    while stack:
        stmt, around = stack.pop()
        if isinstance(stmt, SeqStmt):
            stack += [(each, around) for each in composites(stmt)[::-1]]
        elif isinstance(stmt, For):
            yield stmt, around
            stack.append((stmt.body, (*around, stmt)))
        else:
            stack += ((body, around) for body in stmt.bodies[::-1])


def loop_named(func: PrimFunc, name: LoopName) -> For:
    """The loop that a handle names. Raises KernelError if there is none, or several."""
    return chain_to(func, name)[-1]


def chain_to(func: PrimFunc, name: LoopName) -> tuple[For, ...]:
    """The loops around the one that a handle names, and that loop. Raises KernelError if there is none, or several."""
    handle = handle_of(name)
    *outer, last = map(identifier, handle.path.split("/"))
    every = [*loops_around(func)]
    found = [
        (*around, loop)
        for loop, around in every
        if identifier(loop.var.name) == last and _are_within(outer, [identifier(each.var.name) for each in around])
    ]
    if handle.place is None and len(found) > 1:
        raise SeveralLoops(len(found), handle.path).error()
    place = handle.place or 0
    if not 0 <= place < len(found):
        names = [*dict.fromkeys(loop.var.name for loop, _ in every)]
        near = nearest(handle.path, names)
        hint = f" at place {place}" if found else f"; did you mean {near}?" if near else ""
        raise NoLoop(handle.path, hint, ", ".join(f"`{each}`" for each in names) or "none").error()
    return found[place]


def _are_within(path: list[str], names: list[str]) -> bool:
    """Whether `names` contains the names of `path` in this order, with others in between or not."""
    rest = iter(names)
    return all(name in rest for name in path)


def block_of(func: PrimFunc, stmt: Stmt) -> SeqStmt:
    """The first block that contains a statement."""
    bodies = (body for each in statements(func.body) for body in each.bodies)
    return next(block for block in (func.body, *bodies) if stmt in block.stmts)


def buffer_named(func: PrimFunc, name: BufferName, at: For | None = None) -> Buffer:
    """The parameter, allocation or view of this name. Raises KernelError if there is none, or several.

    Among several, a parameter has precedence, then the only one that the loop `at` uses and does not declare.
    """
    place, name = (name.place, name.name) if isinstance(name, BufferHandle) else (None, name)
    buffers = _buffers(func)
    alike = [each for each in buffers if identifier(each.name) == identifier(name)]
    if len(alike) > 1 and place is None and alike[0] not in func.params:
        used = {getattr(node, each) for node in walk(at.body) for each in node.USES} if at else set[object]()
        own = (
            {stmt.buffer for stmt in statements(at.body) if isinstance(stmt, Allocate | View)} if at else set[Buffer]()
        )
        meant = [each for each in alike if each in used and each not in own]
        if len(meant) != 1:
            raise SeveralBuffers(len(alike), name).error()
        return meant[0]
    if not 0 <= (place or 0) < len(alike):
        known = ", ".join(f"`{each.name}`" for each in buffers)
        raise NoBuffer(name, f" at place {place}" if alike else "", known or "none").error()
    return alike[place or 0]


def name_of(func: PrimFunc, buffer: Buffer) -> BufferName:
    """How a step names a buffer: by its name alone, or by a handle if that name would mean another buffer."""
    alike = [each for each in _buffers(func) if identifier(each.name) == identifier(buffer.name)]
    is_plain = len(alike) < 2 or buffer not in alike or buffer in func.params
    return buffer.name if is_plain else BufferHandle(buffer.name, alike.index(buffer))


def _buffers(func: PrimFunc) -> list[Buffer]:
    """The parameters, allocations and views, in program order."""
    buffers = func.arrays
    return [*buffers, *(stmt.buffer for stmt in statements(func.body) if isinstance(stmt, Allocate | View))]
