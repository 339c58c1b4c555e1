"""From a stream of packets to windows, their sum and statistics.

Read on in reference.py and check.py (the definition), sources.py (reading packets, cutting them
into windows), running.py (the loop; sums larger than memory), cpu.py and gpu.py (the engines).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from matchwood import engines
from matchwood.applications.sensing.anonymity import Anonymizer
from matchwood.applications.sensing.capture.reading import Options as Reading
from matchwood.applications.sensing.packets import AddressTable, Ranges
from matchwood.applications.sensing.statistics import device_list
from matchwood.applications.sensing.stream.reference import sensed
from matchwood.applications.sensing.stream.result import Sensing
from matchwood.applications.sensing.stream.running import Listeners, Options, Runner
from matchwood.applications.sensing.stream.sources import Source, parse_window
from matchwood.arguments import byte_size, callback, count, flag, one_of

__all__ = ["Sensing", "sense"]

LEAST_MEMORY = 10**6  # bytes: below that chunks are a few thousand packets


def sense(
    source: Any,
    *,
    window: int | str = 131_072,
    anonymize: Any = None,
    key: Any = None,
    bits: int | None = None,
    ranges: Any = None,
    partial: str = "keep",
    version: int = 4,
    compat: bool = False,
    memory: int | str | None = None,
    batches: int = 1,
    devices: Any = None,
    engine: str | None = None,
    threads: int | None = None,
    on_window: Callable[[Any, int | None], object] | None = None,
    on_chunk: Callable[[dict[str, Any]], object] | None = None,
) -> Sensing:
    """Statistics of network traffic, window by window and of the whole.

    Packets are anonymized if asked for, cut into windows, counted by source and destination, and
    the windows are added up [1]_.

    Parameters
    ----------
    source : path, list of paths, "-", arrays, or an iterator
        A capture (PCAP, PCAPNG, compressed or not) or an archive of matrices; several, read one
        after the other; "-" is standard input; arrays ``(src, dst)`` or ``(src, dst, time)``, on
        the CPU or a GPU; or an iterator of such blocks.  The matrices of an archive are its
        windows.
    window : int or str
        Packets of a window, or a time such as "10s" (ns, us, ms, s, min, h).  Windows of time
        without packets are left out.
    anonymize : None, str or Anonymizer
        How addresses are changed before anything is counted: "cryptopan", "permutation",
        "truncate", or a prepared object with ``apply(addresses)``, which gives as many addresses
        back.
    key : bytes or path, optional
        The key of the method.
    bits : int, optional
        Bits that "truncate" keeps, 0 to 32, of IPv6 to 128.
    ranges : mapping or list of CIDR lists, optional
        Statistics of the traffic between these ranges of the original addresses, and everything
        else.  An address belongs to the first range that has it.
    partial : {"keep", "drop"}
        What becomes of a last window that is not complete.
    version : {4, 6}
        Of IP.  The 128-bit addresses of IPv6 are numbered in the order in which they are seen, and
        everything is counted with these numbers; `Sensing.addresses` has the addresses.  Arrays
        must be uint64 of two a row, on the CPU; archives and `ranges` are of IPv4.
    compat : bool
        Do what pcap2grb does: addresses read as little-endian numbers, one VLAN tag, packets from
        or to 255.255.255.255 dropped, an incomplete window dropped.
    memory : int, str or None
        Bytes for packets and sums ("512MB"); what does not fit is written to a private temporary
        folder.  None keeps everything in memory.
    batches : int
        In how many parts packets are worked on: all of those in arrays, and of a capture each
        2^23.  The answer is the same.
    devices : list of int, optional
        GPUs that work at the same time, each on a part or on a matrix of an archive; one may be
        named several times.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where the packets live.
    threads : int or None
        CPU only.
    on_window : function, optional
        Called with the `TrafficMatrix` of each window, in order, and with the time of its first
        packet (nanoseconds since 1970; None where packets have none).  `archive_writer(...).add`
        is such a function.
    on_chunk : function, optional
        Called after some windows with what was read so far: `packets`, `bytes`, `skipped`,
        `dropped`, `windows`.

    Returns
    -------
    Sensing

    Raises
    ------
    TypeError, ValueError
        If an argument is of another kind or value, or there are more than 2^63 - 1 packets in all.
    FileFormatError
        If a file does not follow its format.

    Notes
    -----
    The answer is the same on every engine, at any number of threads, batches and devices.  A window
    is held in memory.  Work is that of sorting every window, every chunk of 2^23 packets, and a
    merge of chunks as a binary tree.

    References
    ----------
    .. [1] H. Jananthan et al., "Anonymized Network Sensing Graph Challenge", IEEE HPEC 2024,
       doi:10.1109/HPEC62836.2024.10938475.

    Examples
    --------
    >>> import numpy as np
    >>> from matchwood.sensing import sense
    >>> src, dst = np.array([1, 1, 1, 2, 4]), np.array([2, 2, 3, 1, 3])
    >>> found = sense((src, dst), window=2)
    >>> found.statistics.unique_links, found.windows.unique_links.tolist()
    (4, [1, 2, 1])
    """
    compat = flag("sense", "compat", compat)
    one_of("sense", "partial", partial, ("keep", "drop"))
    windows = parse_window("sense", window)
    for name, listener in (("on_window", on_window), ("on_chunk", on_chunk)):
        callback("sense", name, listener)
    one_of("sense", "version", version, (4, 6))
    anonymizer = _anonymizer(anonymize, key, bits, version)
    table = None
    if version == 6:
        table = AddressTable(None if anonymizer is None else anonymizer.apply)
        anonymizer = None  # the table holds anonymous addresses
    given = Source(source, Reading(compat, version), threads, table)
    for name, other in (("compat", compat), ("ranges", ranges), ("archives", given.has_matrices)):
        if version == 6 and other:
            raise ValueError(f"sense: {name} are of IPv4, got version 6")
    chosen = engines.resolve(given.engine, engine, "sense", threads)
    options = Options(
        window=windows,
        anonymizer=anonymizer,
        ranges=None if ranges is None else Ranges(ranges, "sense"),
        keep_partial=partial == "keep" and not compat,
        compat=compat,
        memory=None if memory is None else byte_size("sense", "memory", memory, LEAST_MEMORY),
        batches=_batches(batches, given),
        engine=chosen,
        threads=threads,
        devices=device_list("sense", devices, chosen),
    )
    if chosen == "reference":
        found = sensed(given, options, on_window)
    else:
        found = Runner(given, options, Listeners(on_window, on_chunk)).run()
    return replace(found, addresses=table, compat=compat and bool(given.files))


def _batches(batches: Any, source: Source) -> int:
    found = count("sense", "batches", batches, 1)
    if found > 1 and source.has_matrices:
        raise ValueError(
            f"sense: batches are parts of packets, and the source has matrices; got {found}"
        )
    return found


def _anonymizer(method: Any, key: Any, bits: Any, version: int) -> Any:
    given = [name for name, value in (("key", key), ("bits", bits)) if value is not None]
    if method is None:
        if given:
            raise ValueError(f"sense: {given[0]} is for a method of anonymize, got no method")
        return None
    if callable(getattr(method, "apply", None)) and not isinstance(method, type):
        if given:
            raise ValueError(
                f"sense: {given[0]} is for a method by name, got an object that has its own"
            )
        return method
    return Anonymizer(method, key, bits, version=version, caller="sense")
