"""The benchmark harness: verifies before it times, and says where its numbers come from."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

import numpy as np
import pytest

from bench import compare, harness, run, turns
from dist.mpi import mpiexec
from matchwood import registry


def test_compare_gives_ratios_to_the_baseline(monkeypatch):
    clock = [0.0]

    def takes(seconds):
        clock[0] += seconds * (1 + len(calls) % 3)
        calls.append(seconds)

    calls: list[float] = []
    monkeypatch.setattr(harness.time, "perf_counter", lambda: clock[0])
    result = harness.compare(
        "ticking",
        {"scipy": lambda: takes(0.5), "ours": lambda: takes(0.0625)},
        bars={"ours": 2.0},
        quiet=True,
    )
    rows = result["rows"]
    assert rows["scipy"]["ratio"] == 1.0
    assert rows["ours"]["ratio"] == rows["scipy"]["median"] / rows["ours"]["median"] > 2
    assert rows["ours"]["bar"] == 2.0
    assert result["rounds"] >= 5
    assert all(len(row["times"]) == result["rounds"] for row in rows.values())
    assert rows["ours"]["best"] <= rows["ours"]["median"]


def test_nothing_is_timed_before_all_answers_are_verified():
    calls = []

    def verify(name, answer):
        assert answer == name
        if name == "wrong":
            raise ValueError("a wrong answer")

    functions = {
        name: lambda name=name: calls.append(name) or name for name in ("right", "wrong", "late")
    }
    with pytest.raises(ValueError, match="a wrong answer"):
        harness.compare("", functions, verify=verify, quiet=True)
    assert calls == ["right", "wrong"]


def test_rounds_alternate():
    calls = []
    functions = {name: lambda name=name: calls.append(name) for name in "ab"}
    harness.compare("", functions, baseline="a", rounds=6, quiet=True)
    timed = "".join(calls[4:])  # after the first call and the one that measures how long it takes
    assert timed.startswith("abbaab")


def test_without_the_baseline_there_are_no_ratios(capsys):
    result = harness.compare("only one", {"ours": lambda: None}, sync=lambda: None)
    assert "ratio" not in result["rows"]["ours"]
    assert "only one" in capsys.readouterr().out


def test_tables_show_times_ratios_and_bars(capsys):
    rows = {
        "scipy": {"median": 2.0, "best": 1.5, "times": [2.0], "ratio": 1.0},
        "ours": {"median": 4e-4, "best": 3e-4, "times": [4e-4], "ratio": 5e3, "bar": 9.0},
        "slow": {"median": 2.5, "best": 2.5, "times": [2.5], "ratio": 0.8, "bar": 1.0},
    }
    harness.show({"title": "a table", "baseline": "scipy", "rounds": 5, "rows": rows})
    printed = capsys.readouterr().out
    for text in ("a table", "2.00 s", "400.0 us", "5000.00x", "9x met", "missed"):
        assert text in printed


def test_results_carry_their_origin(tmp_path):
    path = tmp_path / "folder" / "results.json"
    harness.write([harness.compare("t", {"ours": lambda: None}, quiet=True)], path)
    written = json.loads(path.read_text())
    assert written["results"][0]["title"] == "t"
    origin = written["environment"]
    assert origin["versions"]["numpy"] == np.__version__
    assert origin["threads"] >= 1
    assert origin["machine"]["cpus"] >= 1
    assert {"commit", "time", "load"} <= origin.keys()


@pytest.mark.parametrize(
    ("A", "n", "nnz"),
    [
        (harness.grid(5), 25, 80),
        (harness.mesh(3), 27, 26 + 8 * 7 + 12 * 11 + 6 * 17),
        (harness.rmat(6), 64, None),
        (harness.delaunay(50), 50, None),
    ],
    ids=["grid", "mesh", "rmat", "delaunay"],
)
def test_standard_graphs_are_undirected_and_canonical(A, n, nnz):
    assert A.shape == (n, n)
    assert nnz is None or A.nnz == nnz
    assert A.nnz > 0
    assert (abs(A - A.T)).nnz == 0
    assert A.diagonal().sum() == 0
    assert A.has_canonical_format
    assert A.indices.dtype == np.int32
    assert (A.data == 1).all()


def test_a_peer_that_is_not_installed_is_none():
    assert harness.peer("json") is json
    assert harness.peer("surely_not_installed") is None


def test_run_finds_the_benchmarks(capsys):
    assert "bench.engines.cpu.overhead" in run.names()
    assert "bench.harness" not in run.names()
    assert run.main(["--list", "overhead"]) == 0
    assert capsys.readouterr().out.split() == ["bench.engines.cpu.overhead"]
    assert run.main(["surely-nothing"]) == 2


def test_run_writes_what_worked_and_tells_what_broke(tmp_path, monkeypatch, capsys):
    def works():
        return [harness.compare("t", {"ours": lambda: None}, quiet=True)]

    class Fine:
        run = staticmethod(works)

    modules = {"bench.fine": Fine}  # bench.broken is not there: importing it fails
    monkeypatch.setattr(run, "names", lambda: ["bench.broken", "bench.fine"])
    monkeypatch.setattr(run.importlib, "import_module", lambda name: modules[name])
    path = tmp_path / "results.json"
    assert run.main(["--json", str(path)]) == 1
    assert [result["benchmark"] for result in json.loads(path.read_text())["results"]] == [
        "bench.fine"
    ]
    assert "broken: bench.broken" in capsys.readouterr().out


def written(path, **rows):
    """A file of results with one comparison."""
    content = {"results": [{"benchmark": "bench.x", "title": "t", "rows": rows}]}
    path.write_text(json.dumps(content))
    return path


def row(best, ratio=None):
    return {"best": best, "median": best, "times": [best]} | (
        {} if ratio is None else {"ratio": ratio}
    )


def test_two_results_are_compared_side_by_side(tmp_path, capsys):
    """A ratio counts before a time: a machine that is slower today slows both sides."""
    old = written(
        tmp_path / "old.json",
        scipy=row(1.0, 1.0), same=row(0.1, 10.0), slow=row(0.1, 10.0), alone=row(0.2), gone=row(1),
    )  # fmt: skip
    new = written(
        tmp_path / "new.json",
        scipy=row(2.0, 1.0), same=row(0.2, 10.0), slow=row(0.4, 5.0), alone=row(0.3), fresh=row(1),
    )  # fmt: skip
    found = {one.name: one for one in compare.rows(compare.read(old), compare.read(new))}
    assert found["same"].quotient == 1.0
    assert found["slow"].quotient == 2.0
    assert found["alone"].quotient == pytest.approx(1.5)
    assert found["gone"].quotient is None
    assert found["fresh"].quotient is None
    assert [name for name in found if compare.is_slower(found[name])] == ["scipy", "slow", "alone"]
    assert compare.main([str(old), str(new)]) == 1
    printed = capsys.readouterr().out
    assert "2.000 slower" in printed
    assert "absent" in printed
    assert "6 entries, 3 slower by more than 5%" in printed
    assert compare.main([str(old), str(old)]) == 0


def test_turns_time_every_problem():
    assert {entry.function for entry in registry.PROBLEMS} <= set(turns.CASES)
    on_ranks = {entry.function for entry in registry.PROBLEMS if "ranks" in entry.engines}
    assert on_ranks <= set(turns.ON_RANKS)


@pytest.mark.slow
def test_every_case_of_the_turns_runs():
    tree = str(harness.ROOT / "src")
    command = [sys.executable, "-m", "bench.turns", "--tree", tree, "--scale=-7"]
    done = subprocess.run(command, cwd=harness.ROOT, capture_output=True, text=True, check=True)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row for row in rows if row[2] is None] == []
    assert {row[0] for row in rows} >= {"arrays", "R-MAT 9"}


@pytest.mark.slow
@pytest.mark.mpi
def test_the_turns_of_ranks_run(tmp_path):
    script = tmp_path / "turn.py"
    script.write_text("import sys\nfrom bench import turns\nturns.main(sys.argv[1:])\n")
    tree = f"--tree={harness.ROOT / 'src'}"
    done = mpiexec(2, script, tree, "--scale=-7", "--engine=ranks", "--threads=1")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row for row in rows if row[2] is None] == []
    assert {row[1] for row in rows if row[0] == "R-MAT 9"} == set(turns.ON_RANKS)


def test_turns_find_what_is_slower_fails_or_has_another_answer(capsys):
    same = {"old": 1.0, "new": 1.0, "old answer": 7, "new answer": 7}
    found = {
        ("grid", "as before"): same,
        ("grid", "slower"): {**same, "new": 1.2},
        ("grid", "other"): {**same, "new answer": 8},
        ("grid", "fails"): {"old": 1.0, "old answer": 7, "new fault": "ValueError: no"},
        ("grid", "is new"): {"new": 1.0, "new answer": 7, "old fault": "AttributeError: no"},
    }
    wrong = turns.judged(found, 1.1)
    assert [text.split()[1] for text in wrong] == ["slower:", "other:", "fails:"]
    assert "1.20" in capsys.readouterr().out


def test_a_record_says_what_is_slower_or_fails(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(turns, "RECORDS", tmp_path)
    options = argparse.Namespace(engine="cpu", threads=2, scale=1, turns=1, record=True)
    found = {("arrays", "copy"): {"new": 1.0}, ("grid", "f"): {"new": 2.0}}
    assert turns.against_record(found, options, 1.3) == []
    options.record = False
    found = {**found, ("grid", "f"): {"new": 3.0}, ("grid", "g"): {"new fault": "ValueError: no"}}
    wrong = turns.against_record(found, options, 1.3)
    assert wrong == ["grid: g: ValueError: no", "grid: f: slower by 1.50"]
    assert "1.50" in capsys.readouterr().out
