"""Names of a package that are loaded when they are first used."""

import ast
import pickle
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from every import every

import tirlite.analysis
import tirlite.codegen
import tirlite.diag
import tirlite.driver
import tirlite.dsl.vocabulary
import tirlite.graph
import tirlite.ir
import tirlite.plan
import tirlite.rewrite
import tirlite.runtime
import tirlite.show
import tirlite.sizes
import tirlite.solver
from tirlite.late import LateModule

PACKAGES = [
    tirlite.analysis,
    tirlite.codegen,
    tirlite.diag,
    tirlite.driver,
    tirlite.dsl,
    tirlite.graph,
    tirlite.ir,
    tirlite.plan,
    tirlite.rewrite,
    tirlite.runtime,
    tirlite.show,
    tirlite.sizes,
    tirlite.solver,
]

VECTOR_ADD = """
import sys
import numpy as np
import tirlite as tl

n = tl.dim("n")

@tl.kernel
def add(x: tl.f32[n], y: tl.f32[n], z: tl.f32[n]):
    for i in range(n):
        z[i] = x[i] + y[i]
"""


def loaded_by(path: Path, program: str) -> set[str]:
    """The modules that a new process has loaded after `program`."""
    file = path / "program.py"
    file.write_text(program + "\nimport sys; print(*sys.modules)")
    ran = subprocess.run([sys.executable, file], capture_output=True, text=True, check=True)
    return set(ran.stdout.split())


@every("package", PACKAGES)
def test_all_names_of_a_package_can_be_had(package: ModuleType) -> None:
    for name in package.__all__:
        assert not isinstance(getattr(package, name), ModuleType), name


def test_a_name_is_that_of_its_module_and_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    package = ModuleType("tirlite.plan_stand_in")
    for module in ("tables.csv", "shape.formulas"):  # below a package that is none, nothing more can be loaded
        import_module(f"tirlite.plan.{module}")
    monkeypatch.setitem(sys.modules, "tirlite.plan", package)
    exec(
        "from tirlite.late import late_names\n"
        "if not print:\n"
        "    from tirlite.plan.tables.csv import read_csv as read_csv\n"
        "    from tirlite.plan.shape.formulas import Conditions as Conditions\n"
        "__getattr__, __all__ = late_names('tirlite.plan')",
        vars(package),
        found := {},
    )
    assert found["__all__"] == ["Conditions", "read_csv"]
    assert found["__getattr__"]("read_csv") is package.read_csv
    assert found["__getattr__"]("Conditions").__module__ == "tirlite.plan.shape.formulas"


@every("package", [each for each in PACKAGES if each is not tirlite.driver])
def test_the_names_of_a_package_are_those_that_type_checkers_see(package: ModuleType) -> None:
    tree = ast.parse(Path(package.__file__ or "").read_text("utf-8"))
    seen = [n for each in tree.body if isinstance(each, ast.If) for n in each.body if isinstance(n, ast.ImportFrom)]
    names = {alias.asname for each in seen for alias in each.names}
    assert set(package.__all__) - set(tirlite.dsl.vocabulary.WORDS) == names - set(tirlite.dsl.vocabulary.WORDS)


def test_a_late_module_is_loaded_when_something_in_it_is_used() -> None:
    module = LateModule("tirlite.show.shown")
    assert module.shown is tirlite.show.shown
    with pytest.raises(ModuleNotFoundError):
        LateModule("tirlite.nowhere").something


def test_other_names_are_none_of_the_package() -> None:
    with pytest.raises(AttributeError, match=r"module 'tirlite\.plan' has no attribute 'read_tsv'"):
        tirlite.plan.read_tsv


def test_a_name_may_be_that_of_the_module_that_it_is_defined_in(tmp_path: Path) -> None:
    program = "import tirlite.plan.check\nfrom tirlite.plan import check\nassert callable(check), check\n"
    program += "import tirlite.ir.rewrite\nassert callable(tirlite.ir.rewrite)"
    assert "tirlite.plan.check" in loaded_by(tmp_path, program)


def test_a_decorator_loads_the_language_alone(tmp_path: Path) -> None:
    loaded = loaded_by(tmp_path, VECTOR_ADD)
    assert {"tirlite.dsl.translate", "tirlite.driver.kernel"} <= loaded
    later = ("llvmlite", "sympy", "tirlite.codegen", "tirlite.rewrite", "tirlite.interp", "tirlite.graph")
    options = {"tirlite.rewrite", "tirlite.rewrite.forms", "tirlite.rewrite.options"}
    assert [name for name in sorted(loaded - options) if name.startswith(later)] == []
    unneeded = {
        "difflib",
        "tirlite.analysis.access",
        "tirlite.driver.shapes",
        "tirlite.driver.timing",
        "tirlite.driver.manifest",  # no cache is wanted here
        "tirlite.dsl.attributes",
        "tirlite.dsl.calls",
        "tirlite.dsl.declarations",
        "tirlite.dsl.invocation",
        "tirlite.dsl.static",
        "tirlite.ir.builder",
        "tirlite.ir.formula",
        "tirlite.ir.printer",
        "tirlite.ir.validate_calls",
        "tirlite.plan.plan",
        "tirlite.plan.problem",
        "tirlite.plan.search.engine",
        "tirlite.plan.solve",
        "tirlite.runtime.executable",
        "tirlite.runtime.explain",
        "tirlite.show.chart",
        "tirlite.show.styled",
        "tirlite.sizes.exchange",
        "tirlite.sizes.extrema",
    }
    assert sorted(unneeded & loaded) == []


