"""`tirlite completion SHELL`: prints a script that completes the commands and options of `tirlite`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence

Words = Mapping[str, Sequence[str]]


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "completion",
        help="print a shell script that completes commands and options",
        description='In bash and zsh: eval "$(tirlite completion SHELL)". In fish: tirlite completion fish | source.',
    )
    parser.add_argument("shell", choices=tuple(_SCRIPTS))
    # Computed when the command runs, since more commands are added later.
    parser.set_defaults(run=lambda arguments: _printed(_SCRIPTS[arguments.shell], words_of(commands)))


def words_of(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> Words:
    """The words that may follow each command: its options, and the choices of its arguments."""
    found: dict[str, Sequence[str]] = {}
    for name, parser in commands.choices.items():
        words: list[str] = []
        for action in parser._actions:
            words += action.option_strings
            if not action.option_strings and action.choices is not None:
                words += map(str, action.choices)
        found[name] = words
    return found


def _printed(script: Callable[[Words], str], words: Words) -> int:
    print(script(words))
    return 0


def _bash(words: Words) -> str:
    cases = "\n".join(f"    {name}) words='{' '.join(each)}' ;;" for name, each in words.items())
    return f"""_tirlite() {{
  local words
  case "$COMP_CWORD" in 1) words='{" ".join(words)} --help --version' ;; *) case "${{COMP_WORDS[1]}}" in
{cases}
  esac ;; esac
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _tirlite tirlite"""


def _zsh(words: Words) -> str:
    return f"autoload -U +X bashcompinit && bashcompinit\n{_bash(words)}"


def _fish(words: Words) -> str:
    lines = [f"complete -c tirlite -n __fish_use_subcommand -f -a '{' '.join(words)}'"]
    for name, each in words.items():
        within = f"complete -c tirlite -n '__fish_seen_subcommand_from {name}'"
        lines += [f"{within} -l {word[2:]}" if word.startswith("--") else f"{within} -a {word}"
                  for word in each if word.startswith("--") or not word.startswith("-")]  # fmt: skip
    return "\n".join(lines)


_SCRIPTS: Mapping[str, Callable[[Words], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
