"""Whether a traffic matrix is right: its form, and that it counts the packets given."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers, engines
from matchwood.applications.sensing.packets import addresses_of
from matchwood.applications.sensing.traffic.result import TrafficMatrix
from matchwood.arguments import same_size
from matchwood.errors import CheckFailed

AT_ONCE = 1 << 15  # numbers looked up at once: 15 ms among 10^7; then Ctrl-C takes effect


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
    src = addresses_of("check_traffic_matrix", "src", engines.moved(src, "cpu"))
    dst = addresses_of("check_traffic_matrix", "dst", engines.moved(dst, "cpu"))
    same_size("check_traffic_matrix", "dst", dst, "src", src)
    matrix.check()
    source, destination, counts = (engines.moved(part, "cpu") for part in matrix.tocoo())
    keys = (source.astype(np.uint64) << np.uint64(32)) | destination
    if int(counts.sum()) != src.size:
        raise CheckFailed(f"traffic matrix: {int(counts.sum())} packets, {src.size} were given")
    found = np.zeros(keys.size + 1, np.int64)
    for begin, end in answers.pieces(int(src.size)):
        packets = (src[begin:end].astype(np.uint64) << np.uint64(32)) | dst[begin:end]
        place = _places_among(keys, packets)
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


def _places_among(ascending: Any, values: Any) -> Any:
    """As np.searchsorted, in pieces of `AT_ONCE`."""
    found = np.empty(values.size, np.int64)
    for start in range(0, values.size, AT_ONCE):
        part = slice(start, start + AT_ONCE)
        found[part] = np.searchsorted(ascending, values[part])
    return found
