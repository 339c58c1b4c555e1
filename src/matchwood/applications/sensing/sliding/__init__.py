"""The nine quantities of a window that slides over packets.

Read on in reference.py and check.py (the definition), cpu.py, gpu.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.applications.sensing.packets import packet_arrays
from matchwood.applications.sensing.statistics.result import NINE
from matchwood.arguments import at_most, count
from matchwood.engines.gpu import reserve
from matchwood.memory import require_memory

__all__ = ["Sliding", "sliding_statistics"]

LONGEST = 2**31 - 1  # packets of a window
WIDEST = 2**62  # packets of a stride
STORED = NINE[1:]  # the number of packets is the window's


class Sliding:
    """The nine quantities after every step: arrays by name, steps by number.

    Attributes
    ----------
    window, stride : int
    table : (steps, 8) array of int32, where the packets are
        A row for each step, a column for each quantity but `valid_packets`, which is `window`.
    """

    def __init__(self, window: int, stride: int, table: Any) -> None:
        self.window = at_most("Sliding", "window", count("Sliding", "window", window, 1), LONGEST,
                              "packets are counted in 31 bits")  # fmt: skip
        self.stride = count("Sliding", "stride", stride, 1)
        self.table = table

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, step: int) -> dict[str, int]:
        row = self.table[step].tolist()
        return {"valid_packets": self.window, **dict(zip(STORED, row, strict=True))}

    def __iter__(self) -> Iterator[dict[str, int]]:
        return (self[k] for k in range(len(self)))

    def __getattr__(self, name: str) -> Any:
        if name == NINE[0]:
            return engines.xp(self.table).full(len(self.table), self.window, self.table.dtype)
        if name not in STORED:
            raise AttributeError(f"Sliding has no attribute {name!r}")
        return self.table[:, STORED.index(name)]

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *NINE})

    def __repr__(self) -> str:
        return f"Sliding({len(self)} steps, window {self.window}, stride {self.stride})"


def sliding_statistics(
    src: Any,
    dst: Any,
    window: int = 131_072,
    stride: int = 1,
    *,
    engine: str | None = None,
    threads: int | None = None,
) -> Sliding:
    """The nine quantities of a sliding window, after every step.

    Step k has the packets from ``k * stride`` to ``k * stride + window - 1``; steps end with the
    last window that is complete.

    Parameters
    ----------
    src, dst : (packets,) arrays of integers
        Addresses from 0 to 2^32 - 1.  Not changed.
    window : int
        Packets of the window.
    stride : int
        Packets from a step to the next.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where the arrays live.
    threads : int or None
        CPU only.  Each takes a part of the steps.

    Returns
    -------
    Sliding

    Raises
    ------
    TypeError
        If an argument is of another kind.
    ValueError
        If addresses do not fit into 32 bits, sizes differ, or a number is below 1.

    Notes
    -----
    A packet that enters or leaves changes each quantity of its link, source and destination by 1.
    With the numbers of links, sources and destinations at each value, a maximum rises by one at
    most, and falls by one exactly when the last that attains it leaves: O(1) a packet.
    Links and addresses are found in hash tables of a size in proportion to the window, whose hash
    is drawn anew for each call; the answer does not depend on it.

    On a GPU no step waits for the one before: from where to where a packet is in the window is
    known, so the packets of a link are a step function.  The largest of all step functions is found
    for all steps at once, by intervals of doubling widths: O(log n) a packet.

    Examples
    --------
    >>> import numpy as np
    >>> from matchwood.sensing import sliding_statistics
    >>> found = sliding_statistics(np.array([1, 1, 2, 1]), np.array([5, 5, 5, 6]), window=2)
    >>> found.unique_links.tolist(), found.max_link_packets.tolist()
    ([1, 2, 2], [2, 1, 1])
    """
    caller = "sliding_statistics"
    src, dst = packet_arrays(caller, src, dst)
    window, stride = count(caller, "window", window, 1), count(caller, "stride", stride, 1)
    at_most(caller, "window", window, LONGEST, "packets are counted in 31 bits")
    at_most(caller, "stride", stride, WIDEST, "places of packets have 63 bits")
    given = engines.location(src)
    chosen = engines.resolve(given, engine, caller, threads)
    load = engines.load(__name__, chosen)
    home = engines.home(chosen)
    src, dst = engines.moved(src, home), engines.moved(dst, home)
    steps = 0 if src.size < window else (src.size - window) // stride + 1
    if home == "gpu":
        reserve(4 * steps * len(STORED), caller)
    else:
        require_memory(caller, 4 * steps * len(STORED), f"{steps} steps")
    table = engines.xp(src).zeros((steps, len(STORED)), np.int32)
    if steps:
        load.slide(src, dst, window, stride, table, threads=threads)
    return Sliding(window, stride, engines.moved(table, given))
