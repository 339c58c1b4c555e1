"""`-o FILE` is replaced whole or not at all; pipes are written directly."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from forked import forked_script
from matchwood.cli import app
from matchwood.cli.load import parsed

SUFFIXES = [".npy", ".npz", ".txt", ".csv"]


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="no limit on the size of files there")
def test_full_disk_leaves_the_old_result(tmp_path: Path) -> None:
    """A limit on the size of files stands for a disk that is full."""
    folder = tmp_path / "results"
    folder.mkdir()
    paths = [folder / name for name in ("bfs.npy", "mst.npz", "mis.csv")]
    for path in paths:
        path.write_bytes(b"what was here")
    script = """
        import contextlib, io, pathlib, resource, signal, sys
        import matchwood.cli
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, -1))
        for path in sys.argv[1:]:
            sys.argv[1:] = [pathlib.Path(path).stem, "path:30000", "-o", path]
            said = io.StringIO()
            with contextlib.redirect_stderr(said):
                try:
                    matchwood.cli.main()
                except SystemExit as left:
                    print(left.code, "File too large" in said.getvalue())
    """
    said = forked_script(tmp_path, script, *map(str, paths))
    assert said.splitlines() == ["2 True"] * 3
    assert all(path.read_bytes() == b"what was here" for path in paths)
    assert sorted(folder.iterdir()) == sorted(paths)


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