def test_a_call_loads_neither_searches_nor_proofs_nor_tables(tmp_path: Path) -> None:
    # Results that may be larger than the caches take what writes vectors.
    small = VECTOR_ADD.replace("tl.f32[n]", "tl.f32[4]").replace("range(n)", "range(4)")
    loaded = loaded_by(tmp_path, small + "x = np.ones(4, np.float32)\nadd(x, x.copy(), x.copy())")
    assert "tirlite.codegen.lower" in loaded
    unneeded = {
        "queue",
        "sympy",
        "tirlite.rewrite.compute_once",
        "tirlite.rewrite.loops.divide_loops",
        "tirlite.rewrite.narrowed",
        "tirlite.rewrite.reductions",
        "tirlite.rewrite.threads",
        "tirlite.rewrite.loops.tightened",
        "tirlite.rewrite.use_permissions",
        "tirlite.analysis.access",
        "tirlite.analysis.integers.extents",
        "tirlite.rewrite.storage.planned_storage",
        "tirlite.rewrite.storage.lifted_scratch",
        "tirlite.ir.rewrite",
        "tirlite.ir.equal",
        "_queue",
        "tirlite.driver.branches",
        "tirlite.codegen.loops.carried",
        "tirlite.codegen.doubtful",
        "tirlite.dsl.host_functions",
        "tirlite.codegen.loops.polling",
        "tirlite.codegen.workspace_layout",
        "tirlite.plan.problem",
        "tirlite.plan.plan",
        "tirlite.plan.search.rules",
        "tirlite.plan.strategies.pack",
        "tirlite.plan.tables.csv",
        "tirlite.plan.report.words",
        "tirlite.plan.shape.per_shape",
        "tirlite.ir.functions.table",
        "tirlite.codegen.debug.statements",
        "tirlite.rewrite.fuse_loops",
        "tirlite.analysis.in_place.prover",
        "tirlite.analysis.storage_check.check",
        "tirlite.interp.interpret",
        "tirlite.runtime.explain",
        "tirlite.runtime.messages",
        "tirlite.runtime.artifact.line_table",
        "tirlite.runtime.cache",
        "tirlite.analysis.trials.races",
        "tirlite.codegen.arithmetic.halves",
        "tirlite.codegen.functions.outline",
        "tirlite.codegen.arithmetic.sequences",
        "tirlite.sizes.extrema",
        "tirlite.sizes.search",
        "tirlite.show.chart",
        "tirlite.show.styled",
    }
    assert sorted(unneeded & loaded) == []


def test_a_loop_over_elements_is_shared_without_proofs(tmp_path: Path) -> None:
    loaded = loaded_by(tmp_path, VECTOR_ADD + "x = np.ones(4, np.float32)\nadd(x, x.copy(), x.copy())")
    unneeded = ("access", "loops.dependence", "integers.index_space")
    assert "tirlite.driver.branches" in loaded
    assert [name for name in unneeded if f"tirlite.analysis.{name}" in loaded] == []
    assert (
        not {"tirlite.rewrite.vectors.lanes", "tirlite.ir.equal", "tirlite.ir.printer", "tirlite.sizes.search"} & loaded
    )


def test_a_schedule_loads_the_steps_that_it_takes_alone(tmp_path: Path) -> None:
    program = VECTOR_ADD + "s = tl.schedule(add)\ns.split('i', 16)\ns.parallel('i.outer')\nprint(s)"
    steps = {"split", "annotate", "cache_write", "compute_at", "dots", "pack", "pack_padded", "rescale", "tensorize"}
    loaded = loaded_by(tmp_path, program)
    assert {each for each in steps if f"tirlite.schedules.{each}" in loaded} == {"split", "annotate"}


@pytest.mark.parametrize(("function", "homes"), [("sqrt", set()), ("log", {"single", "logarithm", "exponential"})])
def test_a_kernel_loads_the_formulas_of_its_functions_alone(tmp_path: Path, function: str, homes: set[str]) -> None:
    program = VECTOR_ADD.replace("x[i] + y[i]", f"tl.{function}(x[i])") + "add.compile()"
    formulas = {"single", "logarithm", "exponential", "trigonometry", "inverse", "single_angles", "fast", "fast_single"}
    loaded = loaded_by(tmp_path, program)
    assert {each for each in formulas if f"tirlite.ir.functions.{each}" in loaded} == homes


@pytest.mark.parametrize("package", PACKAGES, ids=str)
def test_all_names_are_listed_before_they_are_loaded(package: ModuleType) -> None:
    assert set(package.__all__) <= set(dir(package))


def test_a_model_is_read_without_what_compiles_and_plans(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    program = """
from onnx import TensorProto, helper
import tirlite as tl

x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy")
graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "relu", [x], [y])
tl.from_onnx(helper.make_model(graph))
"""
    later = ("llvmlite", "sympy", "tirlite.codegen", "tirlite.driver", "tirlite.rewrite", "tirlite.plan", "tirlite.dsl")
    assert [name for name in sorted(loaded_by(tmp_path, program)) if name.startswith(later)] == []


def test_a_package_travels_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(tirlite.plan)) is tirlite.plan
