"""A text list of two million edges: file to finished matrix, against parsing alone.

`np.fromstring` gets the text in memory and gives back one array of numbers; `read` opens the file,
finds comments, checks every line, and builds a matrix with sorted rows.  The last line of peers
does that much with NumPy and SciPy.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import matchwood
from bench import harness

EDGES = 2_000_000
VERTICES = 1 << 18


def edges() -> Any:
    """Distinct edges in random order."""
    rng = np.random.default_rng(harness.SEED)
    keys = np.unique(rng.integers(0, VERTICES * VERTICES, EDGES + EDGES // 8))
    keys = rng.permutation(keys)[:EDGES]
    return keys // VERTICES, keys % VERTICES, rng.random(EDGES)


def case(folder: Path, weighted: bool) -> harness.Result:
    u, v, w = edges()
    A = sp.csr_array((w if weighted else np.ones(EDGES), (u, v)), shape=(VERTICES, VERTICES))
    path = folder / "list.txt"
    table = zip(u.tolist(), v.tolist(), w.tolist(), strict=True)
    if weighted:
        text = "".join(f"{a}\t{b}\t{c!r}\n" for a, b, c in table)
    else:
        text = "".join(f"{a}\t{b}\n" for a, b, _ in table)
    path.write_text(f"# Nodes: {VERTICES} Edges: {EDGES}\n{text}")
    columns = 3 if weighted else 2

    def with_numpy() -> Any:
        table = np.fromstring(path.read_text().split("\n", 1)[1], sep=" ").reshape(-1, columns)
        rows, cols = table[:, 0].astype(np.int32), table[:, 1].astype(np.int32)
        data = table[:, 2] if weighted else np.ones(rows.size)
        return sp.csr_array((data, (rows, cols)), shape=(VERTICES, VERTICES))

    def verify(name: str, answer: Any) -> None:
        if sp.issparse(answer):
            assert answer.shape == A.shape
            assert (answer != A).nnz == 0, name

    functions: dict[str, Callable[[], Any]] = {
        "matchwood, file to matrix": lambda: matchwood.io.read(path),
        "matchwood, 1 thread": lambda: matchwood.io.read(path, threads=1),
        "np.fromstring, text to numbers": lambda: np.fromstring(text, sep=" "),
        "np.loadtxt, file to numbers": lambda: np.loadtxt(path),
        "np.fromstring and SciPy, file to matrix": with_numpy,
    }
    if not weighted:
        functions["np.fromstring, int64"] = lambda: np.fromstring(text, np.int64, sep=" ")
    pandas = harness.peer("pandas")
    if pandas is not None:
        functions["pandas.read_csv, file to numbers"] = lambda: pandas.read_csv(
            path, sep="\t", comment="#", header=None
        )
    kind = "weighted edges" if weighted else "edges"
    return harness.compare(
        f"a list of {EDGES:,} {kind}, {path.stat().st_size / 1e6:.0f} MB of text",
        functions,
        verify=verify,
        baseline="np.fromstring, text to numbers",
        bars={"matchwood, file to matrix": 1.0},
    )


def run() -> list[harness.Result]:
    """Both lists."""
    with tempfile.TemporaryDirectory() as folder:
        return [case(Path(folder), weighted) for weighted in (False, True)]


if __name__ == "__main__":
    harness.main(run)
