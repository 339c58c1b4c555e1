"""Distributed graphs under mpiexec: the views of one machine, and how much memory is taken."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import matchwood
from dist.mpi import mpiexec, needs_mpi
from graphs import ZOO
from matchwood import io
from spread_graphs import blocks, compare, slab, whole

pytestmark = needs_mpi

MEASURED = sys.platform == "linux"  # it reads /proc
NAMES = ("rmat, directed", "duplicates, unsorted", "0x0", "one edge", "both ways, other values")


def views(comm, names, order, folder):
    """The views of some graphs, in files, one a rank; and a saved graph read back."""
    text = matchwood.io.read(Path(folder) / "list.txt", comm=comm)
    found = np.array([blocks(text)], dtype=object)
    np.save(Path(folder) / f"text-{comm.rank}.npy", found, allow_pickle=True)
    for name in names:
        A = ZOO[name]()
        G = matchwood.distribute(slab(A, comm.rank, comm.size), comm=comm, order=order)
        G.save(Path(folder) / f"graph {name}")
        again = matchwood.io.read(Path(folder) / f"graph {name}", comm=comm)
        for label, graph in (("", G), ("again ", again)):
            found = np.array([blocks(graph)], dtype=object)
            np.save(Path(folder) / f"{label}{name}-{comm.rank}.npy", found, allow_pickle=True)
        G.degrees.save(Path(folder) / f"degrees {name}.npy")


def resident() -> tuple[int, int]:
    """Bytes of memory that this process has now, and the most that it ever had."""
    text = Path("/proc/self/status").read_text()
    fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    return int(fields["VmRSS"].split()[0]) * 1024, int(fields["VmHWM"].split()[0]) * 1024


def peak_of(comm, make) -> tuple[int, int]:
    """(bytes of the blocks, most bytes taken while they were made) of the rank that took most."""
    make(4)  # compiles everything
    before = resident()[0]
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    G = make(None)
    peak = resident()[1] - before
    view = G.directed_weights()
    size = view.indptr.nbytes + view.indices.nbytes + view.data.nbytes
    both = comm.objects((size, peak))
    return max(both, key=lambda each: each[1] / each[0])


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
        from dist.test_graph_mpi import peak_of, views
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
