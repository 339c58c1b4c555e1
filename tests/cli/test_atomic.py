"""`-o FILE` is replaced whole or not at all; pipes are written directly."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from matchwood.cli import app
from matchwood.cli.load import parsed
from support import environment

SUFFIXES = [".npy", ".npz", ".txt", ".csv"]


@pytest.mark.skipif(os.name == "nt", reason="no limit on the size of files there")
@pytest.mark.parametrize(("verb", "suffix"), [("bfs", ".npy"), ("mst", ".npz"), ("mis", ".csv")])
def test_full_disk_leaves_the_old_result(tmp_path: Path, suffix: str, verb: str) -> None:
    """A limit on the size of files stands for a disk that is full."""
    path = tmp_path / f"a{suffix}"
    path.write_bytes(b"what was here")
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "import matchwood.cli;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, -1)); matchwood.cli.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, verb, "path:30000", "-o", str(path)],
        env=environment(), capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "File too large" in done.stderr
    assert path.read_bytes() == b"what was here"
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_pipes(tmp_path: Path, suffix: str) -> None:
    path, plain = tmp_path / f"pipe{suffix}", tmp_path / f"plain{suffix}"
    os.mkfifo(path)
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(path.read_bytes()), daemon=True)
    reader.start()
    for target in (path, plain):
        result = CliRunner().invoke(app, ["components", "path:5", "-o", str(target)])
        assert result.exit_code == 0, result.output
    reader.join(120)
    assert found == [plain.read_bytes()]
    assert path.is_fifo()


def test_results_are_those_of_numpy(tmp_path: Path) -> None:
    for suffix in (".npy", ".npz"):
        path = tmp_path / f"a{suffix}"
        assert CliRunner().invoke(app, ["bfs", "path:4", "-o", str(path)]).exit_code == 0
    assert np.load(tmp_path / "a.npy").tolist() == [[0, 0], [1, 0], [2, 1], [3, 2]]
    with np.load(tmp_path / "a.npz") as named:
        assert named["level"].tolist() == [0, 1, 2, 3]
        assert named["rounds"].ndim == 0


def test_places_where_no_file_can_be(tmp_path: Path) -> None:
    (tmp_path / "a.npy").mkdir()
    (tmp_path / "a.mtx").mkdir()
    for words in (
        ["components", "path:5", "-o", str(tmp_path / "a.npy")],
        ["generate", "path", "5", "-o", str(tmp_path / "a.mtx")],
        ["convert", "path:5", str(tmp_path / "a.mtx")],
    ):
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 2
        assert "that is a folder" in result.output


@pytest.mark.parametrize(
    "text", ["{[]:1}", "(" * 5000, "9" * 5000, "-" * 100_000 + "1", "1 if", "{1:2", "\0", "b'"]
)
def test_any_word_can_be_typed(text: str) -> None:
    assert parsed(text) == text


@pytest.mark.parametrize(
    "graph",
    ["path:1000000000000000000", "grid:99999999999x99999999999", "rmat:39", "path:1e400",
     "complete:4000000", "delaunay:1000000000000", "rmat:4,edge_factor=1e300", "path:{[]:1}"],
)  # fmt: skip
def test_graphs_that_do_not_fit(graph: str) -> None:
    result = CliRunner().invoke(app, ["info", graph])
    assert result.exit_code == 2
    assert "Error" not in result.output
    assert graph.partition(":")[0] in result.output
