"""One ordinary .npy file, written by all ranks; all must see the same file system."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from matchwood.engines.ranks.exchanges.agreement import together


def write_npy(comm: Any, path: Any, rows: Any, first: int, total: int) -> None:
    """A file of `total` rows; `rows`, from number `first` on, are those of this rank.

    A row is a number, or as many as `rows` has columns.  All ranks call this.
    """
    path = Path(path)
    shape = (total, *rows.shape[1:])
    width = rows.itemsize * int(np.prod(rows.shape[1:], dtype=np.int64))  # bytes of a row

    def begin() -> int:
        if comm.rank:
            return 0
        with path.open("wb") as file:
            head = {"descr": rows.dtype.str, "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, head)
            start = file.tell()
            file.truncate(start + total * width)
        return start

    start = comm.objects(together(comm, begin))[0]

    def write() -> None:
        with path.open("r+b") as file:
            file.seek(start + first * width)
            file.write(rows.tobytes())

    together(comm, write)
