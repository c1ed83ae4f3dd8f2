"""The layers in pyproject.toml, tried on a small house that has one forbidden import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("importlinter", reason="the linter comes with the extra `dev`")

PYPROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
LINT = "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True))"


def lint(house: Path, **sources: str) -> subprocess.CompletedProcess[str]:
    """The linter's verdict on a package tirlite with these sources, its kernels behind a link as in this project."""
    tirlite = house / "tirlite"
    layers = {layer: tirlite / layer for layer in ("plan", "ir", "dsl", "codegen", "driver", "cli")}
    for layer, folder in {"root": tirlite, "kernels": house / "kernels", **layers}.items():
        folder.mkdir(exist_ok=True)
        (folder / "__init__.py").write_text(sources.get(layer, ""))
    (tirlite / "kernels").symlink_to("../kernels")
    (house / "pyproject.toml").write_bytes(PYPROJECT.read_bytes())
    return subprocess.run([sys.executable, "-c", LINT], cwd=house, capture_output=True, text=True, check=False)


def test_downwards_is_allowed(tmp_path: Path) -> None:
    result = lint(
        tmp_path,
        root="from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from tirlite import cli, driver",
        cli="from tirlite import kernels, plan",
        kernels="import tirlite as tl",
        driver="from tirlite import codegen, dsl",
        dsl="import tirlite.ir",
    )
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    ("importer", "source", "imported"),
    [
        ("plan", "import tirlite.ir", "ir"),
        ("dsl", "import tirlite.codegen", "codegen"),
        ("plan", "def late():\n    from tirlite import driver", "driver"),
        ("ir", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from tirlite import dsl", "dsl"),
        ("kernels", "import tirlite.cli", "cli"),
    ],
    ids=["up", "sideways", "up inside a function", "up under TYPE_CHECKING", "up from the kernels"],
)
def test_up_and_sideways_are_not(tmp_path: Path, importer: str, source: str, imported: str) -> None:
    result = lint(tmp_path, **{importer: source})
    assert result.returncode == 1
    assert f"tirlite.{importer} -> tirlite.{imported}" in result.stdout


def test_an_unknown_package_must_be_given_a_layer(tmp_path: Path) -> None:
    (tmp_path / "tirlite" / "attic").mkdir(parents=True)
    (tmp_path / "tirlite" / "attic" / "__init__.py").write_text("")
    result = lint(tmp_path)
    assert result.returncode == 1
    assert "attic" in result.stdout
