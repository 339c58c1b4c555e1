"""The script for the figures of the paper on greedy matching."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import scipy.io

pytest.importorskip(
    "bench.papers.fagginger_auer.greedy", reason="the benchmarks are not beside the tests"
)

from bench.papers.fagginger_auer import greedy
from matchwood import generators


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A matrix with weights, and one without that is not square."""
    A = generators.random_weights(generators.grid((9, 9)), rng=1)
    scipy.io.mmwrite(tmp_path / "weights.mtx", A)
    scipy.io.mmwrite(tmp_path / "tall.mtx", A[:, :5])
    return tmp_path


@pytest.mark.slow
def test_counts_and_times(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = folder / "greedy.json"
    arguments = ["--small", "--data", str(folder), "--only", "grid", "--json", str(kept)]
    greedy.main(arguments)
    greedy.main([*arguments, "--times", "--threads", "1", "2"])
    assert "tall.mtx is left out" in capsys.readouterr().out
    whole = json.loads(kept.read_text())
    assert set(whole["environments"]) == {"counts", "cpu"}
    found = whole["results"]
    assert list(found["section 4"]) == ["grid", "weights"]
    row = found["section 4"]["weights"]
    assert row["own weights"]
    assert row["permutations"] == greedy.SMALL_PERMUTATIONS
    assert 0.8 < row["size"] < 1.2
    assert row["weight of 2"] <= 1
    assert row["size, deviation"] >= 0
    assert set(found["figure 4"]["grid"]) == {"1", "2"}
    assert "seconds" in found["figure 3"]["grid"]["rows"][0]
    assert set(found["figure 5, cpu"]) == {"grid", "weights"}

    pytest.importorskip("matplotlib")
    greedy.main(["--draw", str(kept), "--out", str(folder)])
    assert "115 %" in (folder / "greedy_section_4.csv").read_text()
    assert "over 2" in (folder / "greedy_times.txt").read_text()
    for name in ("figure_2", "figure_3", "figure_4", "figure_5", "section_4"):
        assert (folder / f"greedy_{name}.svg").exists()


@pytest.mark.gpu
def test_times_of_the_gpu(folder: Path) -> None:
    arguments = ["--small", "--data", str(folder), "--only", "grid", "--times", "--engine", "gpu"]
    found = greedy.main(arguments)
    assert set(found) == {"figure 5, gpu"}
    assert {"random, 3", "weighted, 3"} <= found["figure 5, gpu"]["grid"]["seconds"].keys()
