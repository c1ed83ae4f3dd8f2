"""How tirlite is installed: what is promised of it in pyproject.toml."""

import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))


def test_an_editable_install_is_a_plain_path_which_type_checkers_follow():
    assert PROJECT["tool"]["setuptools"]["package-dir"] == {"": "."}


def test_no_extra_asks_for_what_cannot_be_installed_beside_numpy_2():
    extras = PROJECT["project"]["optional-dependencies"]
    assert not any("basic-pitch" in each for wanted in extras.values() for each in wanted)
