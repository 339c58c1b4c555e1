"""Archives of windows of 2^17 packets, zstd level 1, against python-graphblas and tarfile.

Nearly all of the time goes into zstd, the same code on both sides.  Both may use all cores; one
thread of each is shown beside it.
"""

from __future__ import annotations

import io
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from bench import harness
from matchwood import generators
from matchwood.engines.cpu import default_threads
from matchwood.sensing import read_archive, traffic_matrix, write_archive

WINDOW = 1 << 17
WINDOWS = 16


def their_write(path: Path, matrices: list[Any]) -> None:
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        for k, matrix in enumerate(matrices):
            content = matrix.ss.serialize("zstd", level=1)
            member = tarfile.TarInfo(f"{k}.grb")
            member.size = content.nbytes
            archive.addfile(member, io.BytesIO(content))


def their_read(gb: Any, path: Path) -> int:
    entries = 0
    with tarfile.open(path) as archive:
        for member in archive:
            stream = archive.extractfile(member)
            assert stream is not None
            content = np.frombuffer(stream.read(), np.uint8)
            entries += gb.Matrix.ss.deserialize(content).nvals
    return entries


def our_read(path: Path, threads: int | None = None) -> int:
    return sum(matrix.links for matrix in read_archive(path, threads=threads))


def with_threads(gb: Any, threads: int, function: Any, *arguments: Any) -> Any:
    gb.ss.config["nthreads"] = threads
    return function(*arguments)


def compare(gb: Any, kind: str, folder: Path) -> list[harness.Result]:
    src, dst = generators.packets(WINDOW * WINDOWS, kind, rng=3)
    cuts = range(0, src.size, WINDOW)
    ours = [traffic_matrix(src[k : k + WINDOW], dst[k : k + WINDOW]) for k in cuts]
    theirs = []
    for matrix in ours:
        source, destination, packets = matrix.tocoo()
        theirs.append(
            gb.Matrix.from_coo(
                source.astype(np.uint64), destination.astype(np.uint64), packets,
                nrows=2**32, ncols=2**32, dtype="UINT32",
            )
        )  # fmt: skip
    every = default_threads()
    mine, other = folder / "ours.tar", folder / "theirs.tar"
    write_archive(mine, ours)
    their_write(other, theirs)
    assert list(read_archive(other)) == ours
    assert their_read(gb, mine) == our_read(mine) == sum(matrix.links for matrix in ours)
    return [
        harness.compare(
            f"archives, {kind}, writing",
            {
                "matchwood": lambda: write_archive(mine, ours),
                "matchwood, 1 thread": lambda: write_archive(mine, ours, threads=1),
                "python-graphblas": lambda: with_threads(gb, every, their_write, other, theirs),
                "python-graphblas, 1 thread": lambda: with_threads(
                    gb, 1, their_write, other, theirs
                ),
            },
            baseline="python-graphblas",
            bars={"matchwood": 1.0},
        ),
        harness.compare(
            f"archives, {kind}, reading",
            {
                "matchwood": lambda: our_read(other),
                "matchwood, 1 thread": lambda: our_read(other, 1),
                "python-graphblas": lambda: with_threads(gb, every, their_read, gb, other),
                "python-graphblas, 1 thread": lambda: with_threads(gb, 1, their_read, gb, other),
            },
            baseline="python-graphblas",
            bars={"matchwood": 1.2},
        ),
    ]


def run() -> list[harness.Result]:
    try:
        import graphblas as gb
    except ImportError:
        print("python-graphblas is not installed: nothing to compare with")
        return []
    with tempfile.TemporaryDirectory() as folder:
        uniform, zipf = (compare(gb, kind, Path(folder)) for kind in ("uniform", "zipf"))
        return uniform + zipf


if __name__ == "__main__":
    harness.main(run)
