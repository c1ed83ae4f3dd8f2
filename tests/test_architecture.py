"""The shape of the house: import circles, sizes, names, heavy libraries, and what `import tirlite` loads."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from shutil import which

import pytest

ROOT = Path(__file__).resolve().parent.parent
TOP_LEVEL = {"LICENSE", "README.md", "docs", "kernels", "pyproject.toml", "tests", "tirlite"}
LONGEST_FILE = 500
LONGEST_FUNCTION = 60
EMPTY_NAMES = {"utils", "util", "helpers", "helper", "common", "misc"}
SEES_LLVM = ("tirlite.codegen", "tirlite.runtime", "tirlite.driver", "tirlite.cli", "tirlite.bench")
SEES_THE_ROOT = ("tirlite.kernels", "tirlite.graph", "tirlite.cli", "tirlite.bench", "tirlite.__main__")


def module_files(root: Path = ROOT) -> dict[str, Path]:
    """Module name -> file, for all of tirlite; the kernels come in by the link `tirlite/kernels`."""
    places = [("tirlite", root / "tirlite"), ("tirlite.kernels", root / "tirlite" / "kernels")]
    found = {}
    for package, folder in places:
        for file in sorted(folder.rglob("*.py")):
            parts = [package, *file.relative_to(folder).with_suffix("").parts]
            found[".".join(parts).removesuffix(".__init__")] = file
    return found


FILES = module_files()


@cache
def syntax_trees() -> dict[str, ast.Module]:
    return {name: ast.parse(file.read_text("utf-8"), str(file)) for name, file in FILES.items()}


@cache
def all_nodes() -> dict[str, list[ast.AST]]:
    """Module name -> the nodes of its syntax tree."""
    return {name: list(ast.walk(tree)) for name, tree in syntax_trees().items()}


def imported_modules(name: str, nodes: Iterable[ast.AST], known: set[str], *, is_package: bool) -> Iterator[str]:
    """The modules out of `known` that `name` imports, wherever in the file the import stands."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = name.split(".") if is_package else name.split(".")[:-1]
                base = ".".join([*package[: len(package) - node.level + 1], *([base] if base else [])])
            submodules = {f"{base}.{alias.name}" for alias in node.names} & known
            yield from sorted(submodules)
            if base in known and len(submodules) < len(node.names):
                yield base


def import_graph(nodes: Mapping[str, Iterable[ast.AST]], packages: set[str]) -> dict[str, list[str]]:
    known = set(nodes)
    return {
        name: sorted(set(imported_modules(name, each, known, is_package=name in packages)))
        for name, each in nodes.items()
    }


@cache
def imports() -> dict[str, list[str]]:
    """Module name -> the modules of tirlite that it imports."""
    return import_graph(all_nodes(), {name for name, file in FILES.items() if file.name == "__init__.py"})


