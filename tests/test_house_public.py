"""Every public name: it is there, it is explained, its examples run, and a test calls it."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import pkgutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

import matchwood

TESTS = Path(__file__).resolve().parent


def listed_primitives() -> list[str]:
    """The folders that the page of primitives lists: the others serve the gate alone."""
    page = importlib.import_module("matchwood.primitives")
    first_words = {line.split()[0] for line in (page.__doc__ or "").splitlines() if line.split()}
    folders = [found.name for found in pkgutil.iter_modules(page.__path__) if found.ispkg]
    return [f"matchwood.primitives.{name}" for name in folders if name in first_words]


def pages() -> list[str]:
    """Modules whose public names are the user's."""
    index = [home for name, home in matchwood._HOMES.items() if home == f"matchwood.{name}"]
    return sorted({"matchwood", *index, *listed_primitives()} - {"matchwood.primitives"})


def names_of(page: Any) -> list[str]:
    if hasattr(page, "__all__"):
        return list(page.__all__)
    return [
        name
        for name, value in vars(page).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == page.__name__
    ]


def public() -> dict[str, Any]:
    """All public functions and classes, by the name a user would write."""
    found: dict[str, Any] = {}
    for module in pages():
        page = importlib.import_module(module)
        for name in names_of(page):
            value = getattr(page, name)
            if callable(value) and not any(value is other for other in found.values()):
                found[f"{module}.{name}"] = value
    return found


PUBLIC = public()
FUNCTIONS = {name: value for name, value in PUBLIC.items() if not inspect.isclass(value)}


def test_the_index_and_its_types_agree():
    """What type checkers see of the index is what is there at run time."""
    for module in (matchwood, matchwood.check, matchwood.sensing):
        typed = {}
        for node in ast.parse(Path(module.__file__).with_suffix(".pyi").read_text()).body:
            for alias in getattr(node, "names", ()):
                assert alias.asname == alias.name, f"write `import {alias.name} as {alias.name}`"
                typed[alias.name] = node.module
        homes = {
            name: "matchwood" if home == f"matchwood.{name}" else home
            for name, home in module._HOMES.items()
        }
        assert typed == homes


def test_everything_in_the_index_is_there():
    for name in matchwood.__all__:
        assert getattr(matchwood, name) is not None
    assert set(matchwood.__all__) <= set(dir(matchwood))
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        matchwood.nonsense


def test_families_re_export_what_the_index_names():
    for name, home in matchwood._HOMES.items():
        value = getattr(importlib.import_module(home), name, None)
        assert value is None or value is getattr(matchwood, name)


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_are_explained(name):
    text = inspect.getdoc(PUBLIC[name])
    assert text, f"{name} has no docstring"
    assert text.splitlines()[0].rstrip().endswith("."), f"{name}: first line is no sentence"


@pytest.mark.parametrize("name", PUBLIC)
def test_examples_of_public_names_run(name, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # examples that write files
    value = PUBLIC[name]
    finder = doctest.DocTestFinder(recurse=inspect.isclass(value))
    runner = doctest.DocTestRunner(
        optionflags=doctest.NORMALIZE_WHITESPACE
        | doctest.ELLIPSIS
        | doctest.IGNORE_EXCEPTION_DETAIL
    )
    output: list[str] = []
    tried = 0
    for test in finder.find(value, name, globs={}):
        tried += runner.run(test, out=output.append).attempted
    assert runner.summarize(verbose=False).failed == 0, "".join(output)
    if name in FUNCTIONS:
        assert tried, f"{name} has no example"


def called_in(tree: ast.AST) -> set[str]:
    """Every name that is called: `f(...)`, `module.f(...)`, `partial(f, ...)`.

    A name that a test hands on, as an argument or in a table, is called by whoever gets it; an
    import, an assertion that it is there, or a word in a text is no call.
    """
    found: set[str] = set()
    for node in ast.walk(tree):
        handed: list[ast.AST] = []
        if isinstance(node, ast.Call):
            handed = [node.func, *node.args, *(keyword.value for keyword in node.keywords)]
        elif isinstance(node, (ast.List, ast.Tuple, ast.Dict, ast.Set)):
            handed = list(node.values if isinstance(node, ast.Dict) else node.elts)
        for part in handed:
            if isinstance(part, ast.Name):
                found.add(part.id)
            elif isinstance(part, ast.Attribute):
                found.add(part.attr)
    return found


@pytest.mark.slow
def test_every_public_function_is_called_by_some_test():
    called: set[str] = set()
    for path in TESTS.rglob("*.py"):
        if path.name not in ("house.py", "test_house.py", Path(__file__).name):
            called |= called_in(ast.parse(path.read_text()))
    assert [name for name in FUNCTIONS if name.rpartition(".")[2] not in called] == []


def test_a_mention_is_no_call():
    text = "from matchwood import bfs\nassert bfs is not None\nx = matchwood.permute\n'profile()'"
    assert called_in(ast.parse(text)) == set()
    text = (
        "bfs(A, 0)\nmatchwood.permute(A, perm)\ncases = [(matchwood.profile, 1)]\npartial(solve, A)"
    )
    assert called_in(ast.parse(text)) >= {"bfs", "permute", "profile", "solve"}


@pytest.mark.slow
def test_the_example_of_the_readme_runs(capsys):
    readme = (TESTS.parent / "README.md").read_text()
    code = readme.partition("```python\n")[2].partition("```")[0]
    assert "import matchwood" in code
    exec(compile(code, "README.md", "exec"), {})
    assert "components, vertex 0 reaches" in capsys.readouterr().out
