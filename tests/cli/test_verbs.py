"""Every verb: tables for people, JSON for programs, result files, and the same answer as Python."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

import matchwood
from matchwood.cli import app
from support import run_verb as run
from support import run_verb_json as run_json

SMALL = sp.csr_array(([1.0, 1, 1, 1], ([0, 1, 3, 5], [1, 2, 4, 5])), shape=(7, 7))


@pytest.fixture
def small(tmp_path: Path) -> str:
    path = tmp_path / "small.mtx"
    scipy.io.mmwrite(path, SMALL.tocoo())
    return str(path)


VERBS = sorted(command.name or "" for command in app.registered_commands)


def test_without_a_verb_help_is_shown() -> None:
    text = run().stdout
    for verb in VERBS:
        assert verb in text


def test_version() -> None:
    assert run("--version").stdout == f"matchwood {matchwood.__version__}\n"


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(verb: str) -> None:
    assert "--json" in run(verb, "--help").stdout


def test_info(small: str) -> None:
    facts = run_json("info", small)
    assert (facts["rows"], facts["columns"], facts["entries"]) == (7, 7, 4)
    assert (facts["edges"], facts["loops"], facts["isolated"]) == (3, 1, 2)
    assert facts["symmetric_pattern"] is False
    assert (facts["components"], facts["largest_component"]) == (4, 3)
    text = run("info", small).stdout
    assert "no: directed" in text
    assert "7 x 7" in text


def test_info_of_a_symmetric_matrix() -> None:
    facts = run_json("info", "aniso:1,6x7")
    assert facts["symmetric_pattern"] is True
    assert facts["symmetric_values"] is True
    assert facts["loops"] == 42
    assert "yes" in run("info", "aniso:1,6x7").stdout


def test_info_of_a_rectangular_matrix(tmp_path: Path) -> None:
    path = tmp_path / "r.mtx"
    scipy.io.mmwrite(path, sp.coo_array(np.ones((2, 3))))
    facts = run_json("info", str(path))
    assert (facts["rows"], facts["columns"]) == (2, 3)
    assert "components" not in facts
    assert "2 x 3" in run("info", str(path)).stdout


def test_components(small: str) -> None:
    facts = run_json("components", small, "--check")
    assert facts["components"] == 4
    assert facts["largest"][0] == {"component": 0, "vertices": 3}
    assert facts["checked"] is True
    text = run("components", small, "--check").stdout
    assert "42.9%" in text
    assert "right" in text


@pytest.mark.parametrize("method", ["auto", "afforest", "fastsv", "bfs"])
def test_components_by_every_method(small: str, method: str, tmp_path: Path) -> None:
    out = tmp_path / "labels.npy"
    run("components", small, "--method", method, "-o", str(out), "--threads", "2")
    np.testing.assert_array_equal(np.load(out), [0, 0, 0, 1, 1, 2, 3])


def test_reference_engine(small: str) -> None:
    assert run_json("components", small, "--engine", "reference")["components"] == 4
    assert run_json("bfs", small, "--engine", "reference")["reached"] == 3


def test_component_files(small: str, tmp_path: Path) -> None:
    want = [0, 0, 0, 1, 1, 2, 3]
    for suffix in ("npy", "npz", "txt", "csv"):
        out = tmp_path / f"labels.{suffix}"
        assert run_json("components", small, "-o", str(out))["output"] == str(out)
    np.testing.assert_array_equal(np.load(tmp_path / "labels.npy"), want)
    with np.load(tmp_path / "labels.npz") as loaded:
        assert sorted(loaded) == ["count", "label"]
        assert int(loaded["count"]) == 4
        np.testing.assert_array_equal(loaded["label"], want)
    assert (tmp_path / "labels.txt").read_text() == "".join(f"{x}\n" for x in want)
    lines = (tmp_path / "labels.csv").read_text().splitlines()
    assert lines == ["vertex,label", *(f"{v},{x}" for v, x in enumerate(want))]


def test_bfs(small: str) -> None:
    facts = run_json("bfs", small, "--check")
    assert facts["sources"] == [0]
    assert facts["level_sizes"] == [1, 1, 1]
    assert facts["reached"] == 3
    text = run("bfs", small, "-s", "0", "-s", "3", "--check").stdout
    assert "71.4%" in text
    assert "0, 3" in text


def test_bfs_options(small: str) -> None:
    assert run_json("bfs", small, "--depth-limit", "1", "--check")["level_sizes"] == [1, 1]
    backwards = run_json("bfs", small, "--source", "2", "--undirected", "--check")
    assert backwards["level_sizes"] == [1, 1, 1]


def test_bfs_files(small: str, tmp_path: Path) -> None:
    level, parent = [0, 1, 2, -1, -1, -1, -1], [0, 0, 1, -1, -1, -1, -1]
    for suffix in ("npy", "npz", "txt", "csv"):
        run("bfs", small, "-o", str(tmp_path / f"x.{suffix}"))
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), np.column_stack((level, parent)))
    with np.load(tmp_path / "x.npz") as loaded:
        np.testing.assert_array_equal(loaded["level"], level)
        np.testing.assert_array_equal(loaded["parent"], parent)
        assert int(loaded["rounds"]) == 2
    assert (tmp_path / "x.txt").read_text().splitlines()[2:4] == ["2 1", "-1 -1"]
    assert (tmp_path / "x.csv").read_text().splitlines()[:3] == [
        "vertex,level,parent",
        "0,0,0",
        "1,1,0",
    ]


def test_many_levels_are_shortened() -> None:
    lines = run("bfs", "path:100").stdout.splitlines()
    assert any("..." in line for line in lines)
    assert len(lines) < 40


def test_convert(small: str, tmp_path: Path) -> None:
    out = tmp_path / "small.npz"
    facts = run_json("convert", small, str(out))
    assert facts["entries"] == 4
    assert facts["bytes"] == out.stat().st_size
    back = tmp_path / "back.mtx.gz"
    assert "7 x 7" in run("convert", str(out), str(back)).stdout
    np.testing.assert_array_equal(matchwood.io.read(back).toarray(), SMALL.toarray())


@pytest.mark.slow
def test_config() -> None:
    facts = run_json("config")
    assert facts["matchwood"] == matchwood.__version__
    assert facts["cpu"]["threads"] >= 1
    assert "numba" in run("config").stdout


@pytest.mark.slow
def test_bench_on_a_graph(small: str, tmp_path: Path) -> None:
    out = tmp_path / "bench.json"
    facts = run_json(
        "bench", "components", "bfs", "-g", small, "-g", "path:50", "--repeats", "2", "-o", str(out)
    )
    assert [(r["problem"], r["graph"]) for r in facts["results"]] == [
        ("connected components", small),
        ("connected components", "path:50"),
        ("breadth-first search", small),
        ("breadth-first search", "path:50"),
    ]
    for result in facts["results"]:
        assert result["times_scipy"]["prepared"] > 0
    assert json.loads(out.read_text())["results"] == facts["results"]
    assert "beside SciPy" in run("bench", "bfs", "-g", "path:50", "--repeats", "1").stdout


def test_demo(tmp_path: Path) -> None:
    out = tmp_path / "demo.html"
    facts = run_json("demo", "--size", "tiny", "-o", str(out))
    assert facts["all_right"] is True
    assert out.read_text().startswith("<!doctype html>")
    text = run("demo", "--size", "tiny", "-o", str(out)).stdout
    assert "all of them right" in text
    assert text.index("right: ") < text.index("graphs") < text.index("times")
    every = run_json("demo", "--size", "tiny", "--all", "-o", str(out))
    assert len(every["results"]) == len(facts["results"]) * len(every["graphs"])


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_warmup() -> None:
    assert run_json("warmup")["seconds"] > 0


@pytest.fixture
def flights(tmp_path: Path) -> str:
    path = tmp_path / "flights.csv"
    path.write_text("from,to\n7,20\n20,30\n900,7\n41,42\n")
    return str(path)


def test_compact_keeps_the_ids(flights: str, tmp_path: Path) -> None:
    facts = run_json("bfs", flights, "--compact", "-s", "900", "--check")
    assert facts["vertices"] == 6
    assert facts["level_sizes"] == [1, 1, 1, 1]
    run("components", flights, "--compact", "-o", str(tmp_path / "x.csv"))
    rows = (tmp_path / "x.csv").read_text().splitlines()
    assert rows == ["vertex,label", "7,0", "20,0", "30,0", "41,1", "42,1", "900,0"]
    run("components", flights, "--compact", "-o", str(tmp_path / "x.npz"))
    with np.load(tmp_path / "x.npz") as loaded:
        np.testing.assert_array_equal(loaded["id"], [7, 20, 30, 41, 42, 900])


def test_how_to_read_can_be_said(flights: str, tmp_path: Path) -> None:
    facts = run_json("info", flights, "--read", "symmetric=yes")
    assert facts["symmetric_pattern"] is True
    path = tmp_path / "people.txt"
    path.write_text('ada grace\ngrace "mary"\n')
    facts = run_json("bfs", str(path), "--read", "names=yes", "-s", "ada")
    assert facts["reached"] == 3
    out = tmp_path / "people.csv"
    run("bfs", str(path), "--read", "names=yes", "-s", "ada", "-o", str(out))
    rows = out.read_text().splitlines()[1:]
    assert sorted(rows) == ['"""mary""",2,grace', "ada,0,ada", "grace,1,ada"]
    run("bfs", str(path), "--read", "names=yes", "-s", "grace", "-o", str(out))
    assert "ada,-1,-1" in out.read_text().splitlines()


def test_values_can_be_left_out(tmp_path: Path) -> None:
    """Real files hold infinite weights."""
    path = tmp_path / "infinite.mtx"
    path.write_text("%%MatrixMarket matrix coordinate real general\n3 3 2\n1 2 inf\n2 3 nan\n")
    with pytest.raises(AssertionError, match="must be finite"):
        run("match", str(path))
    assert run_json("match", str(path), "--pattern")["edges"] == 1
    assert matchwood.io.read(path, pattern=True).data.tolist() == [1.0, 1.0]
    assert matchwood.io.read(path, pattern=True, dtype=np.int64).data.dtype == np.int64
    with pytest.raises(TypeError, match="read: pattern"):
        matchwood.io.read(path, pattern="yes")


def test_convert_to_a_name_without_suffix(tmp_path: Path) -> None:
    run("convert", "path:5", str(tmp_path / "plain"), "--format", "mtx")
    assert matchwood.io.read(tmp_path / "plain", format="mtx").shape == (5, 5)


def test_coarsening_is_checked() -> None:
    for method in ("auto", "proposal", "random"):
        assert run_json("coarsen", "rmat:7", "--method", method, "--check")["checked"] is True
