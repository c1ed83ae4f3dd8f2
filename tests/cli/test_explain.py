"""`tirlite explain`: a code, a misspelt code, the list, the page."""

from __future__ import annotations

import pytest

from tirlite.cli.main import main


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["explain", *words]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("spelling", ["unknown-name", "error[unknown-name]", "UNKNOWN_NAME"])
def test_a_code_is_explained(spelling: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, spelling)
    assert text.startswith("unknown-name (KernelError)\n")
    for part in ("\nReads: ", "\nExample: ", "\nFix: "):
        assert part in text


@pytest.mark.parametrize(("given", "meant"), [("unkown-name", "unknown-name"), ("name", "fixed-name")])
def test_a_wrong_code_is_answered_with_those_that_are_alike(
    given: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", given]) == 2
    assert f"`{meant}`" in capsys.readouterr().err


def test_without_a_code_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys).splitlines()
    assert lines == sorted(lines)
    assert any(line.startswith("unknown-name ") for line in lines)


def test_the_page_groups_the_codes_by_who_must_act(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "--page")
    assert text.startswith("# Errors\n")
    assert text.index("## KernelError") < text.index("### unknown-name") < text.index("## CallTypeError")
