"""`matchwood mis`, and the thesis' benchmark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import matchwood
from matchwood.cli import app
from matchwood.report import independent, thesis, thesis_peers, thesis_show


def run(*words: str) -> str:
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize("method", ["luby", "lexicographic", "luby_sampling"])
def test_mis(method: str, tmp_path: Path) -> None:
    out = tmp_path / "set.npz"
    text = run("mis", "rmat:7", "--method", method, "--seed", "4", "--check", "--json",
               "-o", str(out))  # fmt: skip
    found = json.loads(text)
    A = matchwood.generators.rmat(7)
    members = matchwood.maximal_independent_set(A, method=method, rng=4)
    assert (found["vertices"], found["members"]) == (128, int(members.sum()))
    assert found["checked"] is True
    written = np.load(out)
    assert np.array_equal(written["member"], members)
    assert written["count"] == members.sum()


def test_mis_in_words(tmp_path: Path) -> None:
    text = run("mis", "star:9", "--check", "-o", str(tmp_path / "set.csv"))
    assert "8" in text
    assert "right" in text
    assert (tmp_path / "set.csv").read_text().startswith("vertex,member\n0,0\n1,1\n")


def test_mis_refuses_what_it_does_not_know() -> None:
    result = CliRunner().invoke(app, ["mis", "star:9", "--method", "greedy"])
    assert result.exit_code == 2


def test_the_picture() -> None:
    sketch = independent.sketch(80)
    assert len(sketch.drawings) == 2
    assert "members" in sketch.drawings[0].markup()


@pytest.fixture(scope="module")
def quick() -> dict[str, Any]:
    """The quick run, without other libraries: theirs are tested apart."""
    return thesis.run(quick=True, threads=2, repeats=1, peers=False)


def test_thesis_columns(quick: dict[str, Any]) -> None:
    random = [row for row in quick["results"] if row["density"] is not None]
    assert len(random) == len(thesis.QUICK_SIZES) * len(thesis.TASKS)
    for row in random:
        cpu, host = row["seconds"]["CPU"], row["seconds"]["HOST"]
        assert row["comparison"]["HOST x CPU"] == cpu / host
        assert row["thread_efficiency"] == cpu / (2 * host)
        assert row["verified"] == "checked"
        assert not row["notes"]
    assert quick["machine"]["architecture"]
    json.dumps(quick)


def test_thesis_tables_and_plots(quick: dict[str, Any], tmp_path: Path) -> None:
    from rich.console import Console

    pytest.importorskip("matplotlib")
    console = Console(width=150, record=True, file=open(tmp_path / "out", "w"))  # noqa: SIM115
    for table in thesis_show.tables(quick):
        console.print(table)
    text = console.export_text()
    for words in ("CC, density 0.65", "HOST x CPU", "TE", "MSF"):
        assert words in text
    written = thesis_show.plots(quick, tmp_path / "plots")
    assert [path.name for path in written] == ["cc.svg", "scc.svg", "mis.svg", "msf.svg"]
    assert all(path.read_text().lstrip().startswith("<?xml") for path in written)


def test_libraries_agree() -> None:
    """Every library that is installed, on one small graph: no note says that one is wrong."""
    A = matchwood.generators.dense_random(60, 0.1, directed=True, rng=1)
    libraries = thesis_peers.installed()
    assert "SciPy" in libraries
    found = thesis.run(graphs=[("small", A)], threads=2, repeats=1)
    for row, task in zip(found["results"], thesis.TASKS, strict=True):
        assert row["notes"] == []
        asked = {name for name, library in libraries.items() if task.short in library.calls}
        assert asked <= row["seconds"].keys()


def test_a_wrong_library_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = {
        "CC": lambda case: 17,
        "MIS": lambda case: np.ones(case.n, bool),
        "MSF": lambda case: 0.0,
    }
    monkeypatch.setattr(
        thesis_peers, "installed", lambda: {"other": thesis_peers.Library("1", wrong)}
    )
    A = matchwood.generators.path(5)
    found = thesis.run(graphs=[("path", A)], threads=1, repeats=1)
    notes = {row["problem"]: row["notes"] for row in found["results"]}
    assert all("the answer of other is wrong" in notes[name][0] for name in wrong)
    assert notes["SCC"] == []


def test_slow_libraries_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thesis, "PATIENCE", 0.0)
    graphs = [("one", matchwood.generators.path(5)), ("two", matchwood.generators.path(6))]
    found = thesis.run(graphs=graphs, threads=1, repeats=1)
    first, second = found["results"][:4], found["results"][4:]
    assert all("SciPy" not in row["seconds"] for row in second)
    assert any("SciPy" in row["seconds"] for row in first)


def test_thesis_on_the_command_line(tmp_path: Path) -> None:
    out = tmp_path / "thesis.json"
    text = run("bench", "thesis", "-g", "path:30", "--repeats", "1", "-o", str(out))
    assert "real graphs" in text
    found = json.loads(out.read_text())
    assert [row["problem"] for row in found["results"]] == ["CC", "SCC", "MIS", "MSF"]
    for words in (["thesis", "bfs"], ["bfs", "--quick"], ["--plots", str(tmp_path)]):
        result = CliRunner().invoke(app, ["bench", *words])
        assert result.exit_code == 2


def test_real_graphs_of_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "graphs"
    folder.mkdir()
    matchwood.io.write(folder / "small.mtx", matchwood.generators.path(9))
    (folder / "names.txt").write_text("not a graph at all\n")
    monkeypatch.setenv("MATCHWOOD_DATA", str(tmp_path))
    cases = list(thesis.real_cases(thesis.data_folder()))
    assert [case.name for case in cases] == ["small"]
    monkeypatch.delenv("MATCHWOOD_DATA")
    assert thesis.data_folder() is None
    assert list(thesis.real_cases(None)) == []
    assert thesis._stem("USA-road-d.NY.gr.gz") == "USA-road-d.NY"
