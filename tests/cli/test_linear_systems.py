"""`matchwood precondition` and `matchwood solve`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from typer.testing import CliRunner

import matchwood
from matchwood.cli import app

MATRIX = "aniso:2,shape=20x20"


def run(*arguments: str) -> str:
    found = CliRunner().invoke(app, list(arguments))
    assert found.exit_code == 0, found.output
    return str(found.stdout)


def test_precondition() -> None:
    facts = json.loads(run("precondition", MATRIX, "--json"))
    assert facts["rows"] == 400
    rows = facts["preconditioners"]
    assert rows["jacobi"]["coverage"] == 0
    assert rows["algebraic_tridiagonal"]["coverage"] > rows["tridiagonal"]["coverage"]
    assert "factor" in rows["algebraic_tridiagonal"]["phases"]
    shown = run("precondition", MATRIX, "--kind", "algebraic_block_tridiagonal", "-m", "1")
    long = ("--period", "1", "--rounds", "5", "--ties", "index", "--rng", "0")
    assert "algebraic block tridiagonal" in run("precondition", MATRIX, *long)
    assert "algebraic block tridiagonal" in shown
    assert "jacobi" not in shown
    assert "level 0" in run("precondition", MATRIX, "--kind", "multilevel")


def test_solve(tmp_path: Path) -> None:
    facts = json.loads(run("solve", MATRIX, "-p", "all", "--json"))
    found = facts["solutions"]
    assert len(found) == 6
    assert all(answer["converged"] for answer in found.values())
    steps = {name: answer["iterations"] for name, answer in found.items()}
    assert steps["multilevel"] < steps["algebraic_tridiagonal"] < steps["jacobi"]
    assert facts["method"] == "bicgstab, fcg"
    assert found["jacobi"]["errors"][-1] < 1e-4
    assert "algebraic tridiagonal" in run("solve", MATRIX)


def test_solve_a_file(tmp_path: Path) -> None:
    A = matchwood.generators.aniso(1, (12, 12))
    x = np.arange(144.0)
    matchwood.io.write(tmp_path / "a.mtx", A)
    scipy.io.mmwrite(tmp_path / "b.mtx", (A @ x)[:, None])
    np.save(tmp_path / "b.npy", A @ x)
    np.savetxt(tmp_path / "b.txt", A @ x)
    for name in ("b.mtx", "b.npy", "b.txt"):
        out = tmp_path / f"{name}.x.npy"
        run(
            "solve",
            str(tmp_path / "a.mtx"),
            str(tmp_path / name),
            "--rtol",
            "1e-12",
            "-o",
            str(out),
        )
        assert np.allclose(np.load(out), x, atol=1e-6)


@pytest.mark.slow
def test_plot(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    run("solve", MATRIX, "-p", "all", "--method", "cg", "--plot", str(tmp_path / "h.svg"))
    assert (tmp_path / "h.svg").read_text().count("<path") > 5


@pytest.mark.slow
def test_a_plot_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch) -> None:
    figure = pytest.importorskip("matplotlib.figure")
    path = tmp_path / "h.svg"
    path.write_text("old")

    def full_disk(self, stream, **options):
        stream.write(b"<svg")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(figure.Figure, "savefig", full_disk)
    found = CliRunner().invoke(app, ["solve", MATRIX, "--method", "cg", "--plot", str(path)])
    assert found.exit_code != 0
    assert path.read_text() == "old"
    assert [item.name for item in tmp_path.iterdir()] == ["h.svg"]


def test_faults_are_one_line(tmp_path: Path) -> None:
    np.save(tmp_path / "b.npy", np.ones(3))
    for arguments, message in [
        (("solve", MATRIX, str(tmp_path / "b.npy")), "must have 400 numbers"),
        (("solve", MATRIX, "-p", "ilu"), "preconditioner must be one of"),
        (("solve", MATRIX, "--plot", "x.doc"), "must end in .svg"),
        (("precondition", MATRIX, "--kind", "ilu"), "--kind must be one of"),
    ]:
        found = CliRunner().invoke(app, list(arguments))
        assert found.exit_code == 2
        assert message in found.output.replace("\n", " ")
