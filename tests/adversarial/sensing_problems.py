"""Right answers of sensing to spoil, for problems.py."""

from __future__ import annotations

import dataclasses
import functools
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import matchwood as mw
from matchwood import check
from matchwood.applications.sensing.statistics.result import NAMES
from matchwood.applications.sensing.traffic import trusted
from matchwood.sensing import Histogram, Windows

KEY = bytes(range(32))
SIZES = ((1, 1), (7, 3), (40, 9), (200, 30))  # packets, hosts


@functools.cache
def traffic() -> list[tuple[Any, Any]]:
    return [mw.generators.packets(n, "zipf", hosts=h, rng=n) for n, h in SIZES]


@functools.cache
def folder() -> Path:
    return Path(tempfile.mkdtemp())


def capture_cases(Case: Any, engine: str | None = None) -> Iterator[Any]:
    for src, dst in traffic():
        number = np.arange(src.size)
        sent = mw.Packets(src, dst, 1000 * number, src * 0 + 60, number.astype(np.uint8))
        path = folder() / f"{src.size}.pcap"
        mw.write_capture(path, sent)
        yield Case(
            src.size, None, sent._asdict(), lambda fields: mw.Packets(**fields),
            functools.partial(check.check_capture, path),
        )  # fmt: skip


def hidden_cases(method: str, Case: Any, engine: str | None = None) -> Iterator[Any]:
    if method == "cryptopan":
        pytest.importorskip("cryptography", reason="Crypto-PAn needs the package cryptography")
    for src, _ in traffic():
        yield Case(
            src.size, None, {"found": mw.anonymize(src, method, KEY)},
            lambda fields: fields["found"],
            lambda x, src=src: check.check_anonymized(src, x, method, key=KEY),
        )  # fmt: skip


def matrix_cases(ask: Callable[..., None], Case: Any, engine: str | None = None) -> Iterator[Any]:
    for src, dst in traffic():
        A = mw.traffic_matrix(src, dst, engine=engine)
        names = ("sources", "indptr", "destinations", "counts")
        yield Case(
            src.size, None, {name: getattr(A, name) for name in names},
            lambda fields, A=A: trusted(**{k: narrowed(fields[k], A, k) for k in fields}),
            functools.partial(ask, src, dst),
        )  # fmt: skip


def narrowed(value: Any, A: Any, name: str) -> Any:
    """Integers that fit as the matrix has them; what is no such vector stays what it is."""
    kind = getattr(A, name).dtype
    array = np.asarray(value)
    fits = array.dtype.kind in "iu" and array.ndim == 1
    if fits and array.size:
        limits = np.iinfo(kind)
        fits = limits.min <= int(array.min()) and int(array.max()) <= limits.max
    return array.astype(kind) if fits else array


def stored(src: Any, dst: Any, matrix: Any) -> None:
    path = folder() / f"{src.size}.tar"
    if not path.exists():
        mw.write_archive(path, [mw.traffic_matrix(src, dst)], compression=None)
    check.check_archive(path, [matrix])


def statistics_cases(Case: Any, engine: str | None = None) -> Iterator[Any]:
    for src, dst in traffic():
        found = mw.traffic_statistics((src, dst), engine=engine)
        yield Case(
            src.size, None, {name: getattr(found, name) for name in NAMES},
            lambda fields: mw.Statistics(**fields),
            functools.partial(check.check_statistics, (src, dst)),
        )  # fmt: skip


def sliding_cases(Case: Any, engine: str | None = None) -> Iterator[Any]:
    for src, dst in traffic():
        window = max(1, src.size // 3)
        found = mw.sliding_statistics(src, dst, window=window)
        yield Case(
            src.size, None, {"table": found.table},
            lambda fields, w=window: mw.Sliding(w, 1, fields["table"]),
            functools.partial(check.check_sliding, src, dst),
        )  # fmt: skip


def sensing_cases(Case: Any, engine: str | None = None) -> Iterator[Any]:
    """The numbers of windows and of their sum; the other parts are those of the cases above."""
    for src, dst in traffic():
        window, time = max(1, src.size // 3), 1000 * np.arange(src.size)
        found = mw.sense((src, dst, time), window=window, engine=engine)
        fields = {
            "table": found.windows.table, "first": found.windows.first, "time": found.windows.time,
            **{name: getattr(found.statistics, name) for name in NAMES},
        }  # fmt: skip

        def build(fields: dict[str, Any], found: Any = found) -> Any:
            told = dict(fields)
            windows = unchecked_windows(told.pop("table"), told.pop("first"), told.pop("time"))
            return dataclasses.replace(found, windows=windows, statistics=mw.Statistics(**told))

        yield Case(
            src.size, None, fields, build,
            functools.partial(check.check_sensing, (src, dst, time), window=window),
        )  # fmt: skip


def unchecked_windows(table: Any, first: Any, time: Any) -> Windows:
    """Windows of whatever arrays."""
    made = Windows.__new__(Windows)
    made.table, made.first, made.time = table, first, time
    return made


def histogram_cases(Case: Any, engine: str | None = None) -> Iterator[Any]:
    for src, dst in traffic():
        found = mw.traffic_histograms((src, dst), engine=engine)
        fields = {
            f"{name}.{part}": getattr(one, part)
            for name, one in found.as_dict().items()
            for part in ("values", "counts")
        }

        def build(fields: dict[str, Any]) -> Any:
            names = dict.fromkeys(key.split(".")[0] for key in fields)
            return mw.Histograms(
                *(unchecked(fields[f"{n}.values"], fields[f"{n}.counts"]) for n in names)
            )

        ask = functools.partial(check.check_histograms, (src, dst))
        yield Case(src.size, None, fields, build, ask)


def unchecked(values: Any, counts: Any) -> Histogram:
    """A histogram of whatever arrays."""
    made = Histogram.__new__(Histogram)
    made.values, made.counts = values, counts
    return made


def cases(Case: Any) -> dict[str, Callable[..., Iterator[Any]]]:
    """By the names of problems.py."""
    return {
        "capture": functools.partial(capture_cases, Case),
        "anonymized": functools.partial(hidden_cases, "permutation", Case),
        "anonymized, prefixes": functools.partial(hidden_cases, "cryptopan", Case),
        "traffic matrix": functools.partial(matrix_cases, check.check_traffic_matrix, Case),
        "archive": functools.partial(matrix_cases, stored, Case),
        "statistics": functools.partial(statistics_cases, Case),
        "sliding": functools.partial(sliding_cases, Case),
        "sensing": functools.partial(sensing_cases, Case),
        "histograms": functools.partial(histogram_cases, Case),
    }
