"""Whether packets are those of a capture: the file is read again, frame by frame."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from matchwood import answers
from matchwood.applications.sensing.capture import reference
from matchwood.applications.sensing.capture.sources import compression_of
from matchwood.applications.sensing.packets import AddressTable, Packets
from matchwood.arguments import flag, shown
from matchwood.arguments import path as file_name
from matchwood.errors import CheckFailed
from matchwood.io.files import unpacked


def check_capture(
    path: str | os.PathLike[str],
    packets: Any,
    skipped: Mapping[str, int] | None = None,
    *,
    compat: bool = False,
    addresses: Any = None,
) -> None:
    """Raise CheckFailed unless `packets` are those of the capture, in its order.

    The file is read by plain Python, one frame after the other: a few hundred thousand packets a
    second.  `skipped`, where given, must be the counts of `iter_capture`.

    Parameters
    ----------
    path : str or PathLike
    packets : Packets
        What `read_capture` returned.
    skipped : mapping or None
    compat : bool
        As in the call that read them.
    addresses : AddressTable, optional
        For packets of IPv6, the table that they were read with, and no other capture before.

    Raises
    ------
    CheckFailed
        With the first packet that differs.
    FileFormatError
        If the file is damaged.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from matchwood.check import check_capture
    >>> from matchwood.sensing import read_capture, write_capture, Packets
    >>> one = np.array([167772161], np.uint32)
    >>> sent = Packets(one, one + 1, np.array([0]), one * 0 + 60, np.array([6], np.uint8))
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_capture(folder / "one.pcap", sent)
    >>> check_capture(folder / "one.pcap", read_capture(folder / "one.pcap"))
    """
    caller = "check_capture"
    compat = flag(caller, "compat", compat)
    if not isinstance(packets, (tuple, list)):
        raise TypeError(f"{caller}: packets must be Packets, got {type(packets).__name__}")
    if not (skipped is None or isinstance(skipped, Mapping)):
        kind = type(skipped).__name__
        raise TypeError(f"{caller}: skipped must be a mapping or None, got {kind}")
    with open(file_name(caller, "path", path), "rb") as stream:
        content = stream.read()
    compression = compression_of(content[:8])
    if compression:
        content = b"".join(unpacked([content], compression))
    known: dict[int, int] = {}
    if not (addresses is None or isinstance(addresses, AddressTable)):
        raise TypeError(
            f"{caller}: addresses must be an AddressTable, got {type(addresses).__name__}"
        )
    version = 4 if addresses is None else 6
    wanted, reasons = reference.packets_of(content, compat, version, known)
    if addresses is not None:
        found = [int(high) << 64 | int(low) for high, low in addresses.addresses()]
        if found != list(known):
            raise CheckFailed(f"{caller}: addresses must be those of the capture, in its order")
    if len(packets) != len(wanted):
        raise CheckFailed(f"{caller}: packets must have {len(wanted)} fields")
    for name, right, given in zip(Packets._fields, wanted, packets, strict=True):
        _compare(name, right, given)
    if skipped is not None and dict(skipped) != reasons:
        raise CheckFailed(f"{caller}: the file has {reasons} to skip, got {shown(dict(skipped))}")


def _compare(name: str, right: Any, given: Any) -> None:
    given = answers.integers("check_capture", "check_capture", name, given, right.shape, "cpu")
    wrong = answers.first(given != right)
    if wrong is not None:
        raise CheckFailed(
            f"check_capture: {name} of packet {wrong} must be {right[wrong]}, got {given[wrong]}"
        )
