"""`matchwood dist ...`: the answers of one machine, one line for an error, keys as on the page."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import matchwood
from cli.test_page import inner_keys, told
from dist.mpi import mpiexec
from matchwood.cli import cluster
from matchwood.cli.cluster import app
from support import run_verb, run_verb_json

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "command_line.rst").read_text()
GRAPH = "rmat:5,4,weights=uniform,dtype=float64"
VERBS = ("components", "labels", "bfs", "match", "pagerank", "mst")
TOLD = told(
    "\nJSON\n" + PAGE.partition("Keys of ``--json`` on ranks")[2].partition("Exit codes")[0]
)
ANSWERS = {
    "components": lambda A: matchwood.connected_components(A).labels,
    "labels": lambda A: matchwood.label_propagation(A).labels,
    "bfs": lambda A: matchwood.bfs(A, 0).level,
    "match": lambda A: matchwood.weighted_matching(A).mate,
    "pagerank": lambda A: matchwood.pagerank(A).scores,
    "mst": lambda A: matchwood.minimum_spanning_forest(A).edges,
}
PARTS = """
import contextlib, io, sys
from dist.mpi import say
from matchwood.cli import app

for line in sys.argv[1:]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            app(line.split(), prog_name="matchwood")
        except SystemExit as left:
            code = left.code
    say(code, len(out.getvalue()) > 0, err.getvalue().strip())
"""


def matrix():
    return matchwood.generators.rmat(5, 4, weights="uniform", dtype="float64")


def right(verb, path):
    found, expected = np.load(path), ANSWERS[verb](matrix())
    if verb == "pagerank":
        return bool(np.abs(found - expected).max() < 1e-10)
    return np.array_equal(found, expected)


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_on_one_rank(verb, tmp_path):
    path = tmp_path / "out.npy"
    facts = run_verb_json("dist", verb, GRAPH, "--check", "-o", str(path))
    assert right(verb, path)
    assert facts["checked"]
    assert (facts["ranks"], facts["grid"], facts["received"]["most"]) == (1, "1x1", 0)
    top, inner = TOLD[verb]
    assert top == set(facts)
    assert inner == {key for value in facts.values() for key in inner_keys(value)}
    shown = run_verb("dist", verb, GRAPH).stdout
    assert "1 (1x1)" in shown
    assert [each.name for each in tmp_path.iterdir()] == ["out.npy"]  # nothing else is left


def test_all_verbs_are_on_the_page():
    names = {command.name for command in app.registered_commands}
    assert names == set(TOLD) == set(re.findall(r"``matchwood dist (\w+)", PAGE)) - {"VERB"}


def test_parents_of_a_search(tmp_path):
    path = tmp_path / "parents.npy"
    facts = run_verb_json("dist", "bfs", GRAPH, "-s", "5", "--parents", str(path))
    assert facts["parents"] == str(path)
    assert np.array_equal(np.load(path), matchwood.bfs(matrix(), 5).parent)


def test_info_and_bench(tmp_path):
    facts = run_verb_json("dist", "info")
    assert facts["links"] == {"allreduce": None, "barrier": None, "bandwidth": None}
    assert facts["ranks"][0]["threads"] >= 1
    assert "serial" in run_verb("dist", "info").stdout
    path = tmp_path / "rows.json"
    words = ("dist", "bench", "shapes", "--scale", "6", "--repeats", "1", "--ranks", "2")
    shown = run_verb(*words, "-o", str(path)).stdout
    assert "shapes" in shown
    found = json.loads(path.read_text())
    assert set(found) == {"kind", "figures"} <= TOLD["bench"][0]
    rows = found["figures"]["shapes"]
    assert {row["grid"] for row in rows} == {"1x2", "2x1"}
    assert {row["algorithm"] for row in rows} == {"pagerank", "components", "bfs"}
    for row in rows:
        assert row["seconds"] == pytest.approx(row["computing"] + row["communicating"])
        assert row["received"] > 0


def test_what_the_bar_tells():
    assert cluster.told("ranking", 7, 12345, 2_340_000) == (
        "ranking: round 7, 12,345 active, 2.3 MB a rank"
    )
    assert cluster.told("ranking", 7, None, 0) == "ranking: round 7, 0.0 MB a rank"


@pytest.mark.slow
@pytest.mark.mpi
def test_verbs_under_mpi(tmp_path):
    """Rank 0 alone prints; of an error too, and all ranks leave with its code."""
    outputs = {verb: tmp_path / f"{verb}.npy" for verb in VERBS}
    lines = [
        f"dist {verb} {GRAPH} --check --json --grid 2x1 -o {path}" for verb, path in outputs.items()
    ]
    bad = [
        f"dist components {tmp_path}/none.txt",
        f"dist pagerank {GRAPH} --grid 2x2",
        f"dist match {GRAPH} -o {tmp_path}/out.csv",
    ]
    done = mpiexec(2, PARTS, *lines, "dist info", *bad, timeout=240)
    told = done.lines
    assert told.count("0 True ") == len(lines) + 1
    assert told.count("0 False ") == len(lines) + 1
    assert told.count("2 False ") == len(bad)
    errors = [line for line in told if line.startswith("2 False matchwood: ")]
    assert len(errors) == len(bad)
    assert any("none.txt" in line for line in errors)
    assert any("grid must have as many places as ranks" in line for line in errors)
    assert any(".npy" in line for line in errors)
    for verb, path in outputs.items():
        assert right(verb, path), verb
