"""Packets between random addresses.  Read on in reference.py and cpu.py."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from matchwood import arguments, engines
from matchwood.gate import resources
from matchwood.generators import streams

Array = np.ndarray[Any, Any]

KINDS = ("uniform", "zipf")
MOST_HOSTS = 1 << 24
BITS = 32  # of an address


def packets(
    n: int,
    kind: str = "uniform",
    *,
    hosts: int = 2**20,
    exponent: float = 1.3,
    rng: Any = 0,
    engine: str | None = None,
    threads: int | None = None,
) -> tuple[Array, Array]:
    """Sources and destinations of n packets.

    "uniform" draws both from all 2^32 addresses, as the public data of the Anonymized Network
    Sensing Graph Challenge does.  "zipf" draws both from `hosts` addresses, of which the k-th one
    has a probability proportional to k^-exponent: few send most of the traffic.

    Parameters
    ----------
    n : int
        Packets.
    kind : {"uniform", "zipf"}
    hosts : int
        Of "zipf": addresses, from 1 to 2^24.
    exponent : float
        Of "zipf": from 0 to 8.
    rng : int, numpy.random.Generator or None
        The seed; None is 0.
    engine : {None, "reference", "cpu"}
        None is the CPU.
    threads : int or None

    Returns
    -------
    src, dst : (n,) ndarrays of uint32

    Raises
    ------
    TypeError, ValueError, OutOfMemory
        If an argument is of the wrong kind; if it fits no memory.

    Notes
    -----
    The same at any number of threads: packet k is made of number k of a counter-based stream.  Of
    "zipf" the probabilities are rounded to multiples of 2^-32.

    Examples
    --------
    >>> from matchwood.generators import packets
    >>> src, dst = packets(1000, "zipf", hosts=50)
    >>> src.dtype, bool((src[:500] == packets(500, "zipf", hosts=50)[0]).all())
    (dtype('uint32'), True)
    """
    caller = "packets"
    n = arguments.count(caller, "n", n)
    kind = arguments.one_of(caller, "kind", kind, KINDS)
    hosts = arguments.count(caller, "hosts", hosts, 1)
    arguments.at_most(caller, "hosts", hosts, MOST_HOSTS, "each has a place in a table")
    exponent = arguments.real(caller, "exponent", exponent, 0, 8)
    seed = arguments.seed(caller, rng)
    chosen = engines.resolve("cpu", engine, caller, threads)
    resources.require_memory(caller, 8 * n, "the packets")
    key = streams.key(seed, streams.PACKETS)
    load = engines.load(__name__, chosen)
    if kind == "uniform":
        return load.uniform(n, key, threads)
    return load.zipf(n, key, thresholds(hosts, exponent), threads)


@functools.lru_cache(maxsize=4)
def thresholds(hosts: int, exponent: float) -> Array:
    """thresholds[k]: the 32-bit numbers below it, and not below thresholds[k - 1], draw host k."""
    weights = np.arange(1, hosts + 1, dtype=np.float64) ** -exponent
    sums = np.cumsum(weights)
    found = np.minimum(np.round(sums / sums[-1] * 2.0**BITS), 2.0**BITS).astype(np.uint64)
    found[-1] = 1 << BITS
    found.flags.writeable = False
    return found
