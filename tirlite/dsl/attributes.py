"""Parses calls of `tl.attr`, which set a property of a buffer or a block."""

from __future__ import annotations

import ast

from tirlite.diag import Message, did_you_mean
from tirlite.dsl.parameters import check_options
from tirlite.dsl.vocabulary import CallSite
from tirlite.ir.expr import Buffer, Var
from tirlite.ir.stmt import PAYLOADS, AttrKey, AttrValue, Rows


class UnknownAttribute(Message):
    """`tl.attr` has a key that does not exist.

    Example: `with tl.attr(x, "double_bufer"):`.
    Fix: Take one of the keys that the message lists.
    """

    title = 'tl.attr has no key "{key}"'
    help = "{advice}"


# Keys about a loop variable, which bind the loop to threads; the value of the first is the tag.
_THREADS = ("thread_extent", "virtual_thread")


def thread_attribute(site: CallSite | None) -> tuple[Var, str] | None:
    """The variable and the tag of `tl.attr(i, "thread_extent", "threadIdx.x")` or `tl.attr(i, "virtual_thread")`.

    None for other attributes.
    """
    if site is None or not site.args or not isinstance(site.args[0], Var):
        return None
    site.only()
    site.count(2, 3, "the variable of a loop, a key, and the tag of a thread with the key thread_extent")
    key, *tag = site.args[1:]
    if key not in _THREADS:
        raise site.wrong(1, "one of the keys about loops, thread_extent and virtual_thread,")
    if key == "virtual_thread" and tag:
        raise site.wrong(2, "nothing more")
    if key == "virtual_thread":
        return site.args[0], "vthread"
    if not tag or not isinstance(tag[0], str) or not tag[0]:
        raise site.wrong(len(site.args) - 1, 'the tag of a thread, as in "threadIdx.x",')
    return site.args[0], tag[0]


def literal_rows(node: ast.expr) -> Rows | None:
    """The value of an attribute that is a literal tuple of tuples of integers; None for anything else."""
    if not isinstance(node, ast.Tuple):
        return None
    rows = []
    for row in node.elts:
        cells = row.elts if isinstance(row, ast.Tuple) else [row]
        entries = [each.value for each in cells if isinstance(each, ast.Constant) and type(each.value) is int]
        if len(entries) < len(cells) or not isinstance(row, ast.Tuple):
            return None
        rows.append(tuple(entries))
    return tuple(rows)


def attribute_of(site: CallSite | None) -> tuple[AttrKey, Buffer | None, AttrValue]:
    """The key, buffer and value of `tl.attr(buffer, key, value)`; buffer and value depend on the key."""
    assert site is not None
    site.only()
    site.count(1, 3, "a buffer, a key and a value, as the key demands")
    args = list(site.args)
    buffer = args.pop(0) if isinstance(args[0], Buffer) else None
    first = len(site.args) - len(args)
    if not args or not isinstance(args[0], str):
        raise site.wrong(min(first, len(site.args) - 1), 'a key, as in "double_buffer"')
    key = next((each for each in AttrKey if each.value == args[0]), None)
    if key is None:
        keys = [each.value for each in AttrKey]
        advice = did_you_mean(args[0], keys, "its keys are " + ", ".join(f"`{each}`" for each in keys))
        raise UnknownAttribute(args[0], advice, span=site.spans[first]).error()
    takes_buffer, payload = PAYLOADS[key]
    value = args[1] if len(args) > 1 else None
    if takes_buffer is (buffer is None):
        raise site.wrong(0, "a buffer" if takes_buffer else "the key alone, without a buffer,")
    if len(args) > 2 or type(value) is not payload:
        wanted = f"a value of type {payload.__name__}" if payload is not type(None) else "no value"
        raise site.wrong(len(site.args) - 1, f"{wanted} with the key {key.value}")
    assert value is None or isinstance(value, (str, int, tuple))
    if key is AttrKey.STORAGE_SCOPE:
        check_options(value, alignment=0, volatile=False, span=site.spans[-1])
    return key, buffer if isinstance(buffer, Buffer) else None, value
