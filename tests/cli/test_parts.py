"""The parts the verbs share: arguments of generators, numbers in words, the bar, a quick start."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest
from typer.testing import CliRunner

from matchwood.cli import app, errors, files, load, output
from support import run_verb, until


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("16", 16),
        ("-3", -3),
        ("0.5", 0.5),
        ("1e-3", 1e-3),
        ("true", True),
        ("No", False),
        ("none", None),
        ("30x40", (30, 40)),
        ("3x4x5", (3, 4, 5)),
        ("(1,2)", (1, 2)),
        ("[1, 2]", [1, 2]),
        ("uniform", "uniform"),
        ("0x10", (0, 10)),
    ],
)
def test_values_as_typed(text: str, value: object) -> None:
    found = load.parsed(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        ("16", ["16"]),
        ("16, rng=3", ["16", "rng=3"]),
        ("1,(30,40),x=[1,2]", ["1", "(30,40)", "x=[1,2]"]),
    ],
)
def test_arguments_are_split_outside_brackets(text: str, words: list[str]) -> None:
    assert load.split(text) == words


def sample(n, *, directed=False, edge_factor=16, rng=None):
    """Only its signature is read."""


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (["5"], ["5"]),
        (["--n", "5"], ["n=5"]),
        (["--n=5"], ["n=5"]),
        (["--edge-factor", "8", "--directed"], ["edge_factor=8", "directed=true"]),
        (["5", "--no-directed"], ["5", "directed=false"]),
    ],
)
def test_options_of_generators(typed: list[str], words: list[str]) -> None:
    assert files.joined(typed, sample) == words


def test_every_generator_is_offered() -> None:
    known = set(load.generators())
    asked = {
        "rmat", "erdos_renyi", "dense_random", "stencil", "grid", "aniso", "path", "star",
        "complete", "cycle", "mycielskian", "random_geometric", "delaunay",
    }  # fmt: skip
    assert asked <= known


def test_generators_are_listed() -> None:
    result = CliRunner().invoke(app, ["generate"])
    assert result.exit_code == 0
    for name in load.generators():
        assert name in result.stdout


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "yes"), (False, "no"), (1234567, "1,234,567"), (0.12345, "0.1235"), ("x", "x")],
)
def test_values_in_words(value: object, text: str) -> None:
    assert output.as_text(value) == text


def test_durations_and_amounts() -> None:
    assert output.duration(4.5678) == "4.57 s"
    assert output.duration(0.0123) == "12.3 ms"
    assert output.duration(85e-6) == "85 us"
    assert output.amount(512) == "512 bytes"
    assert output.amount(3 * 2**20) == "3 MiB"
    assert output.amount(2**42) == "4096 GiB"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_no_bar_where_nobody_looks(monkeypatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with output.progress("working") as bar:
        bar.say("still working")
    assert isinstance(bar, output.NoBar)
    assert sys.stderr.getvalue() == ""


def test_short_work_shows_no_bar(monkeypatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    with output.progress("working") as bar:
        bar.update(1, 2)
    assert not bar.shown
    time.sleep(0.01)
    assert "working" not in sys.stderr.getvalue()


def test_long_work_shows_a_bar(monkeypatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    bar = output.Bar("counting", delay=0.01)
    until(lambda: bar.shown and "counting" in sys.stderr.getvalue())
    bar.update(3, 10)
    bar.say("counting on")
    until(lambda: "counting on" in sys.stderr.getvalue())
    bar.close()


def test_a_bar_tells_numbers(monkeypatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    bar = output.Bar("joining", delay=0.01, units=("records", "pairs"))
    until(lambda: bar.shown)
    bar.found(1234)
    bar.update(3000, 10_000)
    told = "joining: 3,000 of 10,000 records, 1,234 pairs found"
    until(lambda: told in sys.stderr.getvalue())
    bar.close()


def test_bar_follows_the_kernels(monkeypatch) -> None:
    """`matchwood.on_progress` is set inside the block and not after it."""
    import matchwood.engines.cpu  # noqa: F401

    crew = sys.modules["matchwood.engines.cpu.crew"]  # the package has a function of that name
    monkeypatch.setattr(sys, "stderr", Terminal())
    with output.progress("working") as bar:
        assert crew._progress.get() == (bar.update, bar.found)
    assert crew._progress.get() is None


@pytest.mark.slow
def test_help_is_quick_and_light() -> None:
    """Help imports neither NumPy nor Numba; a process start is measured, not a warm import."""
    source = (
        "import sys, matchwood.cli\n"
        "sys.argv = ['matchwood', '--help']\n"
        "try:\n"
        "    matchwood.cli.main()\n"
        "except SystemExit:\n"
        "    heavy = {'numpy', 'scipy', 'numba', 'cupy', 'networkx'} & set(sys.modules)\n"
        "    print(sorted(heavy), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True)
    assert done.stderr == "[]\n"
    assert "components" in done.stdout


def test_json_holds_only_what_json_knows() -> None:
    found = {"a": float("inf"), "b": [np.float64("nan"), -np.inf], "c": np.arange(2), "d": 0.5}
    text = output.json_text(found, indent=1)
    read = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert read == {"a": "Infinity", "b": ["NaN", "-Infinity"], "c": [0, 1], "d": 0.5}


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("read: too large; pass most_bytes=9 to read it", "give --read most_bytes=9 to read"),
        ("read: pass compact=True to number, or most_vertices=5 to", "or --read most_vertices=5"),
        ("read: pass header=True or header=False", "give --read header=True or --read header="),
        ("read: what is it?; pass format=", "give --read format=NAME"),
        ("write: what is it?; pass format=", "give --format NAME"),
    ],
)
def test_advice_is_for_the_command_line(said: str, shown: str) -> None:
    text = errors.one_line(ValueError(said))
    assert shown in text
    assert "pass" not in text


@pytest.mark.slow
def test_a_closed_pipe_is_no_error() -> None:
    """As with `matchwood ... | head -1`, where tables come too late."""
    command = [sys.executable, "-m", "matchwood.cli", "info", "path:5"]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_old_name_of_rng_works_and_says_so() -> None:
    answers = [run_verb("mis", "rmat:6", name, "3", "--json") for name in ("--rng", "--seed")]
    new, old = (json.loads(answer.stdout) for answer in answers)
    assert {**new, "seconds": 0} == {**old, "seconds": 0}
    assert "--seed is now --rng" in answers[1].stderr
