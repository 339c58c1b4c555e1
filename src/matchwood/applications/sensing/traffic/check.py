"""What a right traffic matrix is: its form, and that it holds the packets that were given."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers, engines
from matchwood.applications.sensing.traffic.matrix import (
    MOST_PACKETS,
    TrafficMatrix,
    addresses,
    packets_of,
    places_among,
)
from matchwood.arguments import same_size
from matchwood.errors import CheckFailed


def fault_of_arrays(sources: Any, indptr: Any, destinations: Any, counts: Any) -> str | None:
    """What is wrong with the form of a matrix; None where nothing is."""
    rows, links = int(sources.size), int(counts.size)
    ends = (int(indptr[0]), int(indptr[-1]))
    if ends != (0, links):
        return f"indptr must go from 0 to {links}, got {ends[0]} and {ends[1]}"
    at = answers.first(indptr[1:] <= indptr[:-1])
    if at is not None:
        return f"every source must have a link, got none at row {at}"
    at = answers.first(sources[1:] <= sources[:-1])
    if at is not None:
        return f"sources must ascend, got {sources[at]} and {sources[at + 1]} at {at}"
    falls = destinations[1:] <= destinations[:-1]
    falls[indptr[1:-1] - 1] = False  # from a row to the next
    at = answers.first(falls)
    if at is not None:
        here, there = destinations[at], destinations[at + 1]
        return f"destinations must ascend within a row, got {here} and {there} at {at}"
    at = answers.first(counts < 1)
    if at is not None:
        return f"every link must have a packet, got {counts[at]} at {at}"
    if (packets := packets_of(counts)) > MOST_PACKETS:
        return f"counts must be at most 2^63 - 1 packets in all, got {packets}"
    if rows == 0 and links:
        return "links must have sources, got none"
    return None


def check_rows(matrix: Any) -> None:
    """Raise `CheckFailed` unless the arrays of a matrix have the form that they must have."""
    arrays = (matrix.sources, matrix.indptr, matrix.destinations, matrix.counts)
    kinds = ("uint32", "int64", "uint32", "int64")
    names = ("sources", "indptr", "destinations", "counts")
    for name, array, kind in zip(names, arrays, kinds, strict=True):
        if array.ndim != 1 or array.dtype != kind:
            raise CheckFailed(f"traffic matrix: {name} must be a vector of {kind}")
    if matrix.indptr.size != matrix.sources.size + 1:
        raise CheckFailed(
            f"traffic matrix: {matrix.sources.size} sources and {matrix.indptr.size} starts"
        )
    if matrix.destinations.size != matrix.counts.size:
        raise CheckFailed(
            f"traffic matrix: {matrix.destinations.size} destinations, {matrix.counts.size} counts"
        )
    fault = fault_of_arrays(*arrays)
    if fault is not None:
        raise CheckFailed(f"traffic matrix: {fault}")


def check_traffic_matrix(src: Any, dst: Any, matrix: Any) -> None:
    """Raise `CheckFailed` unless `matrix` counts the packets from src[k] to dst[k].

    Every packet is looked up among the links, and what is found is counted: a link must have as
    many packets as were found for it.  O(packets log links).

    Examples
    --------
    >>> import numpy as np
    >>> from matchwood.check import check_traffic_matrix
    >>> from matchwood.sensing import traffic_matrix
    >>> src, dst = np.array([1, 1, 2]), np.array([2, 2, 3])
    >>> check_traffic_matrix(src, dst, traffic_matrix(src, dst))
    """
    if not isinstance(matrix, TrafficMatrix):
        raise TypeError(
            f"check_traffic_matrix: matrix must be a TrafficMatrix, got {type(matrix).__name__}"
        )
    src = addresses("check_traffic_matrix", "src", engines.moved(src, "cpu"))
    dst = addresses("check_traffic_matrix", "dst", engines.moved(dst, "cpu"))
    same_size("check_traffic_matrix", "dst", dst, "src", src)
    check_rows(matrix)
    source, destination, counts = (engines.moved(part, "cpu") for part in matrix.tocoo())
    keys = (source.astype(np.uint64) << np.uint64(32)) | destination
    if int(counts.sum()) != src.size:
        raise CheckFailed(f"traffic matrix: {int(counts.sum())} packets, {src.size} were given")
    found = np.zeros(keys.size + 1, np.int64)
    for begin, end in answers.pieces(int(src.size)):
        packets = (src[begin:end].astype(np.uint64) << np.uint64(32)) | dst[begin:end]
        place = places_among(keys, packets)
        known = keys[np.minimum(place, max(keys.size - 1, 0))] if keys.size else packets + 1
        at = answers.first(known != packets)
        if at is not None:
            k = begin + at
            raise CheckFailed(f"traffic matrix: packet {k} from {src[k]} to {dst[k]} has no link")
        found += np.bincount(place, minlength=found.size)
    at = answers.first(found[:-1] != counts)
    if at is not None:
        raise CheckFailed(
            f"traffic matrix: link {at} from {source[at]} to {destination[at]} has {counts[at]} "
            f"packets, {found[at]} were given"
        )
