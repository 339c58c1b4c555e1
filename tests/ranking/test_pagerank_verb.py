"""`matchwood pagerank`: files, numbers, and the same answer as Python."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from typer.testing import CliRunner

import matchwood
from matchwood.cli import app
from support import run_verb_json as run_json


def test_pagerank(tmp_path: Path) -> None:
    scores = tmp_path / "scores.npy"
    some = run_json("pagerank", "rmat:8", "--personalization", "3", "--personalization", "5=2",
                    "--check")  # fmt: skip
    starts = np.zeros(256)
    starts[[3, 5]] = 1, 2
    wanted = matchwood.pagerank(matchwood.generators.rmat(8), personalization=starts).scores
    assert some["top"][0]["score"] == wanted.max()
    facts = run_json("pagerank", "rmat:8", "--check", "-o", str(scores), "--damping", "0.8")
    found = matchwood.pagerank(matchwood.generators.rmat(8), damping=0.8)
    assert np.array_equal(np.load(scores), found.scores)
    assert facts["iterations"] == found.iterations
    assert facts["converged"] is True
    assert facts["top"][0]["vertex"] == int(found.scores.argmax())
    assert len(facts["top"]) == 10


def test_pagerank_for_people() -> None:
    words = ["pagerank", "star:9", "--weighted", "--max-iterations"]
    for iterations, code in (("2", 1), ("200", 0)):  # 1: shown, but it did not converge
        result = CliRunner().invoke(app, [*words, iterations])
        assert result.exit_code == code
        assert "highest scores" in result.stdout
        assert "converged" in result.stdout


def test_pagerank_refuses() -> None:
    for words, message in [
        (("--damping", "1"), "damping must be at least 0 and less than 1"),
        (("--tol", "-1"), "tol must be finite and at least 0"),
        (("--personalization", "1=x"), "the weight must be a number"),
        (("--personalization", "10"), "there are the vertices 0 to 8"),
        (("--personalization", "-1=2"), "there are the vertices 0 to 8"),
    ]:
        result = CliRunner().invoke(app, ["pagerank", "star:9", *words])
        assert result.exit_code == 2
        assert message in " ".join(result.stderr.split())
