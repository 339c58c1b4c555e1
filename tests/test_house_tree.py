"""The rules of the tree: names of engines, how much one opens, circles, lines, pointers, words."""

from __future__ import annotations

import ast
import functools
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import scipy.sparse as sp
from scipy.sparse import csgraph

from house import CUDA_FILES, FILES, PACKAGE, imports, module_of, nodes_of, tree_of
from matchwood.engines.gpu.source import header_home

SOURCES = [*FILES, *CUDA_FILES]
LINES = {path: len(path.read_text().splitlines()) for path in SOURCES}
LONGEST = 700  # lines of a file
MOST_FILES_TO_OPEN = 3  # of a family, to read an engine of a method
OWN_FILE = 250  # lines that make a file of something that one other file of its folder uses
APART = {"engines/cpu/members.py"}  # the threads themselves; what they run is another matter
ENGINES = ("cpu", "gpu", "devices", "ranks")
SHAPE = ("__init__", "reference", "check", "result")  # every reader knows what these are
MODULES = {module_of(path): path for path in FILES}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"matchwood/([\w./]+)"', re.MULTILINE)


def place(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def imported(path: Path, typing: bool = False) -> set[Path]:
    """Files that a file imports or includes, inside of functions too.

    What only type checkers import counts with `typing`.
    """
    if path.suffix != ".py":
        here = module_of(path.parent / "__init__.py").split(".")
        homes = {name: header_home(name, tuple(here)) for name in INCLUDE.findall(path.read_text())}
        return {PACKAGE.joinpath(*home[1:], name) for name, home in homes.items()}
    skipped = set()
    if not typing:
        for node in nodes_of(path):
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                skipped |= set(range(node.lineno, node.body[-1].end_lineno + 1))
    found = {
        MODULES[name] for line, name in imports(path) if line not in skipped and name in MODULES
    }
    return found - {path, PACKAGE / "__init__.py"}


@functools.cache
def all_imported() -> dict[Path, set[Path]]:
    """By file; read when it is asked for, as every worker imports this module."""
    return {path: imported(path) for path in SOURCES}


@functools.cache
def all_users() -> dict[Path, set[Path]]:
    users: dict[Path, set[Path]] = defaultdict(set)
    for user, used in all_imported().items():
        for path in used:
            users[path].add(user)
    return users


# Engines


def is_engine(path: Path) -> bool:
    """The entry of an engine: cpu.py, or cpu/__init__.py, of a problem or of one of its methods."""
    inside = path.relative_to(PACKAGE).parts
    if inside[0] == "engines" or path.suffix != ".py":
        return False
    return path.stem in ENGINES or (path.stem == "__init__" and path.parent.name in ENGINES)


def test_engines_are_named_by_their_files_alone():
    """cpu.py or cpu/, gpu.py with its CUDA or gpu/, devices and ranks: never cpu_something.py."""
    mixed = re.compile(rf"(?:dist|beyond|spread|{'|'.join(ENGINES)})_|_(?:{'|'.join(ENGINES)})$")
    found = [place(path) for path in SOURCES if mixed.search(path.stem)]
    assert not found
    problems = [path for path in FILES if "check" in path.stem and "/ranks/" in place(path)]
    found = [place(path) for path in problems if path.parts[-2:] != ("ranks", "check.py")]
    assert not [name for name in found if not name.startswith("engines/")]


def test_names_of_engine_files_that_are_text_exist():
    """`engines.load(package, "cpu")` imports what the text names."""
    missing = []
    for path in FILES:
        here = module_of(path)
        for node in nodes_of(path):
            is_load = isinstance(node, ast.Call) and ast.unparse(node.func) == "engines.load"
            if not is_load or not isinstance(node.args[1], ast.Constant):
                continue
            package = ast.unparse(node.args[0])
            own = here if path.stem == "__init__" else here.rpartition(".")[0]
            known = {"__name__": here, "__package__": own, "PACKAGE": _constant(path, "PACKAGE")}
            name = known.get(package) or package.strip("'\"")
            if name.startswith("matchwood.") and f"{name}.{node.args[1].value}" not in MODULES:
                missing.append(f"{place(path)}: {package}, {node.args[1].value}")
    assert not missing


def _constant(path: Path, name: str) -> str | None:
    for node in tree_of(path).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return ast.literal_eval(node.value) if isinstance(node.value, ast.Constant) else None
    return None


# How much one has to open


def family_of(path: Path) -> tuple[str, ...]:
    parts = path.relative_to(PACKAGE).parts
    return parts[: 2 if parts[0] in ("applications", "gate", "engines", "primitives") else 1]


def is_door(path: Path, start: Path) -> bool:
    """A step with a contract of its own, its reference and its check: nobody must look behind."""
    for folder in path.parents:
        if folder in start.parents or folder == PACKAGE:
            return False
        if (folder / "reference.py").exists() and (folder / "check.py").exists():
            return True
    return False


def to_open(start: Path) -> set[Path]:
    """What a reader opens inside the family to read a file to its end, itself included.

    Not the methods among which an engine only chooses: each of them is read for itself.
    """
    seen, waiting = {start}, [start]
    while waiting:
        path = waiting.pop()
        for other in all_imported()[path] - seen:
            plain = other.stem in SHAPE and other.parent.name not in ENGINES
            beside = other.parent == start.parent and start.stem == "__init__"
            method = beside or (is_engine(other) and other.parent.parent == start.parent)
            if family_of(other) == family_of(start) and not (
                plain or method or is_door(other, start)
            ):
                seen.add(other)
                waiting.append(other)
    return seen


FAR = {  # still more than that; these numbers only fall
}


def test_an_engine_is_read_in_a_few_files():
    far = {
        place(path): sorted(place(other) for other in found - {path})
        for path in SOURCES
        if (is_engine(path) or path.parent.name in ENGINES or path.suffix == ".cu")
        and family_of(path)[0] != "engines"
        and path.stem != "check"
        and len(found := to_open(path)) > FAR.get(place(path), MOST_FILES_TO_OPEN)
    }
    assert not far


def test_no_file_is_too_long_to_read():
    assert not {place(path): lines for path, lines in LINES.items() if lines > LONGEST}


def test_small_files_of_one_user_lie_in_it():
    found = []
    for path, users in all_users().items():
        user = next(iter(users))
        beside = user.parent == path.parent != PACKAGE and user.stem != "__init__"
        kept = path.stem in (*SHAPE, *ENGINES, "testing")  # a plugin for pytest
        kept = kept or place(path) in APART
        if len(users) == 1 and beside and not kept and LINES[path] < OWN_FILE:
            found.append(f"{place(path)} ({LINES[path]} lines) <- {user.name}")
    assert not found


def test_every_folder_says_what_it_is():
    mute = [
        place(path)
        for path in FILES
        if path.stem == "__init__" and len((ast.get_docstring(tree_of(path)) or "").split()) < 8
    ]
    assert not mute


# Names


def defined_twice(tree: ast.Module) -> list[str]:
    """Functions, classes and constants that a module defines more than once."""
    names: Counter[str] = Counter()
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            overloads = any("overload" in ast.unparse(mark) for mark in node.decorator_list)
            names[node.name] += not overloads
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names.update(
                inner.id
                for target in targets
                for inner in ast.walk(target)
                if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)
            )
    return [name for name, count in names.items() if count > 1]


