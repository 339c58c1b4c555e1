"""A valid call of every public function of sensing, for the attacks of wrong_arrays.py."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import matchwood as mw
from adversarial import listed
from adversarial.listed import packets
from adversarial.wrong_arrays import Call
from matchwood import check, sensing

NO_ARRAYS = {
    "matchwood.Capture", "matchwood.iter_capture", "matchwood.read_capture",
    "matchwood.read_archive", "matchwood.new_key", "matchwood.generators.packets",
    "matchwood.Packets", "matchwood.sensing.archive_writer",
}  # fmt: skip
"""They take no array, or are made by us and read by the user alone."""

KEY = bytes(range(32))


@functools.cache
def sent() -> mw.Packets:
    src, dst = packets()
    number = np.arange(60)
    return mw.Packets(src, dst, 1000 * number, src * 0 + 60, number.astype(np.uint8))


@functools.cache
def matrix() -> mw.TrafficMatrix:
    return mw.traffic_matrix(*packets())


@functools.cache
def files() -> tuple[Path, Path]:
    """A capture of `sent` and an archive of `matrix`."""
    folder = Path(tempfile.mkdtemp())
    mw.write_capture(folder / "a.pcap", sent())
    mw.write_archive(folder / "a.tar", [matrix()], compression=None)
    return folder / "a.pcap", folder / "a.tar"


def written(packets: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.pcap")
        mw.write_capture(path, packets)
        return mw.read_capture(path)


def archived(*arrays: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.tar")
        mw.write_archive(path, [mw.TrafficMatrix(*arrays)], compression=None)
        return next(mw.read_archive(path))


def arrays() -> tuple[Any, ...]:
    A = matrix()
    return A.sources.copy(), A.indptr.copy(), A.destinations.copy(), A.counts.copy()


def used(A: mw.TrafficMatrix) -> None:
    """What was accepted can be worked with, in every way."""
    A.check()
    check.check_statistics(A, mw.traffic_statistics(A))
    check.check_histograms(A, mw.traffic_histograms(A))
    assert A.graph()[0].nnz == A.links
    assert int(A.toscipy().data.sum()) == A.packets
    assert A.destination_sums().packets.sum() == A.source_sums().sum() == A.packets


def unchanged(found: Any, given: Any) -> None:
    """What was accepted came back as it was."""
    for one, other in zip(found, given, strict=True):
        assert np.array_equal(one, np.asarray(other))


def sensing_calls() -> dict[str, Callable[[], list[Call]]]:
    src, dst = packets()
    windows = mw.sense((src, dst), window=20).windows
    return {
        **listed.calls(),
        "matchwood.sense": lambda: [
            Call(lambda *pair: mw.sense(pair, window=20).statistics, packets(),
                 verify=lambda found, *pair: check.check_statistics(pair, found)),
            Call(lambda *three: mw.sense(three, window="10us").statistics,
                 (*packets(), 1000 * np.arange(60)),
                 verify=lambda found, *three: check.check_statistics(three[:2], found)),
        ],
        "matchwood.write_capture": lambda: [Call(written, (sent(),), verify=unchanged)],
        "matchwood.write_archive": lambda: [Call(archived, arrays())],
        "matchwood.anonymize": lambda: [
            Call(lambda a: mw.anonymize(a, "permutation", KEY), (src,)),
            Call(lambda a: mw.anonymize(a, "truncate", bits=9), (src,)),
        ],
        "matchwood.Anonymizer": lambda: [
            Call(mw.Anonymizer("permutation", KEY), (src,)),
            Call(mw.Anonymizer("cryptopan", KEY), (src,)),
        ],
        "matchwood.sensing.AddressTable": lambda: [
            Call(
                lambda addresses: sensing.AddressTable().numbers(addresses),
                (np.arange(12, dtype=np.uint64).reshape(6, 2) // np.uint64(3),),
            )
        ],
        "matchwood.sensing.Ranges": lambda: [
            Call(sensing.Ranges([["10.0.0.0/8"], ["0.0.0.0/9"]]).classify, (src,))
        ],
        "matchwood.sensing.Fit": lambda: [
            Call(sensing.Fit(1.5, 0.5, 0.1, 0.1, 0.1, 9).probability, (np.arange(1, 10),))
        ],
        "matchwood.traffic_matrix": lambda: [
            Call(mw.traffic_matrix, packets(),
                 verify=lambda found, *pair: check.check_traffic_matrix(*pair, found)),
        ],
        "matchwood.TrafficMatrix": lambda: [
            Call(lambda *parts: used(mw.TrafficMatrix(*parts)), arrays())
        ],
        "matchwood.sum_matrices": lambda: [
            Call(lambda *parts: mw.sum_matrices([mw.TrafficMatrix(*parts)] * 3), arrays())
        ],
        "matchwood.traffic_statistics": lambda: [
            Call(lambda *pair: mw.traffic_statistics(pair), packets(),
                 verify=lambda found, *pair: check.check_statistics(pair, found)),
        ],
        "matchwood.traffic_histograms": lambda: [
            Call(lambda *pair: mw.traffic_histograms(pair), packets())
        ],
        "matchwood.Histograms": lambda: [
            Call(lambda *pair: mw.traffic_histograms(pair).source_packets.fit(), packets())
        ],
        "matchwood.sensing.Histogram": lambda: [
            Call(lambda *parts: sensing.Histogram(*parts).log_binned(),
                 (np.array([1, 2, 5]), np.array([4, 2, 1]))),
        ],
        "matchwood.sensing.Windows": lambda: [
            Call(lambda *parts: len(sensing.Windows(*parts)),
                 (windows.table.copy(), windows.first.copy(), windows.first * 1000))
        ],
        **_checks(),
    }  # fmt: skip


def _checks() -> dict[str, Callable[[], list[Call]]]:
    home = "matchwood.check."
    src = packets()[0]
    hidden = mw.anonymize(src, "permutation", KEY)
    return {
        home + "check_capture": lambda: [
            Call(lambda given: check.check_capture(files()[0], given), (sent(),))
        ],
        home + "check_archive": lambda: [
            Call(lambda *parts: check.check_archive(files()[1], [mw.TrafficMatrix(*parts)]),
                 arrays()),
        ],
        home + "check_anonymized": lambda: [
            Call(lambda a, b: check.check_anonymized(a, b, "permutation", key=KEY), (src, hidden))
        ],
    }  # fmt: skip
