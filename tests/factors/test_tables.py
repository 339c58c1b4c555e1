"""The script that prints the paper's tables runs, and small matrices come close to them already."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

pytest.importorskip(
    "bench.papers.klein_strzodka.tables", reason="the benchmarks are not beside the tests"
)

from bench.papers.klein_strzodka import figure3, settings, tables
from bench.papers.klein_strzodka.printed import PAPER
from matchwood import generators


@pytest.mark.slow
def test_tables(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Generated matrices, one of the paper's from a file, and one more file."""
    weights = generators.random_weights(generators.grid((9, 9)), rng=1)
    A = sp.csr_array(weights + sp.diags_array(np.full(81, 9.0)))
    (tmp_path / "data").mkdir()
    scipy.io.mmwrite(tmp_path / "data" / "thermal2.mtx", A)
    scipy.io.mmwrite(tmp_path / "more.mtx", A)
    kept = tmp_path / "tables.json"
    far = tables.main(
        [
            *("--side", "150", "--grid", "120", "--data", str(tmp_path / "data")),
            *("--json", str(kept), "--only", "aniso1", "aniso3", "ecology1", "--"),
            str(tmp_path / "more.mtx"),
        ]
    )
    printed = capsys.readouterr().out
    assert far <= 2  # c(5) without charges on equal weights shrinks with the size of the grid
    for word in ("Table 3", "Table 4", "Table 5", "aniso3", "more", "not at hand"):
        assert word in printed
    tables.main(["--only", "thermal2", "--data", str(tmp_path / "data"), "--json", str(kept)])
    results = json.loads(kept.read_text())["results"]
    assert list(results) == ["aniso1", "aniso3", "ecology1", "more", "thermal2"]
    assert results["more"] == results["thermal2"]
    assert "instead" in results["ecology1"]

    pytest.importorskip("matplotlib")
    tables.main(["--draw", str(kept), "--out", str(tmp_path)])
    rows = (tmp_path / "factors_table_5.csv").read_text().splitlines()
    assert len(rows) == 1 + len(PAPER) + 1
    assert rows[1].startswith("af_shell8,- (0.01)")
    assert (tmp_path / "factors_table_5.svg").exists()


def test_numbers_of_the_paper() -> None:
    """What the paper says of its own tables: where the greedy factor gains most, and least."""
    assert len(PAPER) == 22
    most = max(PAPER, key=lambda name: PAPER[name].greedy[0] - PAPER[name].parallel[0])
    assert most == "atmosmodm"
    for paper in PAPER.values():
        assert max(paper.off_at_0[0], paper.c_id, *paper.greedy) <= 1
        assert paper.off_at_0[0] == paper.parallel[1]  # in both tables


@pytest.mark.slow
def test_settings(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    settings.show({"aniso2": generators.aniso(2, (20, 20))}, 20, Console(width=150))
    assert "five rounds" in capsys.readouterr().out


@pytest.mark.slow
def test_proposals_beside_a_product(tmp_path: Path) -> None:
    arguments = ["--side", "20", "--grid", "20", "--data", str(tmp_path), "--only", "aniso1"]
    kept = tmp_path / "figure3.json"
    found = figure3.main([*arguments, "--json", str(kept)])
    seconds = found["cpu"]["aniso1"]["seconds"]
    assert {"A @ x", "n=1, threads=1", "n=4, threads=1"} <= seconds.keys()
    pytest.importorskip("matplotlib")
    figure3.main(["--draw", str(kept), "--out", str(tmp_path)])
    assert (tmp_path / "factors_figure_3.svg").exists()
    assert "aniso1" in (tmp_path / "factors_figure_3.txt").read_text()


@pytest.mark.gpu
def test_proposals_beside_a_product_on_the_gpu(tmp_path: Path) -> None:
    arguments = ["--side", "60", "--data", str(tmp_path), "--only", "aniso1", "--engine", "gpu"]
    found = figure3.main(arguments)
    passes = {f"n={n}, {k} round" for n in figure3.SIZES for k in ("first", "second")}
    assert {"A @ x", *passes} == found["gpu"]["aniso1"]["seconds"].keys()
