"""`sense` by its definition, in plain Python; slow on purpose, and the judge of the other engines.

No chunks, no runs, no merging: all packets are read, then cut into windows, and each window is
counted in a dictionary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.applications.sensing.statistics import Statistics, Windows
from matchwood.applications.sensing.statistics.reference import histograms_of_links, of_links
from matchwood.applications.sensing.statistics.result import NAMES, as_row
from matchwood.applications.sensing.stream.result import Sensing
from matchwood.applications.sensing.stream.sources import anonymized
from matchwood.applications.sensing.traffic.reference import rows_of_run, run_of_links
from matchwood.applications.sensing.traffic.result import require_sum, trusted

EVERYONE = 2**32 - 1  # 255.255.255.255
PHASES = ("read", "anonymize", "windows", "sums", "total")


class Entry(NamedTuple):
    """A packet, or a link of an archive with all its packets."""

    src: int
    dst: int
    packets: int
    time: int | None
    pair: tuple[str, str] | None  # the ranges of the original addresses


def sensed(source: Any, options: Any, on_window: Callable[..., object] | None = None) -> Sensing:
    """Everything that `sense` returns; `options` are those of running.py."""
    times: list[int | None] | None = None  # of the matrices of an archive
    if source.has_matrices:
        matrices = list(source.matrices())
        given = [_entries(source, options, *matrix.tocoo()) for matrix in matrices]
        times = [matrix.time for matrix in matrices]
    else:
        made = [
            _entries(source, options, block.src, block.dst, time=block.time)
            for block in source.blocks()
        ]
        given = [[entry for part in made for entry in part]]
    kept = [[entry for entry in part if not _left_out(entry, options)] for part in given]
    dropped = sum(entry.packets for part in given for entry in part if _left_out(entry, options))
    require_sum("sense", "source", sum(entry.packets for part in kept for entry in part))
    windows = kept if source.has_matrices else list(_cut(kept[0], options.window))
    if not source.has_matrices and windows and not options.keep_partial:
        by_time, last = options.window.by_time, windows[-1]
        if by_time or len(last) < options.window.size:  # the end of a time is never seen
            dropped += len(windows.pop())
    if times is None:
        timed = all(packet.time is not None for window in windows for packet in window)
        times = [window[0].time if window and timed else None for window in windows]
    if on_window is not None:
        for window, time in zip(windows, times, strict=True):
            on_window(trusted(*rows_of_run(run_of_links(_links(window)))), time)
    return _result(source, options, windows, times, dropped)


def _entries(
    source: Any, options: Any, src: Any, dst: Any, counts: Any = None, time: Any = None
) -> list[Entry]:  # fmt: skip
    """Anonymized packets, with the ranges of their original addresses."""
    src, dst = (engines.moved(x, "cpu") for x in (src, dst))
    turned = options.compat and bool(source.files)
    pairs: list[Any] = [None] * src.size
    if options.ranges is not None:
        names = options.ranges.names
        ours, theirs = (options.ranges.classify(x.byteswap() if turned else x) for x in (src, dst))
        pairs = [(names[a], names[b]) for a, b in zip(ours, theirs, strict=True)]
    if options.anonymizer is not None:
        src, dst = (_anonymous(x, options.anonymizer, turned) for x in (src, dst))
    times = [None] * src.size if time is None else time.tolist()
    packets = [1] * src.size if counts is None else counts.tolist()
    columns = (src.tolist(), dst.tolist(), packets, times, pairs)
    return [Entry(*fields) for fields in zip(*columns, strict=True)]


def _anonymous(addresses: Any, anonymizer: Any, turned: bool) -> Any:
    """Anonymized addresses; those read with compat are byte-swapped before and after."""
    if not turned:
        return anonymized("sense", anonymizer, addresses)
    return anonymized("sense", anonymizer, addresses.byteswap()).byteswap()


def _left_out(entry: Entry, options: Any) -> bool:
    return bool(options.compat) and EVERYONE in (entry.src, entry.dst)


def _cut(packets: list[Entry], window: Any) -> Iterator[list[Entry]]:
    """Windows of `window.size` packets, or of `window.length` ns from the first packet on."""
    if not window.by_time:
        for start in range(0, len(packets), window.size):
            yield packets[start : start + window.size]
        return
    open_window: list[Entry] = []
    number = 0
    for packet in packets:
        if packet.time is None:
            raise ValueError("sense: window is a time, and the packets have none")
        begun = packets[0].time
        assert begun is not None
        here = (packet.time - begun) // window.length
        if here > number:  # an older packet counts in the window that is open
            yield open_window
            open_window, number = [], here
        open_window.append(packet)
    if open_window:
        yield open_window


def _links(packets: list[Entry]) -> dict[tuple[int, int], int]:
    found: Counter[tuple[int, int]] = Counter()
    for packet in packets:
        found[packet.src, packet.dst] += packet.packets
    return dict(found)


def _result(
    source: Any, options: Any, windows: list[list[Entry]], times: list[int | None], dropped: int
) -> Sensing:
    every = [packet for window in windows for packet in window]
    links = _links(every)
    matrix = trusted(*rows_of_run(run_of_links(links)))
    statistics = of_links(links)
    read = source.read()
    counted = statistics.valid_packets
    return Sensing(
        statistics,
        _windows(windows, times),
        matrix,
        histograms_of_links(links),
        None if options.ranges is None else _blocks(every, options.ranges.names),
        {**read, "packets": read["packets"] or counted + dropped, "dropped": dropped},
        dict.fromkeys(PHASES, 0.0),
    )


def _windows(windows: list[list[Entry]], times: list[int | None]) -> Windows:
    table = [as_row(of_links(_links(window))) for window in windows]
    sizes = [sum(packet.packets for packet in window) for window in windows]
    first = [sum(sizes[:k]) for k in range(len(sizes))]
    return Windows(
        np.array(table, np.int64).reshape(-1, len(NAMES)),
        np.array(first, np.int64),
        np.array(times, np.int64) if times and None not in times else None,
    )


def _blocks(
    packets: list[Entry], names: tuple[str, ...]
) -> dict[tuple[str, str], Statistics]:  # fmt: skip
    return {
        (a, b): of_links(_links([packet for packet in packets if packet.pair == (a, b)]))
        for a in names
        for b in names
    }
