"""Random graphs, shares, grids, orders, layouts and batches: always the graph of one machine."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import matchwood
from adversarial.clock import attempts
from matchwood import dist, io
from matchwood.gate.distributed import collecting
from matchwood.gate.entries import DUPLICATES
from spread_graphs import blocks, compare, tried, whole

KINDS = (None, np.float32, np.float64, np.int64, np.int32, np.uint8, np.bool_, np.float16)
VALUES = (0.0, -0.0, 1.0, -1.0, 1.5, 3e38, 1e-45, 1e16, 7.25)


def drawn(rng):
    """(n, edges, weights or None): small, with duplicates, loops, zeros and both signs."""
    n = int(rng.integers(1, 30))
    m = int(rng.integers(0, 120))
    span = int(rng.integers(1, n + 1))  # few vertices: many duplicates
    edges = rng.integers(0, span, (m, 2))
    if rng.random() < 0.3:
        edges = np.concatenate([edges, edges[:, ::-1]])
    kind = KINDS[int(rng.integers(len(KINDS)))]
    if kind is None:
        return n, edges, None
    values = (
        rng.choice(VALUES, len(edges)) if rng.random() < 0.5 else 9 * rng.normal(size=len(edges))
    )
    with np.errstate(all="ignore"):
        limited = np.clip(values, 0 if np.dtype(kind).kind in "bu" else -100, 200)
        return n, edges, (values if np.dtype(kind).kind == "f" else limited).astype(kind)


def shares(rng, m, size):
    """Where the parts of the ranks begin and end; some are empty."""
    cuts = (
        np.sort(rng.integers(0, m + 1, size - 1)) if rng.random() < 0.8 else np.zeros(size - 1, int)
    )
    return [0, *cuts.tolist(), m]


@pytest.mark.slow
def test_any_way_to_spread_a_graph(monkeypatch, tmp_path):
    rng = np.random.default_rng(2024)
    for _ in attempts(1):
        n, edges, weights = drawn(rng)
        rule = DUPLICATES[int(rng.integers(len(DUPLICATES)))]
        R, C = int(rng.integers(1, 5)), int(rng.integers(1, 5))
        order = ("given", "hashed", "auto")[int(rng.integers(3))]
        layout = ("stripes", "ranges")[int(rng.integers(2))]
        monkeypatch.setattr(collecting, "BATCH", int(rng.choice([3, 17, 1 << 20])))
        bounds = shares(rng, len(edges), R * C)
        A = (n, edges) if weights is None else (n, edges, weights)
        case = (A, rule, (R, C), order, layout, bounds)
        expected = tried(lambda A=A, rule=rule: whole(matchwood.graph(A, duplicates=rule)))

        def work(comm, case=case):
            A, rule, (R, C), order, layout, bounds = case
            mine = slice(bounds[comm.rank], bounds[comm.rank + 1])
            return tried(
                lambda: blocks(
                    matchwood.distribute(
                        (A[0], *(part[mine] for part in A[1:])), comm=comm, grid=(R, C),
                        order=order, layout=layout, duplicates=rule,
                    )
                )
            )  # fmt: skip

        found = dist.run(work, R * C)
        if isinstance(expected, str):
            assert set(found) == {expected.replace(" graph:", " distribute:")}, case
        else:
            assert not any(isinstance(each, str) for each in found), (found[0], case)
            compare(found, expected)


@pytest.mark.slow
def test_any_text_cut_anywhere(tmp_path):
    """Lines of any length, blanks, comments and faults: the graph or the error of one machine."""
    rng = np.random.default_rng(7)
    path = tmp_path / "list.txt"
    for _ in attempts(0.7):
        lines = []
        for _ in range(int(rng.integers(0, 40))):
            u, v = rng.integers(0, 10 ** int(rng.integers(1, 4)), 2)
            gap = " " * int(rng.integers(1, 5))
            lines.append(f"{u}{gap}{v}")
        for _ in range(int(rng.integers(0, 4))):
            at = int(rng.integers(0, len(lines) + 1))
            lines.insert(at, str(rng.choice(["", "# x" * 30, "   ", "% y", "\t"])))
        if rng.random() < 0.3:
            at = int(rng.integers(0, len(lines) + 1))
            lines.insert(
                at, str(rng.choice(["1", "a b", "1 2 3", "-1 2", "1 2x", "1 99999999999999"]))
            )
        text = "\n".join(lines) + ("\n" if rng.random() < 0.9 else "")
        path.write_text(text)
        symmetric, size = bool(rng.random() < 0.5), int(rng.integers(1, 9))
        options = {"symmetric": symmetric, "strict": bool(rng.random() < 0.7)}
        alone = tried(lambda options=options: whole(matchwood.graph(io.read(path, **options))))
        found = dist.run(
            lambda comm, options=options: tried(
                lambda: blocks(io.read(path, comm=comm, **options))
            ),
            size,
        )
        if isinstance(alone, str):
            assert set(found) == {alone}, (text, size)
        else:
            assert not any(isinstance(each, str) for each in found), (found, text, size)
            compare(found, alone)


@pytest.mark.slow
def test_slabs_of_any_height():
    rng = np.random.default_rng(11)
    for _ in attempts(0.5):
        n = int(rng.integers(1, 25))
        A = sp.csr_array(sp.random_array((n, n), density=rng.random(), rng=rng, format="csr"))
        size = int(rng.integers(1, 10))
        bounds = shares(rng, n, size)
        form = str(rng.choice(["csr", "csc", "coo", "lil"]))

        def work(comm, A=A, bounds=bounds, form=form):
            rows = A[bounds[comm.rank] : bounds[comm.rank + 1]].asformat(form)
            return blocks(matchwood.distribute(rows, comm=comm))

        compare(dist.run(work, size), whole(matchwood.graph(A)))
