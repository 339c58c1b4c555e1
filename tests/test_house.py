"""The house: who imports whom, where kernels live, what `import` costs.  The map: house.py."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from house import (
    FILES,
    OUTSIDE,
    PACKAGE,
    PROBLEMS,
    RANKS,
    fault,
    fault_of_string,
    imports,
    is_step,
    module_of,
    nodes_of,
    part_of,
    strings,
    tree_of,
)
from support import SOURCES, environment, in_time, looped

INDEX = {"__init__", "check", "_lazy", "registry"}  # lists of names are their business


def faults_of(path: Path) -> list[str]:
    here = module_of(path)
    found = [(line, name, fault(here, name)) for line, name in imports(path)]
    if part_of(here) not in INDEX:
        found += [(line, name, fault_of_string(here, name)) for line, name in strings(path)]
    return [
        f"{path.relative_to(SOURCES)}:{line}: {why} ({name})" for line, name, why in found if why
    ]


def test_imports_follow_the_arrows():
    faults = [fault for path in FILES for fault in faults_of(path)]
    assert not faults, "\n".join(faults)


def test_wrong_arrows_are_seen(tmp_path):
    """The test above must be able to fail."""
    wrong = [
        ("matchwood.primitives.scan.cpu", "matchwood.gate.graph"),
        ("matchwood.engines.cpu.crew", "matchwood.primitives.scan"),
        ("matchwood.gate.graph", "matchwood.io"),
        ("matchwood.traversal.breadth_first", "matchwood.cli"),
        ("matchwood.traversal.breadth_first", "matchwood.join"),
        ("matchwood.traversal.breadth_first", "matchwood"),
        ("matchwood.traversal.breadth_first", "matchwood.components.connected.cpu"),
        ("matchwood.forests.cpu", "matchwood.factors.cpu"),
        ("matchwood.forests", "matchwood.factors.gpu"),
        ("matchwood.preconditioners.pairs", "matchwood.tridiagonal.block.cpu"),
        ("matchwood.matching.suitor.cpu", "matchwood.matching.greedy.cpu"),
        ("matchwood.applications.join", "matchwood.applications.sensing"),
        ("matchwood.errors", "matchwood.engines.cpu"),
        ("matchwood.somewhere", "matchwood.gate.graph"),
    ]
    assert all(fault(*pair) for pair in wrong)
    right = [
        ("matchwood.traversal.breadth_first", "matchwood.components.connected"),
        ("matchwood.traversal.breadth_first", "matchwood.traversal.breadth_first.cpu"),
        ("matchwood.forests.cpu", "matchwood.factors"),
        ("matchwood.forests.cpu.walk", "matchwood.forests.cpu.paths"),
        ("matchwood.matching.suitor.cpu", "matchwood.matching.cpu"),
        ("matchwood.ordering.rcm.cpu.batch", "matchwood.ordering.rcm.cpu.serial"),
        ("matchwood.applications.join.cpu", "matchwood.matching"),
        ("matchwood.check", "matchwood.traversal.breadth_first.check"),
        ("matchwood.cli.machine", "matchwood.report"),
        ("matchwood.cli.machine", "matchwood"),
    ]
    assert not any(fault(*pair) for pair in right)


def test_loads_by_name_are_seen(tmp_path):
    script = tmp_path / "module.py"
    script.write_text('''"""matchwood.traversal is a page."""
import importlib
_BFS = "matchwood.traversal.breadth_first"
run = engines.load(f"matchwood.matching.{method}", engine)
importlib.import_module("matchwood.factors.gpu")
importlib.import_module("matchwood." + name)
importlib.import_module(f"matchwood.{name}.gpu")
about = "matchwood"
''')
    found = sorted(name for _, name in strings(script))
    assert found == [
        "matchwood",
        "matchwood",
        "matchwood.factors.gpu",
        "matchwood.matching",
        "matchwood.traversal.breadth_first",
    ]
    assert all(fault_of_string("matchwood.ordering.rcm.gpu_start", name) for name in found)
    assert not fault_of_string("matchwood.matching.weighted", "matchwood.matching")
    assert not fault_of_string("matchwood.engines.cpu.crew", "matchwood")
    assert not fault_of_string("matchwood.gate.inputs", "matchwood.primitives.assemble")


# Kernels


def holds_kernels(path: Path) -> bool:
    return path.name.startswith("cpu") or "cpu" in path.relative_to(PACKAGE).parts


DECORATORS = {
    "kernel",
    "device",
    "expanded",
    "inlined",
    "inner",
    "njit",
    "jit",
    "vectorize",
    "guvectorize",
    "intrinsic",
}


def decorated(path: Path) -> Iterator[ast.FunctionDef]:
    """Functions that Numba compiles."""
    for node in nodes_of(path):
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                target = decorator.func if isinstance(decorator, ast.Call) else decorator
                name = target.attr if isinstance(target, ast.Attribute) else target.id
                if name in DECORATORS:
                    yield node


@looped("path", FILES)
def test_kernels_live_where_the_cache_sees_them(path):
    """Compiled functions are in cpu*.py or engines/cpu/, and take nothing from files elsewhere.

    The cache hashes just those files; a constant from another file could change unseen.
    """
    if not holds_kernels(path):
        found = [node.name for node in decorated(path)]
        assert not found, f"{path.relative_to(SOURCES)}: compiled functions {found}"
        return
    foreign = {}
    for node in nodes_of(path):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("matchwood"):
            folder = SOURCES.joinpath(*node.module.split("."))
            source = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
            for alias in node.names:
                inner = folder / f"{alias.name}.py"
                if not holds_kernels(inner if inner.exists() else source):
                    foreign[alias.asname or alias.name] = node.module
    used = [
        f"{node.name} uses {name.id} of {foreign[name.id]}"
        for node in decorated(path)
        for name in ast.walk(node)
        if isinstance(name, ast.Name) and name.id in foreign and not _in_annotation(node, name)
    ]
    assert not used, f"{path.relative_to(SOURCES)}: " + "; ".join(used)


def _in_annotation(function: ast.FunctionDef, name: ast.Name) -> bool:
    annotations = [argument.annotation for argument in function.args.args]
    annotations.append(function.returns)
    return any(name is inner for tree in annotations if tree for inner in ast.walk(tree))


def test_only_kernel_files_import_numba():
    """The command line may, to tell compiling from running."""
    found = []
    for path in FILES:
        if part_of(module_of(path)) in RANKS[OUTSIDE]:
            continue
        for node in nodes_of(path):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(name.split(".")[0] == "numba" for name in names) and not holds_kernels(path):
                found.append(str(path.relative_to(SOURCES)))
    assert not found, f"numba is imported outside cpu*.py and engines/cpu/: {found}"


def test_optional_packages_are_never_imported_with_a_module():
    """CuPy, mpi4py and others come in when a function needs them."""
    optional = {
        "cupy",
        "cupyx",
        "mpi4py",
        "networkx",
        "matplotlib",
        "pyarrow",
        "zstandard",
        "cryptography",
    }
    found = []
    for path in FILES:
        for node in tree_of(path).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            found += [f"{path.name}: {name}" for name in names if name.split(".")[0] in optional]
    assert not found


# Shape


def test_every_problem_has_the_same_shape():
    """A folder with engines has a public page, a reference and a check.

    The folders of methods share the reference and the check above them; steps that the problems of
    a family share need none.
    """
    missing = []
    for rank in (2, PROBLEMS):
        for part in RANKS[rank]:
            for engine in (PACKAGE / part).rglob("cpu.py"):
                folder = engine.parent
                inner = {"ranks", "devices"} & set(folder.parts)
                if inner or is_step(module_of(folder / "__init__.py")):
                    continue
                places = (folder, folder.parent)
                wanted = {"__init__.py": (folder,), "reference.py": places}
                if rank == PROBLEMS:
                    wanted["check.py"] = places
                missing += [
                    str((folder / name).relative_to(PACKAGE))
                    for name, homes in wanted.items()
                    if not any((home / name).exists() for home in homes)
                ]
    assert not missing


# import matchwood

IMPORT = """
import sys, time
start = time.perf_counter()
import matchwood
taken = time.perf_counter() - start
heavy = {"numba", "llvmlite", "cupy", "mpi4py", "scipy", "numpy", "networkx", "rich", "typer"}
print(taken, *sorted(heavy & set(sys.modules)))
"""


def test_import_is_quick_and_brings_nothing_heavy():
    def measure():
        done = subprocess.run(
            [sys.executable, "-c", IMPORT],
            env=environment(),
            capture_output=True,
            text=True,
            check=True,
        )
        seconds, *heavy = done.stdout.split()
        assert heavy == []
        return float(seconds)

    in_time(measure, 0.2)
