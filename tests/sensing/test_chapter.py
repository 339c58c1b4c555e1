"""The script that makes the chapter's tables and figures again: it runs, and runs can be merged."""

from __future__ import annotations

import json

import pytest

from bench.papers.mandulak import sensing as chapter
from bench.papers.mandulak import sensing_figures as chapter_figures


@pytest.fixture(scope="module")
def result():
    return chapter.merged([chapter.measure(12, "cpu", runs=1)])


@pytest.mark.slow
def test_every_row_is_there(result):
    (run,) = result["runs"]
    ours = [row for row in run["rows"] if row["engine"] == "cpu"]
    assert {row["batches"] for row in ours} == set(chapter.BATCHES)
    assert all(row["analysis_s"] > 0 and row["end_to_end_s"] > 0 for row in ours)
    assert len(run["quantities"]) == 9
    assert run["quantities"]["valid_packets"] == 1 << 12


@pytest.mark.slow
def test_runs_of_other_machines_are_merged(result, tmp_path, capsys):
    (run,) = result["runs"]
    rows = [{**row, "engine": "gpu", "where": "1 GPU"} for row in run["rows"]]
    other = {**run, "engine": "gpu", "exponent": 30, "rows": rows}
    files = [tmp_path / "cpu.json", tmp_path / "gpu.json"]
    files[0].write_text(json.dumps(result))
    files[1].write_text(json.dumps({"runs": [other]}))
    out = tmp_path / "out"
    chapter.main(["--draw", "--out", str(out), "--merge", *map(str, files)])
    found = json.loads((out / chapter.NAME).read_text())
    assert [one["engine"] for one in found["runs"]] == ["cpu", "gpu"]
    told = capsys.readouterr().out
    for words in ("Table 3.1", "Table 3.2", "24,061,441", "1 GPU", "64.23"):
        assert words in told
    pytest.importorskip("matplotlib")
    assert len(list(out.glob("*.svg"))) == 3


def test_the_page_shows_what_was_measured():
    """Numbers on the page are those of the file."""
    from bench import harness

    page = (harness.ROOT / "docs" / "problems" / "sensing.rst").read_text()
    folder = harness.ROOT / "docs" / "_static" / "measured"
    result = json.loads((folder / chapter.NAME).read_text())
    run = next(run for run in result["runs"] if run["engine"] == "cpu")
    for name, value in run["quantities"].items():
        assert f"``{name}``" in page
        assert f"{value:,}" in page
    best = max(row["packets_per_s"] for row in run["rows"] if row["batches"] == 1)
    assert f"{best:,.0f}" in page
    for picture in ("analysis", "speedup", "end_to_end"):
        assert (folder / f"sensing_{picture}.svg").exists()
    assert chapter_figures.peer_of(run) is not None
