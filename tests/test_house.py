"""The house: who imports whom, where kernels live, how long files are, what `import` costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import matchwood
from support import SOURCES, environment

PACKAGE = SOURCES / "matchwood"
FILES = sorted(PACKAGE.rglob("*.py"))
LONGEST = 450  # lines


# Who may import whom.  A part may import itself and the parts of lower rank; those of the same
# rank stand beside each other and do not, unless MAY_MEET says so.

RANKS = [
    {"errors", "arguments", "stopwatch", "_version", "_lazy"},
    {"teams", "gpu", "dist", "engines", "answers"},
    {"primitives"},
    {"csr", "calls", "gate"},
    {"io", "generators"},
    {
        "traversal", "components", "independent", "spanning", "matching", "factors", "forests",
        "tridiagonal", "preconditioners", "krylov", "ordering", "ranking", "communities",
    },
    {"join", "sensing"},
    {"check", "machine"},
    {"__init__"},
    {"cli", "report", "networkx_backend"},
]  # fmt: skip
RANK = {part: rank for rank, parts in enumerate(RANKS) for part in parts}
ENGINES, PROBLEMS, OUTSIDE = 1, 5, 9
MAY_MEET = {ENGINES, 3, 4, PROBLEMS, OUTSIDE}
INNER = ("reference", "cpu", "gpu", "dist")  # of a problem: nobody else's business


def module_of(path: Path) -> str:
    parts = ["matchwood", *path.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def part_of(module: str) -> str:
    """The part of the house: the name after "matchwood"; the index itself is "__init__"."""
    names = module.split(".")
    return names[1] if len(names) > 1 else "__init__"


def is_module(name: str) -> bool:
    path = SOURCES.joinpath(*name.split("."))
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists() or path.is_dir()


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """(line, module) for every import of ours, also those inside functions."""
    here = module_of(path)
    package = here if path.name == "__init__.py" else here.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "matchwood":
                    yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([base] if base else [])])
            if base.split(".")[0] != "matchwood":
                continue
            for alias in node.names:
                name = f"{base}.{alias.name}"
                if base == "matchwood" and not is_module(name):
                    yield node.lineno, matchwood._HOMES.get(alias.name, "matchwood")
                else:
                    yield node.lineno, name if is_module(name) else base


def fault(importer: str, imported: str) -> str | None:
    """Why this import is not allowed; None when it is."""
    mine, theirs = part_of(importer), part_of(imported)
    for part in (mine, theirs):
        if part not in RANK:
            return f"{part!r} has no place in the house: give it one in RANKS"
    if mine == theirs and RANK[mine] != PROBLEMS:
        return None
    if RANK[theirs] > RANK[mine]:
        return f"{mine} may not import {theirs}"
    if RANK[theirs] == RANK[mine] != PROBLEMS and RANK[mine] not in MAY_MEET:
        return f"{mine} may not import {theirs}, which stands beside it"
    if RANK[theirs] == PROBLEMS:
        home = imported.split(".")[:3]  # matchwood.family.problem
        inner = imported.split(".")[3:]
        inside = importer.split(".")[:3] == home
        if RANK[mine] == PROBLEMS and not inside and inner and inner[0].startswith(INNER):
            return "only a problem's public function may be called, not its engines"
    return None


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_follow_the_arrows(path):
    faults = [
        f"{path.relative_to(SOURCES)}:{line}: {why} ({imported})"
        for line, imported in imports(path)
        if (why := fault(module_of(path), imported))
    ]
    assert not faults, "\n".join(faults)


def test_wrong_arrows_are_seen(tmp_path):
    """The test above must be able to fail."""
    wrong = [
        ("matchwood.primitives.scan.cpu", "matchwood.csr"),
        ("matchwood.teams.crew", "matchwood.primitives.scan"),
        ("matchwood.csr", "matchwood.io"),
        ("matchwood.traversal.breadth_first", "matchwood.cli"),
        ("matchwood.traversal.breadth_first", "matchwood.join"),
        ("matchwood.traversal.breadth_first", "matchwood"),
        ("matchwood.traversal.breadth_first", "matchwood.components.connected.cpu"),
        ("matchwood.join", "matchwood.sensing"),
        ("matchwood.errors", "matchwood.teams"),
        ("matchwood.somewhere", "matchwood.csr"),
    ]
    assert all(fault(*pair) for pair in wrong)
    right = [
        ("matchwood.traversal.breadth_first", "matchwood.components.connected"),
        ("matchwood.traversal.breadth_first", "matchwood.traversal.breadth_first.cpu"),
        ("matchwood.join.cpu", "matchwood.matching"),
        ("matchwood.check", "matchwood.traversal.breadth_first.check"),
        ("matchwood.cli.machine.demo", "matchwood.report"),
        ("matchwood.cli.machine.demo", "matchwood"),
    ]
    assert not any(fault(*pair) for pair in right)


# Kernels


def holds_kernels(path: Path) -> bool:
    return path.name.startswith("cpu") or path.parent == PACKAGE / "teams"


DECORATORS = {"kernel", "device", "inlined", "njit", "jit", "vectorize", "guvectorize", "intrinsic"}


def decorated(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """Functions that Numba compiles."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                target = decorator.func if isinstance(decorator, ast.Call) else decorator
                name = target.attr if isinstance(target, ast.Attribute) else target.id
                if name in DECORATORS:
                    yield node


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_kernels_live_where_the_cache_sees_them(path):
    """Compiled functions are in cpu*.py or teams/, and take nothing from files elsewhere.

    The cache hashes just those files; a constant from another file could change unseen.
    """
    tree = ast.parse(path.read_text())
    if not holds_kernels(path):
        found = [node.name for node in decorated(tree)]
        assert not found, f"compiled functions outside cpu*.py: {found}"
        return
    foreign = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("matchwood"):
            folder = SOURCES.joinpath(*node.module.split("."))
            source = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
            for alias in node.names:
                inner = folder / f"{alias.name}.py"
                if not holds_kernels(inner if inner.exists() else source):
                    foreign[alias.asname or alias.name] = node.module
    used = [
        f"{node.name} uses {name.id} of {foreign[name.id]}"
        for node in decorated(tree)
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
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(name.split(".")[0] == "numba" for name in names) and not holds_kernels(path):
                found.append(str(path.relative_to(SOURCES)))
    assert not found, f"numba is imported outside cpu*.py and teams/: {found}"


def test_optional_packages_are_never_imported_with_a_module():
    """CuPy, mpi4py and others come in when a function needs them."""
    optional = {"cupy", "cupyx", "mpi4py", "networkx", "matplotlib", "pyarrow", "zstandard"}
    found = []
    for path in FILES:
        for node in ast.parse(path.read_text()).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            found += [f"{path.name}: {name}" for name in names if name.split(".")[0] in optional]
    assert not found


# Files


def test_no_file_is_too_long_to_read():
    long = {
        str(path.relative_to(SOURCES)): lines
        for path in PACKAGE.rglob("*")
        if path.suffix in (".py", ".cu", ".cuh")
        and (lines := len(path.read_text().splitlines())) > LONGEST
    }
    assert not long


def test_every_problem_has_the_same_shape():
    """A folder with engines has a public page, a reference and a check.

    Several methods for one problem share the reference and the check of their family.
    """
    missing = []
    for rank in (2, PROBLEMS):
        for part in RANKS[rank]:
            for engine in (PACKAGE / part).rglob("cpu.py"):
                folder = engine.parent
                missing += [] if (folder / "__init__.py").exists() else [str(folder)]
                for name in ("reference.py", "check.py") if rank == PROBLEMS else ("reference.py",):
                    places = [place / name for place in (folder, folder.parent)]
                    if not any(path.exists() for path in places):
                        missing.append(str(places[0].relative_to(PACKAGE)))
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
    times = []
    for _ in range(5):
        done = subprocess.run(
            [sys.executable, "-c", IMPORT],
            env=environment(),
            capture_output=True,
            text=True,
            check=True,
        )
        seconds, *heavy = done.stdout.split()
        assert heavy == []
        times.append(float(seconds))
    assert min(times) < 0.2, f"import matchwood took {times} s"
