"""`tirlite explain CODE`: explains an error code, with an example and a fix."""

from __future__ import annotations

import argparse
import pkgutil
from collections.abc import Iterable
from importlib import import_module
from textwrap import wrap

import tirlite
from tirlite.cli.command_error import CommandMessage
from tirlite.diag import Explanation, TirliteError, entries, message_kinds, nearest
from tirlite.diag.entry import with_subclasses
from tirlite.groups import by_key
from tirlite.show import Piece, write

_DESCRIPTION = """\
Explains an error code, such as `unknown-name` in `error[unknown-name]`: its cause, an example, and the fix.
Without a code, lists all of them.
"""
_HEAD = """\
# Errors

Every error of tirlite is a `tl.TirliteError`, and `str(error)` is all of its text: what is wrong, where, with the
values that show it, and what would be right. `error.code` is the code in its heading, and `error.messages` are the
single mistakes, up to twenty, in the order of the source. Errors can be copied and pickled, `repr(error)` is one line
for a log, and a notebook shows them in colour. The class says who must act.

`python -m tirlite explain CODE` shows an entry of this page in a terminal, and `python -m tirlite explain --page`
writes the page anew.

A traceback ends at the line of yours that called tirlite. Set `TIRLITE_FULL_TRACEBACK=1` in the environment to see the
frames inside too. The command line colours its text in a terminal; `NO_COLOR=1` stops that, and `FORCE_COLOR=1` asks
for colour in a file or pipe.
"""
# Modules that are programs, or import packages that may be missing.
_PASSED_OVER = ("tirlite.kernels", "tirlite.bench.probes", "tirlite.__main__")


class UnknownCode(CommandMessage):
    """No error has the code that is to be explained.

    Example: `python -m tirlite explain unknown-nam`.
    Fix: Take one of the codes that the message names; `python -m tirlite explain` lists all.
    """

    title = "no error has the code `{given}`"
    help = "{advice}"


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "explain",
        help="explain an error code",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("code", metavar="CODE", nargs="?", help="the text between the brackets of `error[...]`")
    parser.add_argument("--page", action="store_true", help="print the explanations of all codes as a page of Markdown")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints the explanations."""
    known = all_entries()
    if arguments.page:
        print(page(known.values()), end="")
    elif arguments.code is None:
        width = max(map(len, known))
        write([Piece("\n".join(f"{code:<{width}}  {entry.cause}" for code, entry in known.items()))])
    else:
        write(_named(arguments.code, known).styled())
    return 0


def _named(given: str, known: dict[str, Explanation]) -> Explanation:
    code = given.removeprefix("error").strip("[]: ").lower().replace("_", "-")
    if code not in known:
        near = nearest(code, known) or _sharing_words(code, known)
        advice = f"did you mean {near}?" if near else "`python -m tirlite explain` lists all codes"
        raise UnknownCode(given, advice).error()
    return known[code]


def _sharing_words(code: str, known: Iterable[str]) -> str:
    """Up to three codes that share a word with `code`, as "`a`, `b`"."""
    words = set(code.split("-"))
    return ", ".join([f"`{each}`" for each in known if words & set(each.split("-"))][:3])


def all_entries() -> dict[str, Explanation]:
    """The entries of all codes, in order."""
    for module in pkgutil.walk_packages(tirlite.__path__, "tirlite.", onerror=None):
        if not module.name.startswith(_PASSED_OVER):
            import_module(module.name)
    return entries(message_kinds())


def page(found: Iterable[Explanation]) -> str:
    """All entries as Markdown, grouped by error class."""
    groups = by_key((entry.raises, entry) for entry in found)
    parts = [_HEAD]
    for kind in with_subclasses(TirliteError):
        if kind.__name__ in groups:
            about = "\n".join(_wrapped(" ".join((kind.__doc__ or "").split())))
            parts.append(f"## {kind.__name__}\n\n{about}\n")
            parts += [_section(entry) for entry in groups[kind.__name__]]
    return "\n".join(parts)


def _section(entry: Explanation) -> str:
    parts = [f"- Reads: `` {entry.title} ``", f"- Example: {entry.example}", f"- Fix: {entry.fix}"]
    lines = [*_wrapped(entry.cause), "", *(line for part in parts for line in _wrapped(part, "  "))]
    return "\n".join([f"### {entry.code}", "", *lines, ""])


def _wrapped(text: str, indent: str = "") -> list[str]:
    return wrap(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