def test_no_name_is_defined_twice():
    """The second one would hide the first, in silence."""
    assert not {place(path): found for path in FILES if (found := defined_twice(tree_of(path)))}


def test_names_defined_twice_are_seen():
    assert defined_twice(ast.parse("A = 1\nB = 2\nA = 3\ndef f(): pass\nf = 1")) == ["A", "f"]
    assert defined_twice(ast.parse("A, B = 1, 2\nA.x = 1\nB[0] = 2")) == []


# Circles


def circles(arrows: dict[str, set[str]]) -> list[list[str]]:
    names = sorted({*arrows, *(name for found in arrows.values() for name in found)})
    number = {name: k for k, name in enumerate(names)}
    pairs = [(number[a], number[b]) for a in arrows for b in arrows[a]]
    rows, columns = [a for a, _ in pairs], [b for _, b in pairs]
    A = sp.csr_array(([1] * len(pairs), (rows, columns)), shape=(len(names), len(names)))
    _, labels = csgraph.connected_components(A, connection="strong")
    sizes = Counter(labels.tolist())
    return [
        [name for name, label in zip(names, labels, strict=True) if label == whole]
        for whole, size in sizes.items()
        if size > 1
    ]


def test_there_are_no_circles():
    """Also not by imports inside of functions."""
    found = circles({place(path): set(map(place, all_imported()[path])) for path in SOURCES})
    assert not found


