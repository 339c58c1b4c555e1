"""The script for the table and the figures of the paper on RCM."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.io

pytest.importorskip("bench.papers.mlakar.table1", reason="the benchmarks are not beside the tests")

from bench.papers.mlakar import figures as rcm_figures
from bench.papers.mlakar import table1
from bench.papers.mlakar.printed import PAPER
from matchwood import generators

ON_GPU = {
    "gpu leveled": 0.002, "gpu batch": 0.004, "gpu default": 0.005, "gpu search": 0.003,
    "copies to the CPU": 0.006, "copies to the GPU": 0.005, "scipy": 0.02,
}  # fmt: skip


def test_numbers_of_the_paper() -> None:
    """CPU-RCM is 5.8 times faster than HSL on average, and BATCH 1.14 times faster than BASIC."""
    assert len(PAPER) == 26
    assert np.mean([row.hsl / row.serial for row in PAPER.values()]) == pytest.approx(5.8, abs=1)
    gain = np.mean([row.batch_basic / row.batch for row in PAPER.values()])
    assert gain == pytest.approx(1.14, abs=0.02)
    assert all(row.after <= 1.01 * row.before for row in PAPER.values())


def test_mycielski_graphs() -> None:
    A = table1.mycielskian(6)
    assert A.shape == (47, 47)
    assert A.nnz == 2 * 236


@pytest.mark.slow
def test_counts_times_and_stages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    A = generators.delaunay(300, rng=1)
    scipy.io.mmwrite(tmp_path / "bodyy4.mtx", A)
    kept = tmp_path / "rcm.json"
    arguments = ["--data", str(tmp_path), "--grid", "30", "--json", str(kept)]
    only = ["--only", "bodyy4", "ecology1", "mycielskian9"]
    table1.main([*arguments, *only])
    table1.main([*arguments, *only[:3], "--times", "--stages", "--threads", "1", "2"])
    whole = json.loads(kept.read_text())
    assert set(whole["environments"]) == {"counts", "cpu"}
    found = whole["results"]
    assert list(found) == ["bodyy4", "ecology1", "mycielskian9"]
    assert found["ecology1"]["before"] == found["ecology1"]["after"] == 30
    assert {"scipy", "default", "raw", "search", "batch, 2"} <= found["bodyy4"][
        "seconds, cpu"
    ].keys()
    for counted in found["bodyy4"]["stages"].values():
        assert counted["generated"] >= counted["dequeued"] >= counted["executed"]
    assert "3 matrices" in capsys.readouterr().out

    pytest.importorskip("matplotlib")
    table1.main(["--draw", str(kept), "--out", str(tmp_path)])
    assert "5.3k" not in (tmp_path / "rcm_table_1.csv").read_text()
    assert "start given" in (tmp_path / "rcm_times.txt").read_text()
    assert "executed" in (tmp_path / "rcm_stages.txt").read_text()
    for number in (2, 3, 4, 5, 6):
        assert (tmp_path / f"rcm_figure_{number}.svg").exists()

    whole["results"]["bodyy4"]["seconds, gpu"] = ON_GPU
    kept.write_text(json.dumps(whole))
    table1.main(["--draw", str(kept), "--out", str(tmp_path)])
    line = "bodyy4,20.00,2.00,4.00,3.00,5.00,5.00,10.00,4.00,2.00"  # SciPy beside 2, 5 and 5 + 5
    assert line in (tmp_path / "rcm_times.txt").read_text()


def test_bars_of_a_matrix_on_both_sides() -> None:
    cpu = {"scipy": 0.1, "search": 0.01, "default": 0.06, "auto, 1": 0.05, "auto, 2": 0.04}
    cpu |= {f"{method}, 1": 0.03 for method in ("serial", "leveled", "batch")}
    found = rcm_figures.bars({"seconds, cpu": cpu, "seconds, gpu": ON_GPU})
    assert found["SciPy"] == (0.1, 0.0, 0.006)
    assert found["serial"] == (0.03, 0.01, 0.006)
    assert found["default"] == pytest.approx((0.04, 0.02, 0.006))
    assert found["GPU batch"] == (0.004, 0.003, 0.005)
    assert found["GPU default"] == pytest.approx((0.002, 0.003, 0.005))
    assert list(rcm_figures.bars({"seconds, cpu": cpu})) == [*found][:5]


@pytest.mark.gpu
def test_times_of_the_gpu(tmp_path: Path) -> None:
    arguments = ["--data", str(tmp_path), "--grid", "60", "--only", "ecology1", "--times"]
    found = table1.main([*arguments, "--engine", "gpu"])
    seconds = found["ecology1"]["seconds, gpu"]
    assert ON_GPU.keys() == seconds.keys()
    assert min(seconds.values()) > 0