def find_circle(graph: dict[str, list[str]]) -> list[str] | None:
    """A chain of modules that leads back to its start, or None."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return None


def test_the_kernels_are_seen() -> None:
    assert (ROOT / "tirlite" / "kernels").is_symlink()
    assert "tirlite.kernels" in FILES


def test_no_import_circle() -> None:
    # The root's lazy table of names points at everything; who may look back at it is the next test's matter.
    assert find_circle(imports() | {"tirlite": []}) is None


def test_only_the_upper_layers_import_the_root() -> None:
    importers = [name for name, imported in imports().items() if "tirlite" in imported]
    assert [name for name in importers if not name.startswith(SEES_THE_ROOT)] == []


def test_a_circle_is_found_inside_functions_and_under_type_checking() -> None:
    trees = {
        "p": ast.parse(""),
        "p.a": ast.parse("def f():\n    from p.b import g"),
        "p.b": ast.parse("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from . import c"),
        "p.c": ast.parse("import p.a"),
    }
    circle = find_circle(import_graph({name: [*ast.walk(tree)] for name, tree in trees.items()}, {"p"}))
    assert circle is not None
    assert set(circle) == {"p.a", "p.b", "p.c"}


@pytest.mark.skipif(not (ROOT / ".git").exists() or which("git") is None, reason="a copy without its history")
def test_the_top_level_holds_what_it_is_to_hold() -> None:
    kept = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = {line.split("/")[0] for line in kept.splitlines()}
    assert {name for name in names if not name.startswith(".")} == TOP_LEVEL


def test_names_say_what_is_inside() -> None:
    assert [name for name in FILES if EMPTY_NAMES & {part.strip("_") for part in name.split(".")}] == []


def test_files_are_short_and_say_what_they_are_for() -> None:
    lengths = {name: len(file.read_text("utf-8").splitlines()) for name, file in FILES.items()}
    assert {name: length for name, length in lengths.items() if length > LONGEST_FILE} == {}
    assert [name for name, tree in syntax_trees().items() if not ast.get_docstring(tree)] == []


def test_functions_are_short() -> None:
    functions = [
        (name, node)
        for name, nodes in all_nodes().items()
        for node in nodes
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    # A kernel may have the name of the function that makes it.
    lengths = {
        (name, node.name, node.lineno): (node.end_lineno or node.lineno) - node.lineno + 1 for name, node in functions
    }
    assert {function: length for function, length in lengths.items() if length > LONGEST_FUNCTION} == {}


def test_nothing_is_left_unimplemented() -> None:
    for name, nodes in all_nodes().items():
        raised = [node.exc for node in nodes if isinstance(node, ast.Raise) and node.exc]
        assert "NotImplementedError" not in [ast.unparse(error).split("(")[0] for error in raised], name


def test_no_name_of_a_module_is_given_twice() -> None:
    twice = []
    for name, tree in syntax_trees().items():
        targets = [node.targets for node in tree.body if isinstance(node, ast.Assign)]
        given = [each.id for group in targets for each in group if isinstance(each, ast.Name)]
        defined = [node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
        given += [node.name for node in defined if "overload" not in map(ast.unparse, node.decorator_list)]
        twice += [(name, each) for each in set(given) if given.count(each) > 1]
    assert twice == []


def imported_libraries(nodes: Iterable[ast.AST]) -> list[str]:
    """The top names of all that these statements import from elsewhere."""
    found = []
    for node in nodes:
        if isinstance(node, ast.Import):
            found += [alias.name.split(".")[0] for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.append(node.module.split(".")[0])
    return found


def test_sympy_is_used_by_sizes_alone_and_loads_late() -> None:
    assert [name for name, tree in syntax_trees().items() if "sympy" in imported_libraries(tree.body)] == []
    users = {name for name, nodes in all_nodes().items() if "sympy" in imported_libraries(nodes)}
    assert {name for name in users if not name.startswith("tirlite.sizes")} == set()


def test_llvmlite_is_used_by_what_makes_and_runs_code() -> None:
    users = {name for name, nodes in all_nodes().items() if "llvmlite" in imported_libraries(nodes)}
    assert {name for name in users if not name.startswith(SEES_LLVM)} == set()


def test_no_module_has_locks_of_its_own() -> None:
    """In the child of a fork nobody gives them back; `tirlite.gate` has what takes their place."""
    locks = {("functools", "cached_property"), ("threading", "Lock"), ("threading", "RLock")}
    imports = [(name, n) for name, nodes in all_nodes().items() for n in nodes if isinstance(n, ast.ImportFrom)]
    found = {name for name, node in imports for alias in node.names if (node.module, alias.name) in locks}
    assert found == {"tirlite.runtime.workspace"}  # which begins anew in the child


def test_import_loads_nothing_that_can_wait() -> None:
    program = "import sys, numpy; before = set(sys.modules); import tirlite; print(*(set(sys.modules) - before))"
    shown = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(shown.stdout.split())
    heavy = {"sympy", "mpmath", "llvmlite", "tirlite.graph", "tirlite.kernels", "tirlite.codegen", "tirlite.solver"}
    heavy |= {"numpy.testing", "numpy.f2py", "PIL", "asyncio", "unittest", "concurrent.futures", "multiprocessing"}
    assert "tirlite" in loaded
    assert heavy & loaded == set()
