"""Traffic matrices: who sent how many packets to whom.

Read on in result.py (what a matrix is), reference.py and check.py (the definition), cpu.py (packets
to links on a team, sums), gpu.py and gpu.cu.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from matchwood import engines
from matchwood.applications.sensing.packets import elements, packet_arrays
from matchwood.applications.sensing.traffic.result import TrafficMatrix, added, trusted

__all__ = ["TrafficMatrix", "sum_matrices", "traffic_matrix"]


def traffic_matrix(
    src: Any, dst: Any, *, engine: str | None = None, threads: int | None = None
) -> TrafficMatrix:
    """Count packets by source and destination.

    A(i, j) is the number of k with ``src[k] == i`` and ``dst[k] == j``.

    Parameters
    ----------
    src, dst : (packets,) arrays of integers
        Addresses from 0 to 2^32 - 1; uint32 arrays are read as they are, others are converted.
        Not changed.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where the arrays live.
    threads : int or None
        CPU only.

    Returns
    -------
    TrafficMatrix
        Where the arrays live.

    Raises
    ------
    TypeError
        If the addresses are no integers.
    ValueError
        If they do not fit into 32 bits, or the sizes differ.

    Notes
    -----
    The order of links is (source, destination), so every engine gives the same arrays at any
    number of threads.  Packets are sorted as 64-bit keys: work O(n log n), memory 16 bytes a packet
    besides the result.

    References
    ----------
    .. [1] H. Jananthan et al., "Anonymized Network Sensing Graph Challenge", IEEE HPEC 2024,
       doi:10.1109/HPEC62836.2024.10938475.

    Examples
    --------
    >>> import numpy as np
    >>> from matchwood.sensing import traffic_matrix
    >>> A = traffic_matrix(np.array([1, 1, 1, 2]), np.array([2, 2, 3, 1]))
    >>> [part.tolist() for part in A.tocoo()]
    [[1, 1, 2], [2, 3, 1], [2, 1, 1]]
    """
    src, dst = packet_arrays("traffic_matrix", src, dst)
    where = engines.location(src)
    chosen = engines.resolve(where, engine, "traffic_matrix", threads)
    home = engines.home(chosen)
    rows = engines.load(__name__, chosen).rows_of_packets(
        engines.moved(src, home), engines.moved(dst, home), threads=threads
    )
    return trusted(*(engines.moved(part, where) for part in rows), packets=int(src.size))


def sum_matrices(
    matrices: Iterable[TrafficMatrix], *, engine: str | None = None, threads: int | None = None
) -> TrafficMatrix:
    """Add up traffic matrices.

    Parameters
    ----------
    matrices : iterable of TrafficMatrix
        All in one place.  An iterator is read once; about log2 of their number are kept.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where the first matrix lives.
    threads : int or None
        CPU only.

    Returns
    -------
    TrafficMatrix
        Where the first matrix lives; without matrices an empty one.

    Raises
    ------
    TypeError
        If an item is no TrafficMatrix.
    ValueError
        If they have more than 2^63 - 1 packets in all.

    Notes
    -----
    Sums of the same number of matrices are merged as a binary tree, so a link is moved once for
    each level.

    Examples
    --------
    >>> import numpy as np
    >>> from matchwood.sensing import sum_matrices, traffic_matrix
    >>> A = traffic_matrix(np.array([1]), np.array([2]))
    >>> sum_matrices([A, A, A]).counts.tolist()
    [3]
    """
    return added(_matrices(matrices), engine, threads)


def _matrices(matrices: Any) -> Iterator[TrafficMatrix]:
    for matrix in elements("sum_matrices", "matrices", matrices, "an iterable"):
        if not isinstance(matrix, TrafficMatrix):
            kind = type(matrix).__name__
            raise TypeError(f"sum_matrices: matrices must be TrafficMatrix objects, got {kind}")
        yield matrix
