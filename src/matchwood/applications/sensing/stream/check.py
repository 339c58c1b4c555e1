"""Whether an answer of `sense` is right: windows, sum, histograms and blocks, each checked."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from matchwood import answers, engines
from matchwood.applications.sensing.packets import Ranges
from matchwood.applications.sensing.statistics import Statistics, Windows
from matchwood.applications.sensing.statistics.check import check_histograms, check_statistics
from matchwood.applications.sensing.stream.result import Sensing
from matchwood.applications.sensing.stream.sources import (
    PacketWindows,
    anonymized,
    packet_block,
    parse_window,
)
from matchwood.applications.sensing.traffic.check import check_traffic_matrix
from matchwood.arguments import one_of
from matchwood.errors import CheckFailed


def check_sensing(
    packets: Any,
    found: Any,
    window: int | str = 131_072,
    *,
    partial: str = "keep",
    anonymize: Any = None,
    ranges: Any = None,
) -> None:
    """Raise `CheckFailed` unless `found` is what `sense` must return for these packets.

    The packets are cut into windows one after the other.  Then the numbers of every window, the
    matrix, its statistics, its histograms and the blocks between ranges are compared with sums over
    the packets.

    Parameters
    ----------
    packets : Packets, or arrays (src, dst) or (src, dst, time)
        All packets, with their original addresses.
    found : Sensing
    window, partial, ranges
        As passed to `sense`.
    anonymize : Anonymizer or None
        The object that `sense` used: a key is not in its answer.

    Raises
    ------
    CheckFailed
        With the window or part that is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> from matchwood.check import check_sensing
    >>> from matchwood.sensing import sense
    >>> packets = np.array([1, 1, 2]), np.array([2, 2, 3])
    >>> check_sensing(packets, sense(packets, window=2), window=2)
    """
    caller = "check_sensing"
    if not isinstance(found, Sensing):
        raise TypeError(f"{caller}: found must be a Sensing, got {type(found).__name__}")
    one_of(caller, "partial", partial, ("keep", "drop"))
    src, dst, time = packet_block(caller, packets)
    if not (anonymize is None or callable(getattr(anonymize, "apply", None))):
        kind = type(anonymize).__name__
        raise TypeError(f"{caller}: anonymize must be an Anonymizer or None, got {kind}")
    original = tuple(engines.moved(x, "cpu") for x in (src, dst))
    if anonymize is None:
        src, dst = original
    else:
        src, dst = (anonymized(caller, anonymize, x) for x in original)
    edges, whole = _edges(caller, src.size, time, parse_window(caller, window))
    if partial == "drop" and not whole:
        edges = edges[:-1]
    used = edges[-1]
    _windows(found.windows, src, dst, time, edges)
    counted = (src[:used], dst[:used])
    _asked("matrix", functools.partial(check_traffic_matrix, *counted, found.matrix))
    _asked("statistics", functools.partial(check_statistics, counted, found.statistics))
    _asked("histograms", functools.partial(check_histograms, counted, found.histograms))
    _blocks(caller, found.blocks, original, counted, ranges)
    for name, right in (("packets", src.size), ("dropped", src.size - used)):
        if found.capture.get(name) != right:
            raise CheckFailed(f"sensing: {right} {name}, got {found.capture.get(name)!r}")


def _edges(caller: str, packets: int, time: Any, window: Any) -> tuple[list[int], bool]:
    """Where windows begin and the last one ends, and whether that one is complete."""
    if isinstance(window, PacketWindows):
        edges = [*range(0, packets, window.size), packets]
        return edges if packets else [0], packets % window.size == 0
    if time is None:
        raise ValueError(f"{caller}: window is a time, and the packets have none")
    edges, number = [], -1
    moments = time.tolist()
    for k, moment in enumerate(moments):
        here = (moment - moments[0]) // window.length
        if here > number:  # an older packet counts in the window that is open
            edges.append(k)
            number = here
    return [*edges, packets], packets == 0


def _asked(part: str, check: Callable[[], None]) -> None:
    try:
        check()
    except CheckFailed as error:
        raise CheckFailed(f"sensing: {part}: {error}") from None


def _windows(windows: Any, src: Any, dst: Any, time: Any, edges: list[int]) -> None:
    caller = "check_sensing"
    if not isinstance(windows, Windows):
        raise TypeError(f"{caller}: windows must be Windows, got {type(windows).__name__}")
    if len(windows) != len(edges) - 1:
        raise CheckFailed(f"sensing: {len(edges) - 1} windows, got {len(windows)}")
    size = (len(windows),)
    first = answers.integers(caller, "sensing", "first", windows.first, size, "cpu")
    _same("first", first, np.array(edges[:-1], np.int64))
    if len(windows) and (windows.time is None) != (time is None):
        raise CheckFailed("sensing: windows have times exactly where packets have them")
    if len(windows) and time is not None:
        moments = answers.integers(caller, "sensing", "time", windows.time, size, "cpu")
        _same("time", moments, time[edges[:-1]])
    for k in range(len(windows)):
        part = src[edges[k] : edges[k + 1]], dst[edges[k] : edges[k + 1]]
        _asked(f"window {k}", functools.partial(check_statistics, part, windows[k]))


def _same(name: str, given: Any, right: Any) -> None:
    at = answers.first(given != right)
    if at is not None:
        raise CheckFailed(f"sensing: {name} of window {at} is {right[at]}, got {given[at]}")


def _blocks(caller: str, blocks: Any, original: Any, counted: Any, ranges: Any) -> None:
    if ranges is None:
        if blocks is not None:
            raise CheckFailed("sensing: there are no ranges, got blocks")
        return
    given = Ranges(ranges, caller)
    names, used = given.names, counted[0].size
    if not isinstance(blocks, dict) or set(blocks) != {(a, b) for a in names for b in names}:
        raise CheckFailed(f"sensing: blocks must be those of {names}")
    ours, theirs = (given.classify(x[:used]) for x in original)
    for i, a in enumerate(names):
        for j, b in enumerate(names):
            here = (ours == i) & (theirs == j)
            part = (counted[0][here], counted[1][here])
            block = blocks[a, b]
            if not isinstance(block, Statistics):
                kind = type(block).__name__
                raise TypeError(f"{caller}: a block must be Statistics, got {kind}")
            _asked(f"from {a} to {b}", functools.partial(check_statistics, part, block))
