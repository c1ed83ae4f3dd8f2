"""Reads what the words of the kernel language mean from the stub that editors read, for `help(tl.exp)`."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path


def help_on(word: str) -> str:
    """How `tl.WORD` is called, and below it what it means; empty where the stub does not define it."""
    node = _functions().get(word)
    if node is None:
        return ""
    return f"tl.{word}({ast.unparse(_untyped(node.args))})\n\n{ast.get_docstring(node)}"


def _untyped(arguments: ast.arguments) -> ast.arguments:
    for each in ast.walk(arguments):
        if isinstance(each, ast.arg):
            each.annotation = None
    return arguments


@cache
def _functions() -> dict[str, ast.FunctionDef]:
    stub = Path(__file__).resolve().parent.parent / "__init__.pyi"
    body = ast.parse(stub.read_text("utf-8")).body
    return {node.name: node for node in body if isinstance(node, ast.FunctionDef)}
