"""What ranks do in tests of distributed graphs; called in threads and under mpiexec."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import matchwood
from graphs import ZOO
from spread_graphs import blocks, slab


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
