"""Rules for single statements; each returns a message or None."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tirlite.diag import Message, hint
from tirlite.ir.dtype import bool_, i64
from tirlite.ir.expr import Buffer, IntImm, access_type
from tirlite.ir.node import Node
from tirlite.ir.shapes import constant_bytes
from tirlite.ir.stmt import (
    PAYLOADS,
    THREAD_TAGS,
    Assert,
    AttrKey,
    AttrStmt,
    AttrValue,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    Let,
    Permission,
    SeqStmt,
    Store,
    View,
    While,
)
from tirlite.ir.validate_types import ACCESS, Rule, let_type, no_stray_argument
from tirlite.ir.walk import is_constant
from tirlite.show import shown


class StoreType(Message):
    """A value is stored to elements of another type.

    Example: `Store(y, (i,), IntImm(i64, 1))`, where `y` holds f32.
    """

    title = "a value of type {dtype} is stored to {wanted} of `{name}`"
    help = "cast the value"


class ConditionType(Message):
    """A condition is not a scalar bool.

    Example: `IfThenElse(count, ...)` of an i64.
    Fix: Compare with something: `NE(count, zero)`.
    """

    title = "the condition of {kind} has the type {dtype}"
    help = "a condition is a scalar bool: compare with something"


class AssertPlaces(Message):
    """The message of an Assert does not have one place `{}` for each of its values, or a value is not a number.

    Example: `Assert(condition, "at {}", (i, j))`.
    """

    title = "the message of an assert does not have one place for each of its {count} values"
    help = "write `{{}}` once for each value, which is a number; double all other braces"


class LoopType(Message):
    """The variable or a bound of a loop is not an i64.

    Example: `For(Var("i", i32), ...)`.
    Fix: Make it i64, and cast where another type is needed.
    """

    title = "{part} of loop `{name}` has the type {dtype}"
    help = "loops count in i64"


class LoopStep(Message):
    """The step of a loop is zero, or does not fit into an i64.

    Example: `For(i, zero, n, body, step=0)`.
    Fix: Give another step.
    """

    title = "loop `{name}` has the step {step}"
    help = "a step is an integer that i64 holds, other than 0"


class ThreadLoop(Message):
    """A thread-bound loop has a start, a step or a tag that it cannot have.

    Example: `For(i, one, n, body, ForKind.THREAD)` without a tag.
    """

    title = "thread loop `{name}` {problem}"
    help = "a thread loop starts at 0, has step 1 and a tag like `threadIdx.x`, `blockIdx.x` or `vthread`; others none"


class ViewOffset(Message):
    """The byte offset of a view is not a scalar i64.

    Example: `View(v, x, FloatImm(f64, 8.0))`.
    """

    title = "the byte offset of view `{name}` has the type {dtype}"
    help = "an offset is a scalar i64"


class ViewRange(Message):
    """A view of constant size reaches beyond its source.

    Example: `tl.view(x, tl.f32[8])`, where `x` has 4 elements of f32.
    Fix: Take a smaller shape or offset.
    """

    title = "view `{name}` of bytes {start} to {end} leaves `{source}`, which has {size} bytes"


class ViewScope(Message):
    """A view lies in another scope than its source.

    Example: A view in `local` of a buffer in `global`.
    Fix: Give the view the scope of its source.
    """

    title = "view `{name}` is in scope {scope}, its source `{source}` in {source_scope}"


class AttrPayload(Message):
    """An attribute has no buffer, no value, or a value of the wrong type.

    Example: `AttrStmt(AttrKey.DOUBLE_BUFFER, body)` without a buffer.
    Fix: Give what the key demands.
    """

    title = "attribute {key} {problem}"


class BodyType(Message):
    """The body of a loop, branch or function is not a SeqStmt.

    Example: `For(i, zero, n, Store(...))`.
    Fix: Wrap it: `seq(Store(...))`.
    """

    title = "the body of {kind} is {given}"
    help = "every body is a SeqStmt"


def store_type(node: Store) -> Message | None:
    wanted = access_type(node.buffer, node.indices)
    return None if node.value.dtype == wanted else StoreType(node.value.dtype, wanted, node.buffer.name)


def condition(node: Any) -> Message | None:
    dtype = node.condition.dtype
    return None if dtype == bool_ else ConditionType(type(node).__name__, dtype)


def loop_types(node: For) -> Message | None:
    parts = (("the variable", node.var), ("the start", node.start), ("the stop", node.stop))
    for part, value in parts:
        if value.dtype != i64:
            return LoopType(part, node.var.name, value.dtype)
    return None


def loop_step(node: For) -> Message | None:
    step = node.step
    fits = type(step) is int and i64.min <= step <= i64.max and step != 0
    return None if fits else LoopStep(node.var.name, f"{shown(step):.60}")


def thread_loop(node: For) -> Message | None:
    problem = ""
    if node.kind is not ForKind.THREAD:
        problem = f"has the tag {node.thread_tag!r} and is not a thread loop" if node.thread_tag else ""
    elif not node.thread_tag:
        problem = "has no tag"
    elif node.thread_tag not in THREAD_TAGS:
        problem = f"has the tag {node.thread_tag!r}{hint(node.thread_tag, THREAD_TAGS)}"
    elif not is_constant(node.start, 0):
        problem = "does not start at the constant 0"
    elif node.step != 1:
        problem = f"has step {node.step}"
    return ThreadLoop(node.var.name, problem) if problem else None


def view_offset(node: View) -> Message | None:
    dtype = node.byte_offset.dtype
    return None if dtype == i64 else ViewOffset(node.buffer.name, dtype)


def view_range(node: View) -> Message | None:
    if not isinstance(node.byte_offset, IntImm):
        return None
    start, length, size = node.byte_offset.value, constant_bytes(node.buffer), constant_bytes(node.source)
    end = start + (length or 0)
    if start >= 0 and (size is None or end <= size):
        return None
    return ViewRange(node.buffer.name, start, end, node.source.name, size or 0)


def view_scope(node: View) -> Message | None:
    view, source = node.buffer, node.source
    return None if view.scope == source.scope else ViewScope(view.name, view.scope, source.name, source.scope)


def attr_payload(node: AttrStmt) -> Message | None:
    takes_buffer, payload = PAYLOADS[node.key]
    if takes_buffer and node.buffer is None:
        return AttrPayload(node.key.value, "is about a buffer, and none is given")
    if not takes_buffer and node.buffer is not None:
        return AttrPayload(node.key.value, f"is about no buffer, and `{node.buffer.name}` is given")
    if type(node.value) is not payload:
        wanted = "no value" if payload is type(None) else f"a value of type {payload.__name__}"
        return AttrPayload(node.key.value, f"takes {wanted}, not {node.value!r}")
    if node.key is AttrKey.ALLOW and not _are_permissions(node.value):
        return AttrPayload(node.key.value, f"takes permissions, each once, not {node.value!r}")
    if isinstance(node.value, tuple) and node.buffer is not None and not _are_rows(node.value, node.buffer):
        return AttrPayload(node.key.value, f"takes rows of entries of `{node.buffer.name}`, which holds i64")
    return None


def _are_permissions(value: AttrValue) -> bool:
    assert isinstance(value, tuple)
    return 0 < len(set(value)) == len(value) and all(isinstance(each, Permission) for each in value)


def _are_rows(value: tuple[object, ...], plan: Buffer) -> bool:
    """Whether each row lists entries of the buffer in ascending order."""
    count = plan.shape[0].value if len(plan.shape) == 1 and isinstance(plan.shape[0], IntImm) else 0
    return plan.dtype == i64 and all(
        isinstance(row, tuple)
        and all(type(entry) is int and 0 <= entry < count for entry in row)
        and list(row) == sorted(set(row))
        for row in value
    )


def assert_message(node: Assert) -> Message | None:
    """A message with values must have a placeholder for each, and the values must be numbers."""
    if not node.values:
        return None
    from tirlite.ir.assertion import places_in

    if places_in(node.message) != len(node.values) or any(each.dtype.is_handle for each in node.values):
        return AssertPlaces(len(node.values))
    return None


def bodies(node: Node) -> Message | None:
    for name in node.CHILDREN:
        body = getattr(node, name)
        if name.endswith("body") and not isinstance(body, SeqStmt):
            return BodyType(type(node).__name__, f"a {type(body).__name__}")
    return None


STATEMENT_RULES: Mapping[type[Node], tuple[Rule, ...]] = {
    Store: (*ACCESS, store_type),
    Let: (let_type, no_stray_argument),
    Evaluate: (no_stray_argument,),
    Assert: (condition, assert_message),
    For: (loop_types, loop_step, thread_loop, bodies),
    While: (condition, bodies),
    IfThenElse: (condition, bodies),
    AttrStmt: (attr_payload, bodies),
    View: (view_offset, view_range, view_scope),
}
