"""Links between the pages lead somewhere, and the pages name all that they are to name."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from every import every

from tirlite.bench.main import main

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FILE = re.compile(r"`([a-z_0-9/]+\.py)`")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def prose(page: Path) -> str:
    return BLOCK.sub("", page.read_text("utf-8"))


def anchors(page: Path) -> set[str]:
    """The anchors of the headings, as GitHub makes them."""
    headings = HEADING.findall(prose(page))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@every("page", PAGES)
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(prose(page)):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@every("page", PAGES)
def test_files_that_are_named_are_there(page: Path) -> None:
    if page.name == "errors.md":  # its examples have files of their own
        return
    for name in FILE.findall(prose(page)):
        assert any(f"/{path.as_posix()}".endswith(f"/{name}") for path in files()), name


@cache
def files() -> tuple[Path, ...]:
    return tuple(
        path.relative_to(ROOT) for folder in ("tirlite", "kernels", "tests") for path in (ROOT / folder).rglob("*.py")
    )


def linked_from(page: Path) -> set[Path]:
    return {(page.parent / link.partition("#")[0]).resolve() for link in LINK.findall(prose(page))}


def test_the_index_leads_to_every_page() -> None:
    assert set(PAGES[1:]) - linked_from(ROOT / "docs" / "index.md") <= {ROOT / "docs" / "index.md"}


def test_the_site_has_a_place_for_every_page() -> None:
    config = ast.parse((ROOT / "docs" / "site" / "conf.py").read_text("utf-8"))
    (chapters,) = (
        ast.literal_eval(each.value)
        for each in config.body
        if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == "CHAPTERS"
    )
    named = {"index", *(page for pages in chapters.values() for page in pages.split())} - {"decisions"}
    assert named == {page.stem for page in (ROOT / "docs").glob("*.md")}


def test_the_architecture_names_every_package() -> None:
    packages = {file.parent.name for file in (ROOT / "tirlite").glob("*/__init__.py")}
    assert packages <= set(re.findall(r"^\| `(\w+)/` ", prose(ROOT / "docs" / "architecture.md"), re.MULTILINE))


def test_the_index_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    named = set(re.findall(r"^\| `python -m tirlite ([\w -]*\w)", prose(ROOT / "docs" / "index.md"), re.MULTILINE))
    listed = re.compile(r"^    ([a-z][\w-]*)\b", re.MULTILINE)
    main(["--help"])
    commands = set(listed.findall(capsys.readouterr().out))
    main(["bench", "--help"])
    benches = {f"bench {each}" for each in listed.findall(capsys.readouterr().out)}
    assert len(benches) > 5
    assert {each.split(" ")[0] for each in named} == commands
    assert {each for each in named if each.startswith("bench ")} == benches