def test_circles_are_seen():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


# Lines: a budget for each part, which only falls.  A new family brings one of its own.

BUDGET: dict[str, int] = {
    ".": 1625,
    "applications": 20119,
    "cli": 4028,
    "communities": 5308,
    "components": 6992,
    "engines": 13395,
    "factors": 3427,
    "forests": 2470,
    "gate": 5589,
    "generators": 3622,
    "independent": 1358,
    "io": 4536,
    "krylov": 1767,
    "machine": 544,
    "matching": 13339,
    "networkx_backend": 1856,
    "ordering": 14773,
    "partitioning": 5852,
    "preconditioners": 6437,
    "primitives": 12972,
    "ranking": 2690,
    "report": 2714,
    "spanning": 4270,
    "traversal": 4862,
    "tridiagonal": 5869,
}


def test_no_part_grows():
    lines: Counter[str] = Counter()
    for path in SOURCES:
        parts = path.relative_to(PACKAGE).parts
        lines[parts[0] if len(parts) > 1 else "."] += LINES[path]
    assert not {part: count for part, count in lines.items() if count > BUDGET.get(part, 0)}


# Pointers and words

POINTER = re.compile(r"(?<![\w/.*<-])((?:[a-z_0-9]+/)*[a-z_0-9]+\.(?:py|cuh?))\b")
BANNED_FILES = {"given", "choosing"}
BANNED_NAMES = {"Came", "Heard", "Out", "Lent", "Letters", "Hall", "Way", "keepers", "so_many"}


def pointers(path: Path) -> Iterator[str]:
    """Names of files in docstrings and comments."""
    text = path.read_text()
    if path.suffix == ".py":
        found = [
            ast.get_docstring(node, clean=False) or ""
            for node in nodes_of(path)
            if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef))
        ]
        found += re.findall(r"#(.*)", text)
    else:
        found = re.findall(r"//(.*)", text)
    for part in found:
        yield from POINTER.findall(part)


def resolves(pointer: str, path: Path) -> bool:
    """Beside the file, above it or in a folder beside it; headers by the name of an include."""
    name = pointer.rpartition("/")[2]
    if path.is_relative_to(PACKAGE / "engines") and name in ("gpu.py", "gpu.cu", "cpu.py"):
        return True  # files that problems have
    if name.endswith(".cuh") and pointer in (name, f"matchwood/{name}"):
        return any(header.name == name for header in CUDA_FILES)
    folders = [folder for folder in path.parents if folder.is_relative_to(PACKAGE)]
    folders += [folder for folder in path.parent.iterdir() if folder.is_dir()]
    roots = [
        *folders,
        PACKAGE.parent,
        PACKAGE.parent.parent,
        PACKAGE / "engines" / "gpu" / "device",
    ]
    return any((folder / pointer).is_file() for folder in roots)


def test_pointers_to_files_resolve():
    wrong = [
        f"{place(path)}: {pointer}"
        for path in SOURCES
        for pointer in pointers(path)
        if not resolves(pointer, path)
    ]
    assert not wrong


def test_banned_words():
    files = [place(path) for path in SOURCES if path.stem in BANNED_FILES]
    names = [
        f"{place(path)}: {node.name}"
        for path in FILES
        for node in nodes_of(path)
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name in BANNED_NAMES
    ]
    assert not files + names


def test_banned_phrases():
    """Nowhere: in no message, docstring or comment.  A line may end inside of one."""
    phrase = re.compile(r"\bso(?:\s|#|//|\")+many\b", re.IGNORECASE)
    assert phrase.search('"one in so "\n  "many rows"')
    assert not [place(path) for path in SOURCES if phrase.search(path.read_text())]
