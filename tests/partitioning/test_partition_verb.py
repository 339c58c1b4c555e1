"""`matchwood partition`, and the files of labels that partitioners write."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import matchwood
from matchwood.cli import app
from support import run_verb, run_verb_json


def test_json_and_files(tmp_path: Path) -> None:
    file, picture = tmp_path / "labels.txt", tmp_path / "blocks.png"
    words = ("partition", "grid:12x15", "-k", "6", "--check", "-o", str(file), "--plot",
             str(picture))  # fmt: skip
    told = run_verb_json(*words)
    assert (told["vertices"], told["blocks"], told["excess"]) == (180, 6, 0)
    assert told["heaviest"] <= told["limit"]
    assert told["checked"] is True
    labels = matchwood.io.read_partition(file)
    expected = matchwood.partition(matchwood.generators.grid((12, 15)), 6)
    assert labels.tolist() == expected.labels.tolist()
    assert told["cut"] == expected.cut
    assert picture.read_bytes()[:4] == b"\x89PNG"


def test_table() -> None:
    assert "2 blocks of path:30" in run_verb("partition", "path:30", "--connected").output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-k", "31"), "k must be at most 30"),
        (("--imbalance", "-1"), "imbalance must be"),
        (("--effort", "7"), "effort"),
    ],
)
def test_errors(words: tuple[str, ...], message: str) -> None:
    result = CliRunner().invoke(app, ["partition", "path:30", *words])
    assert result.exit_code == 2
    assert message in result.output


def test_files_of_labels(tmp_path: Path) -> None:
    for name in ("a.part.3", "a.part.3.gz"):
        path = tmp_path / name
        matchwood.io.write_partition(path, np.array([2, 0, 1, 1]))
        assert matchwood.io.read_partition(path).tolist() == [2, 0, 1, 1]
    for text, line in (
        ("0\n1", 2),
        ("0\n-1\n", 2),
        ("0\n\n1\n", 2),
        ("0 1\n", 1),
        ("x\n", 1),
        ("1.0\n", 1),
    ):
        path = tmp_path / "wrong.part.2"
        path.write_text(text)
        with pytest.raises(matchwood.FileFormatError, match=rf"wrong\.part\.2.*{line}") as told:
            matchwood.io.read_partition(path)
        assert "strict" not in str(told.value)  # there is no such option
    path.write_text("")
    assert matchwood.io.read_partition(path).size == 0
    with pytest.raises(ValueError, match="write_partition: labels must be at least 0, got -1 at 1"):
        matchwood.io.write_partition(path, [0, -1])
    with pytest.raises(TypeError, match="write_partition: labels must hold integers"):
        matchwood.io.write_partition(path, [0.5])
