"""Names of a package that are loaded when they are first used."""

import subprocess
import sys
from types import ModuleType

import pytest

import tirlite.analysis
import tirlite.plan
import tirlite.rewrite
import tirlite.solver
from tirlite.late import late_names


def loaded_by(program: str) -> set[str]:
    """The modules of tirlite that a new process has loaded after `program`."""
    program += "\nimport sys; print(*(name for name in sys.modules if name.startswith('tirlite')))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(ran.stdout.split())


@pytest.mark.parametrize("package", [tirlite.analysis, tirlite.plan, tirlite.rewrite, tirlite.solver])
def test_all_names_of_a_package_can_be_had(package: ModuleType) -> None:
    for name in package.__all__:
        assert not isinstance(getattr(package, name), ModuleType), name


def test_a_name_is_that_of_its_module_and_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    package = ModuleType("tirlite.plan_stand_in")
    monkeypatch.setitem(sys.modules, "tirlite.plan", package)
    find = late_names("tirlite.plan", {"csv_read": "read_csv", "shape.conditions": "Conditions"})
    assert find("read_csv") is package.read_csv
    assert find("Conditions").__module__ == "tirlite.plan.shape.conditions"


def test_other_names_are_none_of_the_package() -> None:
    with pytest.raises(AttributeError, match=r"module 'tirlite\.plan' has no attribute 'read_tsv'"):
        tirlite.plan.read_tsv


def test_a_decorator_loads_neither_searches_nor_checks_nor_tables() -> None:
    loaded = loaded_by("import tirlite as tl; tl.kernel, tl.dim")
    unneeded = {
        "tirlite.plan.search.advance",
        "tirlite.plan.pack.arena",
        "tirlite.plan.csv_read",
        "tirlite.plan.report",
        "tirlite.plan.shape.per_shape",
        "tirlite.ir.functions.table",
        "tirlite.codegen.debug.statements",
        "tirlite.rewrite.thread_phases",
        "tirlite.rewrite.fuse_loops",
        "tirlite.analysis.in_place_prover",
        "tirlite.analysis.storage_check.check",
    }
    assert not unneeded & loaded
