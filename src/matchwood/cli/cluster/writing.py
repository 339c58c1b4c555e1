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
    from matchwood.dist.exchanges.agreement import together

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

    from matchwood.dist.exchanges import by_destination
    from matchwood.dist.exchanges.agreement import together

    width = max(1, -(-n // comm.size))
    order, counts = by_destination(np.ascontiguousarray(edges[:, 0]) // width, comm.size)
    flat, _ = comm.alltoallv(edges[order].reshape(-1), (2 * counts).tolist())
    mine = flat.reshape(-1, 2)
    mine = np.ascontiguousarray(mine[np.lexsort((mine[:, 1], mine[:, 0]))])
    sizes = comm.allgather(np.array([mine.shape[0]], np.int64))
    first, total = int(sizes[: comm.rank].sum()), int(sizes.sum())
    with _replacing(comm, path) as part:

        def begin() -> int:
            if comm.rank:
                return 0
            with part.open("wb") as file:
                head = {"descr": mine.dtype.str, "fortran_order": False, "shape": (total, 2)}
                np.lib.format.write_array_header_1_0(file, head)
                start = file.tell()
                file.truncate(start + total * 2 * mine.itemsize)
            return start

        start = comm.objects(together(comm, begin))[0]

        def write() -> None:
            with part.open("r+b") as file:
                file.seek(start + first * 2 * mine.itemsize)
                file.write(mine.tobytes())

        together(comm, write)
