"""The shape of the house: functions of many arguments, private names."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from house import FILES, PACKAGE, module_of, nodes_of
from support import SOURCES

MOST_ARGUMENTS = 12  # of a function


# Arguments


def count_of_arguments(function: ast.FunctionDef) -> int:
    """How many arguments a function has.

    Options that a caller must name (those after the `*`) do not count in public functions: they
    have defaults, and nobody writes them all.  A verb of the command line has only such options:
    Typer reads them and calls it by name.
    """
    arguments = function.args
    count = len(arguments.posonlyargs) + len(arguments.args)
    public = not function.name.startswith("_")
    named = [
        default
        for default in arguments.kw_defaults
        if default is None or not public or function.decorator_list
    ]
    return count + len(named)


def long_functions(path: Path, nodes: Iterable[ast.AST]) -> Iterator[str]:
    place = path.relative_to(PACKAGE).as_posix()
    for node in nodes:
        if isinstance(node, ast.FunctionDef):
            if place.startswith("cli/") and not node.name.startswith("_"):  # verbs
                continue
            if count_of_arguments(node) > MOST_ARGUMENTS:
                yield f"{place}: {node.name}"


def test_no_function_has_too_many_arguments():
    assert [text for path in FILES for text in long_functions(path, nodes_of(path))] == []


def test_many_arguments_are_seen():
    letters = ", ".join("abcdefghijklm")
    for text, long in [
        (f"def f({letters}): pass", True),
        (f"def f({letters[:-3]}): pass", False),
        (f"def f({letters[:-3]}, *, named): pass", True),
        (f"def f({letters[:-3]}, *, named=1): pass", False),
        (f"def _f({letters[:-3]}, *, named=1): pass", True),
        (f"@kernel\ndef f({letters}): pass", True),
    ]:
        assert bool(list(long_functions(PACKAGE / "calls.py", nodes_in(text)))) is long, text


# Private names


RECORDS = {"_replace", "_asdict", "_fields", "_make"}  # public names of a NamedTuple
NUMBA = {"_reduce", "_rebuild"}  # of its compiled functions, which engines/cpu writes to the cache


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in RECORDS | NUMBA


def own_names(nodes: Iterable[ast.AST]) -> set[str]:
    """Private names that a file defines: functions, classes, variables, attributes."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store):
            on_self = isinstance(node, ast.Name) or (
                isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            )
            if on_self:
                found.add(node.id if isinstance(node, ast.Name) else node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)  # __slots__, object.__setattr__(self, "_name", ...)
    return {name for name in found if is_private(name)}


def borrowed(here: str, nodes: Sequence[ast.AST], ours: set[str]) -> Iterator[str]:
    """Private names of other modules that a file uses.

    `ours` are the private names of the whole library: names such as `_adj` of NetworkX are
    another matter.
    """
    own = own_names(nodes)
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("matchwood"):
            for alias in node.names:
                path = SOURCES.joinpath(*f"{node.module}.{alias.name}".split("."))
                inside = here == node.module or here.startswith(f"{node.module}.")
                module = path.with_suffix(".py").exists() and inside
                if is_private(alias.name) and not module:
                    yield alias.name
        elif isinstance(node, ast.Attribute) and is_private(node.attr):
            on_self = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            if node.attr in ours and node.attr not in own and not on_self:
                yield node.attr


def test_no_private_name_of_another_module_is_used():
    ours = set().union(*(own_names(nodes_of(path)) for path in FILES))
    found = [
        f"{path.relative_to(PACKAGE).as_posix()}: {name}"
        for path in FILES
        for name in borrowed(module_of(path), nodes_of(path), ours)
    ]
    assert found == []


def nodes_in(text: str) -> list[ast.AST]:
    return list(ast.walk(ast.parse(text)))


def test_private_names_are_seen():
    for text, names in [
        ("from matchwood.gate.graph import _read", ["_read"]),
        ("from matchwood.tridiagonal import _probe", ["_probe"]),
        ("def f(G): return G._data", ["_data"]),
        ("def f(G): G._data = 1", ["_data"]),
        ("class A:\n  def f(self): self._data = 1\n  def g(self, other): return other._data", []),
        ("def f(raw): return raw._replace(data=None)", []),
        ("def f(G): return G._adj", []),
    ]:
        found = list(borrowed("matchwood.forests.cpu", nodes_in(text), {"_data"}))
        assert found == names, text
    inside = nodes_in("from matchwood import _lazy")
    assert not list(borrowed("matchwood.engines", inside, set()))
