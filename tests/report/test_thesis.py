"""The thesis' benchmark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import matchwood
from bench.papers.cichra import libraries, show, timing
from bench.papers.cichra.__main__ import main


@pytest.fixture(scope="module")
def quick() -> dict[str, Any]:
    """The quick run, without other libraries: theirs are tested apart."""
    return timing.run(quick=True, threads=2, repeats=1, peers=False)


def test_thesis_columns(quick: dict[str, Any]) -> None:
    random = [row for row in quick["results"] if row["density"] is not None]
    assert len(random) == len(timing.QUICK_SIZES) * len(timing.TASKS)
    for row in random:
        cpu, host = row["seconds"]["CPU"], row["seconds"]["HOST"]
        assert row["comparison"]["HOST x CPU"] == cpu / host
        assert row["thread_efficiency"] == cpu / (2 * host)
        assert row["verified"] == "checked"
        assert not row["notes"]
    assert quick["machine"]["architecture"]
    json.dumps(quick)


@pytest.mark.slow
def test_thesis_tables_and_plots(quick: dict[str, Any], tmp_path: Path) -> None:
    from rich.console import Console

    pytest.importorskip("matplotlib")
    console = Console(width=150, record=True, file=open(tmp_path / "out", "w"))  # noqa: SIM115
    for table in show.tables(quick):
        console.print(table)
    text = console.export_text()
    for words in ("CC, density 0.65", "HOST x CPU", "TE", "MSF"):
        assert words in text
    written = show.plots(quick, tmp_path / "plots")
    assert [path.name for path in written] == ["cc.svg", "scc.svg", "mis.svg", "msf.svg"]
    assert all(path.read_text().lstrip().startswith("<?xml") for path in written)


def test_libraries_agree() -> None:
    """Every library that is installed, on one small graph: no note says that one is wrong."""
    A = matchwood.generators.dense_random(60, 0.1, directed=True, rng=1)
    installed = libraries.installed()
    assert "SciPy" in installed
    found = timing.run(graphs=[("small", A)], threads=2, repeats=1)
    for row, task in zip(found["results"], timing.TASKS, strict=True):
        assert row["notes"] == []
        asked = {name for name, library in installed.items() if task.short in library.calls}
        assert asked <= row["seconds"].keys()


def test_a_wrong_library_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = {
        "CC": lambda case: 17,
        "MIS": lambda case: np.ones(case.n, bool),
        "MSF": lambda case: 0.0,
    }
    monkeypatch.setattr(libraries, "installed", lambda: {"other": libraries.Library("1", wrong)})
    A = matchwood.generators.path(5)
    found = timing.run(graphs=[("path", A)], threads=1, repeats=1)
    notes = {row["problem"]: row["notes"] for row in found["results"]}
    assert all("the answer of other is wrong" in notes[name][0] for name in wrong)
    assert notes["SCC"] == []


def test_slow_libraries_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "SLOW", 0.0)
    graphs = [("one", matchwood.generators.path(5)), ("two", matchwood.generators.path(6))]
    found = timing.run(graphs=graphs, threads=1, repeats=1)
    first, second = found["results"][:4], found["results"][4:]
    assert all("SciPy" not in row["seconds"] for row in second)
    assert any("SciPy" in row["seconds"] for row in first)


def test_thesis_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "thesis.json"
    assert main(["-g", "path:30", "--repeats", "1", "-o", str(out)]) == 0
    assert "real graphs" in capsys.readouterr().out
    found = json.loads(out.read_text())
    assert [row["problem"] for row in found["results"]] == ["CC", "SCC", "MIS", "MSF"]


def test_real_graphs_of_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "graphs"
    folder.mkdir()
    matchwood.io.write(folder / "small.mtx", matchwood.generators.path(9))
    (folder / "names.txt").write_text("not a graph at all\n")
    monkeypatch.setenv("MATCHWOOD_DATA", str(tmp_path))
    cases = list(timing.real_cases(timing.data_folder()))
    assert [case.name for case in cases] == ["small"]
    monkeypatch.delenv("MATCHWOOD_DATA")
    assert timing.data_folder() is None
    assert list(timing.real_cases(None)) == []
    assert timing._stem("USA-road-d.NY.gr.gz") == "USA-road-d.NY"


def test_every_method_has_a_row_of_its_own() -> None:
    grid = matchwood.generators.grid((6, 6))
    found = timing.run(graphs=[("grid", grid)], repeats=1, methods=True)
    named = [row["problem"] for row in found["results"]]
    expected = {
        f"{problem} {method}"
        for problem, methods in timing.METHODS.items()
        for method, places in methods.items()
        if places != ("GPU",)
    }
    assert set(named) - {"SCC propagation"} == expected
    assert all(row["verified"] == "checked" and row["seconds"] for row in found["results"])
    assert found["libraries"] == {}


def test_plots_without_matplotlib_are_refused_before_any_work(monkeypatch: Any) -> None:
    monkeypatch.setattr(show.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(timing, "run", lambda **options: pytest.fail("timed all the same"))
    with pytest.raises(SystemExit, match="matplotlib"):
        main(["--quick", "--plots", "plots"])


@pytest.mark.slow
def test_beside_the_thesis(tmp_path: Path) -> None:
    """The thesis' numbers, and ours of the same size and density beside them."""
    from bench.papers.cichra import beside

    numbers = beside.printed()
    assert len(numbers) == 6 * 3 * len(timing.SIZES)
    assert numbers["CC_opt2", 0.65, 8000] == {"CPU": 203.0, "HOST": 7.82, "GPU": 0.0339}
    found = timing.run(sizes=(40,), threads=2, repeats=1, peers=False, methods=True)
    assert {row["density"] for row in found["results"]} == set(timing.DENSITIES)
    assert {"prepared", "prepared with weights"} <= found["results"][-1]["preparing"].keys()
    for row in found["results"]:
        row["n"] = 8000  # as if it had been that large
    (tmp_path / "ours.json").write_text(json.dumps(found))
    pytest.importorskip("matplotlib")
    beside.main([str(tmp_path / "ours.json"), "--out", str(tmp_path)])
    assert len((tmp_path / "thesis_printed.csv").read_text().splitlines()) == 1 + 18
    text = (tmp_path / "thesis_times.txt").read_text()
    assert text.count("CC_opt2,0.65") == 1
    assert "MIS_lex3" in text


