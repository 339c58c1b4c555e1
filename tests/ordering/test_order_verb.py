"""`matchwood order`: files, measures, pictures, and the same answer as Python."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from typer.testing import CliRunner

import matchwood
from matchwood.cli import app
from support import run_verb as run
from support import run_verb_json as run_json


@pytest.fixture
def file(tmp_path: Path) -> str:
    A = matchwood.generators.delaunay(300, rng=1)
    scipy.io.mmwrite(tmp_path / "a.mtx", A.tocoo())
    return str(tmp_path / "a.mtx")


@pytest.mark.slow
def test_order(file: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    perm, other, picture = (tmp_path / name for name in ("perm.npy", "b.mtx", "spy.png"))
    facts = run_json(
        "order", file, "--method", "rcm", "--check", "-o", str(perm),
        "--permuted", str(other), "--plot", str(picture),
    )  # fmt: skip
    A = sp.csr_array(matchwood.io.read(file))
    expected = matchwood.reverse_cuthill_mckee(A)
    assert np.array_equal(np.load(perm), expected)
    B = sp.csr_array(matchwood.io.read(other))
    assert abs(B - A[expected][:, expected]).sum() == 0
    assert facts["before"]["bandwidth"] == matchwood.bandwidth(A)
    assert facts["after"]["bandwidth"] == matchwood.bandwidth(B)
    assert facts["checked"] is True
    assert picture.stat().st_size > 1000


def test_order_for_people(file: str) -> None:
    text = run("order", file, "--method", "cm", "-s", "5", "--algorithm", "batch").stdout
    assert "bandwidth" in text
    assert "rms wavefront" in text


def test_refinement_of_the_order_as_it_is(file: str) -> None:
    """The command line had neither natural, --sweeps, --partners nor the kinds of hub orders."""
    A = matchwood.io.read(file)
    words = ("--method", "natural", "--refine", "log_gap", "--fraction", "0.5")
    found = run_json("order", file, *words, "--sweeps", "3", "--partners", "median", "--check")
    right = matchwood.refine_order(A, fraction=0.5, sweeps=3, partners="median")
    assert found["after"] == asdict(matchwood.gaps(A, right.perm))
    assert found["before"] == asdict(matchwood.gaps(A))
    assert found["counters"]["sweeps"] == right.sweeps
    for kind in ("sort", "cluster", "group"):
        found = run_json("order", file, "--method", "hub", "--hub", kind, "--check")
        assert found["after"] == asdict(matchwood.gaps(A, matchwood.hub_order(A, method=kind)))
    chosen = run_json("order", file, "--method", "auto", "--check")
    tried = chosen["counters"]["tried"]
    assert chosen["after"]["log_gap"] == min(tried.values())
    for words, message in (
        (("--method", "rabbit", "--sweeps", "2"), "--sweeps says how --refine works"),
        (("--method", "rabbit", "--hub", "group"), "--hub is for --method hub"),
    ):
        result = CliRunner().invoke(app, ["order", file, *words])
        assert result.exit_code == 2
        assert message in result.stderr


def test_a_page_about_an_order(file: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    for method in ("rcm", "auto", "natural", "dissection"):
        told = run_json("order", file, "--method", method, "--html", str(page))
        assert told["html"] == str(page)
        text = page.read_text()
        assert text.count("<svg") == 3
        assert "Before" in text
        assert ("Tried on a part" in text) == (method == "auto")
    result = CliRunner().invoke(app, ["order", file, "--html", str(tmp_path / "page.txt")])
    assert result.exit_code == 2
    assert "must end in .html" in result.stderr
    empty = run_json("order", "path:1", "--html", str(page))
    assert empty["vertices"] == 1


@pytest.mark.slow
def test_order_refuses(file: str, tmp_path: Path) -> None:
    missing = tmp_path / "none" / "b.mtx"
    for words, message in [
        (
            ("--method", "best"),
            "--method must be one of rcm, cm, auto, natural, rabbit, shingle, llp,",
        ),
        (("--refine", "log_gap"), "--refine is for orders other than rcm and cm"),
        (("--method", "hub", "-s", "1"), "--start is for rcm and cm"),
        (("--method", "rabbit", "--algorithm", "batch"), "--algorithm is for rcm and cm"),
        (("--method", "hub", "--refine", "best"), "refine must be one of"),
        (("--algorithm", "best"), "method must be one of"),
        (("--permuted", str(missing)), "there is no folder"),
        (("-s", "999"), "start must be vertices 0..299, got 999"),
    ]:
        result = CliRunner().invoke(app, ["order", file, *words])
        assert result.exit_code == 2
        assert message in " ".join(result.stderr.split())


@pytest.mark.slow
def test_orders_that_keep_neighbours_together(file: str, tmp_path: Path) -> None:
    A = sp.csr_array(matchwood.io.read(file))
    perm = tmp_path / "perm.npy"
    for method in ("rabbit", "shingle", "llp", "degree", "hub"):
        facts = run_json("order", file, "--method", method, "--check", "-o", str(perm))
        found = matchwood.locality_ordering(A, method)
        assert np.array_equal(np.load(perm), found.perm)
        assert facts["after"]["log_gap"] == found.after.log_gap
    facts = run_json(
        "order", file, "--method", "rabbit", "--refine", "log_gap", "--fraction", "1", "--check"
    )
    refined = matchwood.refine_order(A, matchwood.rabbit_order(A), fraction=1)
    assert facts["after"]["log_gap"] == refined.after
    assert facts["counters"]["kept"] == refined.kept


@pytest.mark.slow
def test_orders_with_little_fill(file: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    A = sp.csr_array(matchwood.io.read(file))
    perm, picture = tmp_path / "perm.npy", tmp_path / "spy.png"
    facts = run_json(
        "order", file, "--method", "dissection", "--rng", "3", "--check", "-o", str(perm)
    )
    found = matchwood.nested_dissection(A, rng=3)
    assert np.array_equal(np.load(perm), found.perm)
    assert facts["after"]["operations"] == found.fill.operations
    assert facts["before"]["entries"] == matchwood.fill(A).entries
    assert facts["counters"]["separators"] == found.separators.sum()
    facts = run_json(
        "order", file, "--method", "minimum_degree", "--check", "-o", str(perm),
        "--plot", str(picture),
    )  # fmt: skip
    assert np.array_equal(np.load(perm), matchwood.minimum_degree(A))
    assert facts["checked"] is True
    assert picture.stat().st_size > 1000
    result = CliRunner().invoke(
        app, ["order", file, "--method", "dissection", "--refine", "log_gap"]
    )
    assert result.exit_code == 2


def test_minimum_degree_for_people(file: str) -> None:
    text = run("order", file, "--method", "minimum_degree").stdout
    assert "operations" in text
    assert "height" in text


def test_rabbit_for_people(file: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "spy.png"
    text = run("order", file, "--method", "rabbit", "--plot", str(picture)).stdout
    assert "log gap" in text
    assert "communities" in text
    assert picture.stat().st_size > 1000
