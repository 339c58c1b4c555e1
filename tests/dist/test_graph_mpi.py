"""Distributed graphs under mpiexec: the views of one machine, and how much memory is taken."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

import matchwood
from dist.mpi import mpiexec, needs_mpi
from graphs import ZOO
from matchwood import io
from spread_graphs import compare, whole

pytestmark = needs_mpi

MEASURED = sys.platform == "linux"  # it reads /proc
NAMES = ("rmat, directed", "duplicates, unsorted", "0x0", "one edge", "both ways, other values")


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [4, 2, 6])
def test_views_under_mpiexec(tmp_path, ranks):
    """And R-MAT made by four ranks: at no time more than three times the blocks."""
    order = ("given", "hashed")[ranks > 2]
    io.write(tmp_path / "list.txt", ZOO["rmat, directed"]())
    script = f"""
        import json
        import matchwood as mw
        from dist.mpi import say
        from dist.spread_bodies import peak_of, views
        with mw.dist.world() as comm:
            if {MEASURED} and comm.size == 4:
                made = lambda scale: mw.generators.rmat(scale or 18, comm=comm)
                measured = peak_of(comm, made)
                if comm.rank == 0:
                    say(json.dumps(measured))
            views(comm, {NAMES!r}, {order!r}, {str(tmp_path)!r})
    """
    lines = mpiexec(ranks, script).lines
    assert len(lines) == (MEASURED and ranks == 4)
    for block, peak in map(json.loads, lines):
        assert block > 10e6
        assert peak <= 3 * block, f"{peak / block:.2f} times the block of {block / 1e6:.0f} MB"
    text = [np.load(tmp_path / f"text-{k}.npy", allow_pickle=True)[0] for k in range(ranks)]
    compare(text, whole(matchwood.graph(io.read(tmp_path / "list.txt"))))
    for name in NAMES:
        G = matchwood.graph(ZOO[name]())
        expected = whole(G)
        for label in ("", "again "):
            found = [
                np.load(tmp_path / f"{label}{name}-{rank}.npy", allow_pickle=True)[0]
                for rank in range(ranks)
            ]
            compare(found, expected)
        assert np.array_equal(np.load(tmp_path / f"degrees {name}.npy"), G.degrees)