def test_only_the_engines_that_were_asked_for() -> None:
    graphs = [("path", matchwood.generators.path(30))]
    found = timing.run(graphs=graphs, threads=2, repeats=1, methods=True, places=("HOST",))
    assert {row["problem"] for row in found["results"]} >= {"CC fastsv", "MIS luby"}
    assert all(set(row["seconds"]) == {"HOST"} for row in found["results"])
    assert not timing.run(graphs=graphs, repeats=1, places=("HOST",))["libraries"]


def test_a_run_that_is_cut_off_leaves_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "thesis.json"
    measure = timing.measure

    def cut(task: Any, *rest: Any) -> timing.Row:
        if task.short == "MSF":
            raise KeyboardInterrupt
        return measure(task, *rest)

    monkeypatch.setattr(timing, "measure", cut)
    with pytest.raises(KeyboardInterrupt):
        main(["-g", "path:30", "--repeats", "1", "--libraries", "SciPy", "-o", str(out)])
    found = json.loads(out.read_text())
    assert [row["problem"] for row in found["results"]] == ["CC", "SCC", "MIS"]
    assert list(found["libraries"]) == ["SciPy"]


@pytest.mark.slow
def test_only_the_problems_that_were_asked_for() -> None:
    options: dict[str, Any] = {"graphs": [("path", matchwood.generators.path(30))], "repeats": 1}
    found = timing.run(**options, problems=["MIS"], peers=[])
    assert [row["problem"] for row in found["results"]] == ["MIS"]
    found = timing.run(**options, problems=["CC", "MSF"], methods=True)
    assert {row["problem"].split()[0] for row in found["results"]} == {"CC", "MSF"}
