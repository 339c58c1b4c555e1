"""The page of the command line names the keys that --json really prints, and no others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from matchwood.cli import app
from support import run_verb_json as run_json

PAGE = Path(__file__).resolve().parents[2] / "docs" / "command_line.rst"
CALLS = {
    "info": "aniso:1,4x4", "components": "path:5", "scc": "path:5", "bfs": "path:5",
    "mis": "path:5", "mst": "aniso:1,4x4", "match": "aniso:1,4x4", "factor": "aniso:1,4x4",
    "coarsen": "aniso:1,4x4", "forest": "aniso:1,4x4", "precondition": "aniso:1,4x4",
    "solve": "aniso:1,5x5", "order": "path:5", "communities": "path:5", "pagerank": "path:5",
    "partition": "path:5",
}  # fmt: skip
# options with which other keys are printed
MORE = {"order": (("--method", "rabbit"), ("--method", "dissection"))}
OTHERS = {  # tested elsewhere, or long
    "generate", "convert", "bench", "warmup", "config", "demo", "join", "sense",
}  # fmt: skip
DATA = {"preconditioners", "solutions", "impossible", "counters", "phases"}  # keys inside are data


def told(page: str) -> dict[str, tuple[set[str], set[str]]]:
    """For each verb the keys that the page names at the top, and those inside others."""
    table = page.rpartition("\nJSON\n")[2]
    found: dict[str, tuple[set[str], set[str]]] = {}
    for entry in re.split(r"^(?=``)", table, flags=re.MULTILINE)[1:]:
        verb = re.match(r"``(\w+)``", entry)
        assert verb
        text = entry[verb.end() :].partition("\n===")[0]
        top = set(re.findall(r"``(\w+)``", re.sub(r"\([^()]*\)", "", text)))
        inner = set(re.findall(r"``(\w+)``", " ".join(re.findall(r"\([^()]*\)", text))))
        for other in re.findall(r"as ``(\w+)``", text):
            top = top - {other} | found[other][0]
            inner |= found[other][1]
        found[verb[1]] = top, inner
    return found


def inner_keys(value: Any) -> Iterator[str]:
    """Keys of the dictionaries inside, except of clocks and where keys are data."""
    if isinstance(value, list):
        for one in value[:1]:
            yield from inner_keys(one)
    elif isinstance(value, dict):
        for key, part in value.items():
            if set(value) != {"seconds", "compiling"}:
                yield key
            yield from inner_keys(part) if key not in DATA else ()


TOLD = told(PAGE.read_text())


def test_every_verb_is_tried_or_tested_elsewhere() -> None:
    assert {command.name for command in app.registered_commands} == set(CALLS) | OTHERS == set(TOLD)


@pytest.mark.parametrize("verb", CALLS)
def test_the_page_names_the_keys(verb: str) -> None:
    facts = run_json(verb, CALLS[verb])
    top, inner = TOLD[verb]
    assert top == set(facts)
    if not DATA & {"preconditioners", "solutions"} & set(facts):
        printed = [facts]
        printed += [run_json(verb, CALLS[verb], *words) for words in MORE.get(verb, ())]
        assert inner == {
            key
            for facts in printed
            for name, value in facts.items()
            if name not in DATA
            for key in inner_keys(value)
        }


def test_wrong_pages_are_seen() -> None:
    page = "\nJSON\n\n=====\n``a``  ``x``, ``y`` (``z``)\n``b``  as ``a``, and ``w``\n=====\n"
    assert told(page) == {"a": ({"x", "y"}, {"z"}), "b": ({"x", "y", "w"}, {"z"})}
