"""One ordinary .npy file, written by all ranks.

It is written beside the one that it replaces and takes its name when it is complete.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any


@contextlib.contextmanager
def _replacing(comm: Any, path: Path) -> Iterator[Path]:
    """A name for the new file; it takes the place of the old one when all ranks have written."""
    from matchwood.engines.ranks.agreement import together

    part = path.with_name(f".{path.name}.partial")
    try:
        yield part
        comm.barrier()
        together(comm, lambda: None if comm.rank else part.replace(path))
    finally:
        if comm.rank == 0:
            part.unlink(missing_ok=True)


def save_vector(comm: Any, path: Path, vector: Any) -> None:
    """A DistributedVector in the order of its vertices."""
    with _replacing(comm, path) as part:
        vector.save(part)


def save_edges(comm: Any, path: Path, edges: Any, n: int) -> None:
    """Edges (u, v) of all ranks as a matrix of two columns, ascending.

    Each rank gets those whose first end is in its range of vertices, so it knows which lines of
    the file are its own.
    """
    import numpy as np

    from matchwood.engines.ranks.exchanges import Routed
    from matchwood.engines.ranks.vectors import write_npy

    width = max(1, -(-n // comm.size))
    tails, heads = (np.ascontiguousarray(edges[:, k]) for k in (0, 1))
    tails, heads = Routed(comm, tails // width).send(tails, heads)
    order = np.lexsort((heads, tails))
    mine = np.stack((tails[order], heads[order]), axis=1)
    sizes = comm.allgather(np.array([mine.shape[0]], np.int64))
    with _replacing(comm, path) as part:
        write_npy(comm, part, mine, int(sizes[: comm.rank].sum()), int(sizes.sum()))
