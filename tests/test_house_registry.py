"""The lists of problems are those that the registry makes; what it says of a problem is true."""

from __future__ import annotations

import importlib.util
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import kernel_calls
import matchwood
from house import PACKAGE, problem_of
from matchwood import check
from matchwood.registry import PROBLEMS
from support import environment

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
README = ROOT / "README.md"
# verbs that are no problem's: files, generators, this machine
OTHER_VERBS = {"info", "generate", "convert", "bench", "warmup", "config", "demo"}
# calls of kernel_calls.py that are no problem's: preparing a graph, files, what problems share
OTHER_STEPS = (
    "distributed graphs",
    "graph",
    "memory of graphs",
    "row_reduce",
    "primitives",
    "sort",
    "generators",
    "io",
)


@pytest.mark.parametrize("entry", PROBLEMS, ids=lambda entry: entry.function)
def test_an_entry_names_what_is_there(entry):
    assert entry.function in matchwood.__all__
    page = importlib.import_module(f"matchwood.{entry.family}")
    if page is not getattr(matchwood, entry.function):
        assert getattr(page, entry.function) is getattr(matchwood, entry.function)
    for name in entry.checks:
        assert callable(getattr(check, name))
    folder = PACKAGE / entry.family
    if not folder.is_dir():
        folder = PACKAGE / "applications" / entry.family
    offered = {path.stem for path in folder.rglob("*.py")} | {
        path.name for path in folder.rglob("*")
    }
    for engine in entry.engines:
        assert engine in offered or entry.family == "krylov"


def functions_with_an_engine() -> set[str]:
    """Functions of the index that take a graph and run on an engine."""
    found = set()
    for name in matchwood.__all__:
        value = getattr(matchwood, name)
        if inspect.isfunction(value) and "engine" in inspect.signature(value).parameters:
            found.add(name)
    return found


def test_every_problem_of_the_index_is_registered():
    """A function is known when one of its problem's folder is; an alias is what it wraps."""

    def home(name: str) -> str:
        value = inspect.unwrap(getattr(matchwood, name))
        return problem_of(value.__name__ if inspect.ismodule(value) else value.__module__)

    known = {home(entry.function) for entry in PROBLEMS}
    assert [name for name in sorted(functions_with_an_engine()) if home(name) not in known] == []


def lists() -> dict[Path, str]:
    """What the script behind ``make lists`` would write."""
    place = importlib.util.spec_from_file_location("lists", DOCS / "lists.py")
    module = importlib.util.module_from_spec(place)
    place.loader.exec_module(module)
    return module.made()


def test_the_lists_are_those_of_the_registry():
    stale = [path.name for path, text in lists().items() if path.read_text() != text]
    assert not stale, "run make lists"


def test_a_problem_stands_in_one_place():
    """Outside of its folder and its own tests: its entry, and lists that are made from that."""
    name, allowed = "sliding_statistics", {PACKAGE / "registry.py", *lists()}
    folder = PACKAGE / "applications" / "sensing" / "sliding"
    sources = [path for path in PACKAGE.rglob("*.py*") if path.suffix in (".py", ".pyi")]
    found = [path for path in sources if folder not in path.parents and name in path.read_text()]
    assert set(found) <= allowed


def test_the_demo_has_what_the_registry_says():
    from matchwood.report.problems import PROBLEMS as shown

    assert {problem.short for problem in shown} == {entry.demo for entry in PROBLEMS} - {""}


def test_every_verb_is_told_of():
    from matchwood.cli import app

    verbs = {command.name for command in app.registered_commands}
    assert {entry.verb for entry in PROBLEMS} - {""} == verbs - OTHER_VERBS
    page = (DOCS / "command_line.rst").read_text()
    assert [verb for verb in sorted(verbs) if f"``matchwood {verb}" not in page] == []


def test_every_verb_that_prints_json_has_its_keys_told():
    from matchwood.cli import app

    page = (DOCS / "command_line.rst").read_text().rpartition("\nJSON\n")[2]
    missing = []
    for command in app.registered_commands:
        prints = "as_json" in inspect.signature(command.callback).parameters
        if prints and not re.search(rf"^``{command.name}``", page, re.MULTILINE):
            missing.append(command.name)
    assert not missing


def test_every_problem_has_calls_that_meet_its_kernels():
    steps = [name for name, _ in kernel_calls.steps()]
    assert [
        e.function for e in PROBLEMS if e.warm and not any(s.startswith(e.warm) for s in steps)
    ] == []
    known = tuple(e.warm for e in PROBLEMS if e.warm)
    assert [step for step in steps if not step.startswith((*known, *OTHER_STEPS))] == []


def test_the_readme_names_what_is_there():
    """A row stands for problems that have the same engines."""
    table = README.read_text().partition("## Problems")[2].partition("##")[0]
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    known = {entry.function: entry for entry in PROBLEMS}
    named = [re.findall(r"`(\w+)`", row.split("|")[1]) for row in rows]
    assert {name for row in named for name in row} >= set(known)
    assert {name for row in named for name in row} <= set(matchwood.__all__)
    for row in named:
        assert len({known[name].engines for name in row if name in known}) == 1, row


def test_the_api_page_lists_every_public_name():
    page = (DOCS / "api" / "index.rst").read_text()
    listed = {
        line.strip() for line in page.splitlines() if line.startswith("   ") and ":" not in line
    }
    modules = {name for name in matchwood.__all__ if inspect.ismodule(getattr(matchwood, name))}
    names = set(matchwood.__all__) - modules - {"__version__"} | set(check.__all__)
    assert sorted(names - listed) == []


def test_the_architecture_shows_every_family():
    text = (DOCS / "architecture.rst").read_text()
    families = sorted({entry.family for entry in PROBLEMS})
    named = set(re.findall(r"^      (\w+)/ ", text, re.MULTILINE))
    missing = set(families) - named
    assert {name for name in missing if not (PACKAGE / "applications" / name).is_dir()} == set()


def test_the_concepts_say_what_makes_each_answer_unique():
    """For those with an answer of integers that is checked, and a place in the demo."""
    text = (DOCS / "concepts.rst").read_text().partition("\nOne answer\n")[2]
    shown = [entry.function for entry in PROBLEMS if entry.demo]
    assert [name for name in shown if f"<matchwood.{name}>" not in text] == []


def test_reading_the_registry_imports_nothing():
    code = "import sys, matchwood.registry; print({'numpy', 'numba', 'scipy'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"


def test_every_problem_has_a_page():
    """Each function is named on a page of docs/problems, and each page is in their list."""
    pages = [path for path in (DOCS / "problems").glob("*.rst") if path.stem != "index"]
    text = "\n".join(path.read_text() for path in pages)
    assert [e.function for e in PROBLEMS if not re.search(rf"\b{e.function}\b", text)] == []
    listed = (DOCS / "problems" / "index.rst").read_text() + (DOCS / "index.rst").read_text()
    assert [path.stem for path in pages if path.stem not in listed] == []
