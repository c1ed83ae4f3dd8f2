"""All messages of the project: each has a code of its own, says its cause, an example and the fix, and is tested."""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from pathlib import Path

import pytest
from every import every
from test_architecture import FILES

from tirlite.cli.explain import all_entries, page
from tirlite.diag import CallError, KernelError, Message, entry_of, message_kinds

ROOT = Path(__file__).resolve().parents[2]
MESSAGES = ROOT / "tests" / "messages"
ENTRIES = all_entries()
KINDS = message_kinds()


def test_a_code_belongs_to_one_message() -> None:
    assert [code for code, count in Counter(kind.code for kind in KINDS).items() if count > 1] == []


@every("kind", KINDS)
def test_a_code_is_words_with_hyphens_and_the_docstring_is_complete(kind: type[Message]) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", kind.code)
    entry = entry_of(kind)
    assert all(text.endswith((".", "`")) for text in (entry.cause, entry.example, entry.fix))


def test_each_message_is_recorded_or_stands_in_a_test() -> None:
    recorded = {file.stem for file in MESSAGES.glob("*.err")}
    tests = "\n".join(file.read_text("utf-8") for file in (ROOT / "tests").rglob("*.py") if file.parent != MESSAGES)
    mentioned = set(re.findall(r"[\w-]+", tests))
    untested = [kind.code for kind in KINDS if kind.code not in recorded and not {kind.code, kind.__name__} & mentioned]
    assert untested == []


def test_messages_are_made_of_as_many_values_as_their_templates_name() -> None:
    names = {kind.__name__ for kind in KINDS}
    for module, file in FILES.items():
        text = file.read_text("utf-8")
        for call in ast.walk(ast.parse(text)) if names & {*re.findall(r"\w+", text)} else ():
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
                kind = getattr(sys.modules.get(module), call.func.id, None)
                named = {each.arg: None for each in call.keywords if each.arg is not None}
                has_stars = len(named) < len(call.keywords) or any(isinstance(each, ast.Starred) for each in call.args)
                if kind in KINDS and not has_stars:
                    made = kind(*(None for _ in call.args), **named)
                    assert made.code, f"{module}:{call.lineno}"


def test_nothing_is_recorded_of_messages_that_are_gone() -> None:
    assert {file.stem for file in MESSAGES.iterdir() if file.suffix in (".py", ".err")} <= set(ENTRIES)


def test_the_words_of_a_message_stand_in_its_title() -> None:
    """What a caller did wrong is told in one line: the parameter, what came, and what was wanted."""
    for kind in KINDS:
        if issubclass(kind.raises, CallError):
            assert "\n" not in kind.title
            assert "{" in kind.title


def test_the_page_of_errors_is_as_explain_writes_it() -> None:
    written = (ROOT / "docs" / "errors.md").read_text("utf-8")
    assert written == page(ENTRIES.values()), "run `python -m tirlite explain --page > docs/errors.md`"


def test_a_docstring_without_a_fix_is_refused() -> None:
    class Vague(Message):
        """Something went wrong.

        Example: anything.
        """

        code = "vague"
        title = "no"

    with pytest.raises(ValueError, match="the docstring of Vague lacks its fix"):
        entry_of(Vague)


def test_an_entry_joins_the_lines_of_its_docstring() -> None:
    class Long(Message):
        """A cause
        of two lines.

        Example: one
            line and the next.
        Fix: nothing.
        """

        code = "long"
        raises = KernelError
        title = "`{name}` is long"

    entry = entry_of(Long)
    assert (entry.cause, entry.example, entry.fix) == ("A cause of two lines.", "one line and the next.", "nothing.")
    assert entry.raises == "KernelError"
