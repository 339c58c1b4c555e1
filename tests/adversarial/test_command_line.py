"""Odd values for every option of every verb: one line and an exit code, never a traceback.

The verbs and their options are read from the program itself.  Some seconds of a search in an order
drawn from the seed; all of it and more by MATCHWOOD_ATTACK_SECONDS.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

from adversarial import sensing_calls
from adversarial.clock import attempts, seed
from matchwood import write_capture
from matchwood.cli import app, errors

ODD = (
    "-1", "0", "1", "3", "99", "2147483648", "9223372036854775808", "9" * 30, "9" * 5000, "3.0",
    "3.5", "-0.5", "nan", "inf", "-inf", "1e400", "1e-320", "", " ", "nonsense", "auto", "None",
    "true", "a,b", "a=b", "rng=x", "base=-1", "dtype=nonsense", "skip=1e9", "0,0", "3x", "0x0",
    "\udcff", "x" * 5000, "/", "no/such/folder/file.npy", "file.nonsense", "file.npy", "file.mtx",
)  # fmt: skip
GRAPH = ("grid:3x4",)
BASE = {
    "convert": (*GRAPH, "out.mtx"),
    "generate": ("path", "5"),
    "bench": ("bfs", "-g", "path:5", "--repeats", "1"),
    "sense": ("a.pcap", "--window", "20"),
    "join": ("a.txt", "--delta", "0.5"),
    "config": (),
    "dist info": (),
    "dist bench": ("strong", "--scale", "4", "--repeats", "1", "--ranks", "1"),
}
"""What follows a verb so that it works; GRAPH where nothing is said."""
LEFT_OUT = {"warmup", "demo"}  # minutes, and hardly an option
HOURS = {("bench", "repeats"), ("dist bench", "repeats"), ("dist bench", "scale")}
"""Options that may be asked for more than anybody can wait for: what is no number goes there."""


def commands(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


COMMANDS = dict(commands(typer.main.get_command(app)))


def attacks() -> list[tuple[str, list[str]]]:
    """(the option, the command line) for every odd value of every option."""
    made = []
    for verb, command in COMMANDS.items():
        if verb in LEFT_OUT:
            continue
        base = [*verb.split(), *BASE.get(verb, GRAPH)]
        options = [p for p in command.params if not getattr(p, "is_flag", False)]
        for option, value in itertools.product(options, ODD):
            if (verb, option.name) in HOURS and re.fullmatch(r"\d+", value):
                continue
            if option.param_type_name == "option":
                made.append((option.name, [*base, max(option.opts, key=len), value]))
            else:
                made.append((option.name, [*verb.split(), value, *BASE.get(verb, GRAPH)[1:]]))
    return made


def fault(words: list[str]) -> str:
    """What is wrong with what happened; "" when nothing is."""
    result = CliRunner().invoke(app, words)
    lines = result.stderr.splitlines()
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return f"{type(result.exception).__name__}: {result.exception}"
    if result.exit_code not in (0, errors.FELL_SHORT, errors.ERROR):
        return f"exit code {result.exit_code}"
    if result.exit_code == 0:
        return ""
    told = [line for line in lines if line.startswith("matchwood: ")]
    if len(told) != 1 or (result.exit_code == errors.ERROR and len(lines) != 1):
        return f"not one line: {result.stderr[:300]}"
    if "MATCHWOOD_DEBUG" in told[0]:
        return f"an error that is none of ours: {told[0]}"
    if len(told[0]) > 1000:
        return f"a line of {len(told[0])} characters: {told[0][:100]}"
    function = told[0].removeprefix("matchwood: ").partition(":")[0]
    typed = {words[0], " ".join(words[:2])}
    if function in errors._functions() - typed:
        return f"named after a function: {told[0]}"
    return ""


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
def test_odd_values_for_every_option(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_capture("a.pcap", sensing_calls.sent())
    Path("a.txt").write_text("graph;join\ngraphs;join\n")
    waiting: list[list[str]] = []
    order = random.Random(seed())
    found = []
    for _ in attempts(4.0):
        if not waiting:
            waiting = [words for _, words in attacks()]
            order.shuffle(waiting)
        words = waiting.pop()
        why = fault(words)
        if why:
            found.append(f"{' '.join(word[:40] for word in words)}: {why}"[:600])
    assert not found, "\n".join(found)


@pytest.mark.slow
def test_every_verb_works_as_the_attacks_begin(tmp_path: Path, monkeypatch) -> None:
    """Otherwise the values would not be looked at."""
    monkeypatch.chdir(tmp_path)
    write_capture("a.pcap", sensing_calls.sent())
    Path("a.txt").write_text("graph;join\ngraphs;join\n")
    for verb in set(COMMANDS) - LEFT_OUT - {"bench", "dist bench"}:
        result = CliRunner().invoke(app, [*verb.split(), *BASE.get(verb, GRAPH)])
        assert result.exit_code == 0, (verb, result.stderr)
