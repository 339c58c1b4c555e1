"""Archives: traffic matrices as serialized GraphBLAS matrices in UNIX tar files.

Read on in reference.py (the definition), blob.py and cpu.py (the bytes of a matrix, to a matrix and
back), files.py (tar files and folders).
"""

from __future__ import annotations

import io
import itertools
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from matchwood.applications.sensing.archive.files import ArchiveWriter, matrices_of
from matchwood.applications.sensing.packets import elements
from matchwood.applications.sensing.traffic import TrafficMatrix
from matchwood.arguments import count, one_of
from matchwood.arguments import path as file_name
from matchwood.engines import check_threads
from matchwood.engines.cpu.cpus import default_threads
from matchwood.io.options import Limits

__all__ = ["ArchiveWriter", "archive_writer", "read_archive", "write_archive"]

COMPRESSIONS = ("zstd", None)
MISSING = object()  # where `times` ends before the matrices
MATRICES = 64  # in an archive of the Graph Challenge


def read_archive(
    path: Any, *, threads: int | None = None, most_bytes: int | None = None
) -> Iterator[TrafficMatrix]:
    """The traffic matrices of an archive, one after the other.

    Parameters
    ----------
    path : str, PathLike or binary stream
        A tar file whose members are serialized GraphBLAS matrices, or tar files of such; a single
        matrix; a folder, of which all files that end in .tar or .grb are read in the order of
        their names; "-" for standard input.  May be compressed as a whole.
    threads : int or None
        Threads that unpack matrices ahead, one each; they are given in order.
    most_bytes : int or None
        Bytes that a matrix may unpack to; None takes 200 for each stored byte, and 100 MB in any
        case.

    Returns
    -------
    iterator of TrafficMatrix

    Raises
    ------
    FileFormatError
        With file and byte offset: sizes or arrays that contradict each other, values that are no
        counts, compression by LZ4.
    ModuleNotFoundError
        If matrices are compressed by zstd and no package for it is installed.

    Notes
    -----
    GraphBLAS itself compares lengths only; here every index is checked: rows and columns ascend
    and lie within 2^32, offsets never fall, counts are positive.  Matrices stored by column or
    densely are turned.  A plain file is read matrix by matrix; one that gets shorter meanwhile, or
    is written to, is refused.

    References
    ----------
    .. [1] T. A. Davis. Algorithm 1037: SuiteSparse:GraphBLAS: parallel graph algorithms in the
       language of sparse linear algebra. ACM TOMS 49(3), 2023. doi:10.1145/3577195

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from matchwood.sensing import read_archive, traffic_matrix, write_archive
    >>> A = traffic_matrix(np.array([7, 7, 9]), np.array([8, 8, 7]))
    >>> folder = Path(tempfile.mkdtemp())
    >>> written = write_archive(folder / "windows.tar", [A, A + A], compression=None)
    >>> [matrix.packets for matrix in read_archive(folder / "windows.tar")]
    [3, 6]
    """
    binary = hasattr(path, "read") and not isinstance(path, io.TextIOBase)
    if not (isinstance(path, (str, os.PathLike)) or binary):
        kind = type(path).__name__
        raise TypeError(f"read_archive: path must be a path or a binary stream, got {kind}")
    if not binary:
        path = file_name("read_archive", "path", path)
    check_threads(threads)
    limits = Limits(bytes=most_bytes).checked("read_archive")
    return matrices_of(path, limits, default_threads() if threads is None else threads)


def write_archive(
    path: str | os.PathLike[str],
    matrices: Iterable[TrafficMatrix],
    *,
    each: int = MATRICES,
    times: Iterable[int | None] | None = None,
    compression: str | None = "zstd",
    level: int = 1,
    threads: int | None = None,
) -> list[Path]:
    """Write traffic matrices as an archive that GraphBLAS reads.

    Parameters
    ----------
    path : str or PathLike
        A file, which gets all matrices; or a folder (one that exists, or a name that ends in /),
        which gets files of `each` matrices: 000000.tar, 000001.tar, ...; or, with `times`, files
        such as 20241022-035742-648596.8388608.tar: the time of the first packet (UTC), and the
        number of packets in the file.
    matrices : iterable of TrafficMatrix
        Read once, one after the other.
    each : int
        Matrices in a file of a folder; the Graph Challenge has 64.
    times : iterable of int or None, optional
        The time of the first packet of each matrix, in nanoseconds since 1970.  Kept as the time
        of the member (an extended header of POSIX); `read_archive` gives it as `matrix.time`.
    compression : {"zstd", None}
    level : int
        Of zstd, 1 to 19.
    threads : int or None
        Each compresses a matrix of its own.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong kind.
    ModuleNotFoundError
        If no package for zstd is installed: Python 3.14 has one, else zstandard.

    Notes
    -----
    A matrix is hypersparse by row with 64-bit indices; counts are 32-bit where they fit, and one
    value where all are equal.  Equal matrices give equal bytes, at any number of threads.  A file
    takes its name when it is complete.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from matchwood.sensing import traffic_matrix, write_archive
    >>> A = traffic_matrix(np.array([7, 7, 9]), np.array([8, 8, 7]))
    >>> folder = Path(tempfile.mkdtemp())
    >>> [file.name for file in write_archive(folder, [A] * 3, each=2, compression=None)]
    ['000000.tar', '000001.tar']
    """
    caller = "write_archive"
    given = elements(caller, "matrices", matrices, "an iterable of them")
    moments: Iterator[Any] = itertools.repeat(None)
    if times is not None:
        moments = elements(caller, "times", times, "an iterable of integers")
    with _writer(caller, path, each, compression, level, threads) as writer:
        for matrix in given:
            moment: Any = next(moments, MISSING)
            if moment is MISSING:
                raise ValueError(f"{caller}: times must be as many as the matrices, got fewer")
            writer.add(matrix, moment)
    return writer.paths


def archive_writer(
    path: str | os.PathLike[str], *, each: int = MATRICES, compression: str | None = "zstd",
    level: int = 1, threads: int | None = None,
) -> ArchiveWriter:  # fmt: skip
    """As `write_archive`, one matrix at a time: a context manager with a method `add`.

    Parameters
    ----------
    path, each, compression, level, threads
        As for `write_archive`.

    Returns
    -------
    ArchiveWriter
        ``add(matrix, time=None)``; `paths` lists the files, `matrices` counts what was added.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from matchwood.sensing import archive_writer, traffic_matrix
    >>> path = Path(tempfile.mkdtemp()) / "windows.tar"
    >>> with archive_writer(path, compression=None) as writer:
    ...     writer.add(traffic_matrix(np.array([7, 7, 9]), np.array([8, 8, 7])))
    >>> writer.matrices
    1
    """
    return _writer("archive_writer", path, each, compression, level, threads)


def _writer(
    caller: str, path: Any, each: int, compression: str | None, level: int, threads: int | None
) -> ArchiveWriter:
    check_threads(threads)
    return ArchiveWriter(
        caller, file_name(caller, "path", path), count(caller, "each", each, 1),
        one_of(caller, "compression", compression, COMPRESSIONS),
        count(caller, "level", level, 1, 19), default_threads() if threads is None else threads,
    )  # fmt: skip
