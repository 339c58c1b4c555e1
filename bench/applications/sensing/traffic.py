"""Traffic statistics against python-graphblas: packets to quantities, captures to sums, sliding.

    python -m bench.applications.sensing.traffic [--exponent 24] [--threads 1]

python-graphblas does what the reference of the challenge does: `from_coo` with the sum of
duplicates, then reductions of rows and columns.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from bench import harness
from matchwood import generators
from matchwood.applications.sensing.statistics.result import NINE
from matchwood.sensing import Packets, sense, sliding_statistics, traffic_statistics, write_capture

KINDS = ("uniform", "zipf")
WINDOW = 1 << 17
THESIS = 24_061_441  # packets/s end to end, eight A100 (table 3.2 of the thesis)


def graphblas(threads: int) -> Any:
    """python-graphblas on so many threads; None where it is not installed."""
    try:
        import graphblas as gb
        import suitesparse_graphblas  # noqa: F401
    except ImportError:
        print("python-graphblas is not installed: nothing to compare with")
        return None
    gb.ss.config["nthreads"] = threads
    return gb


def matrix_of(gb: Any, src: Any, dst: Any) -> Any:
    return gb.Matrix.from_coo(
        src.astype(np.uint64), dst.astype(np.uint64), np.ones(src.size, np.int64),
        nrows=1 << 32, ncols=1 << 32, dup_op=gb.binary.plus,
    )  # fmt: skip


def nine_of(gb: Any, matrix: Any) -> list[int]:
    """The nine quantities, in our order."""
    pattern = matrix.apply(gb.unary.one).new()
    rows, row_links = (m.reduce_rowwise(gb.monoid.plus).new() for m in (matrix, pattern))
    columns, column_links = (m.reduce_columnwise(gb.monoid.plus).new() for m in (matrix, pattern))

    def most(vector: Any) -> int:
        return int(vector.reduce(gb.monoid.max).new().value or 0)

    return [
        int(matrix.reduce_scalar(gb.monoid.plus).new().value or 0), matrix.nvals,
        int(matrix.reduce_scalar(gb.monoid.max).new().value or 0),
        rows.nvals, most(rows), most(row_links), columns.nvals, most(columns), most(column_links),
    ]  # fmt: skip


def packets_to_quantities(exponent: int, threads: int) -> list[harness.Result]:
    gb = graphblas(threads)
    results = []
    for kind in KINDS:
        packets = generators.packets(1 << exponent, kind=kind)
        src, dst = packets[0], packets[1]
        right = list(traffic_statistics((src, dst)).nine().values())

        def ours(src: Any = src, dst: Any = dst) -> list[int]:
            found = traffic_statistics((src, dst), threads=threads).nine()
            return list(found.values())

        functions = {"matchwood": ours}
        if gb is not None:
            functions["python-graphblas"] = lambda src=src, dst=dst: nine_of(
                gb, matrix_of(gb, src, dst)
            )
        results.append(
            harness.compare(
                f"2^{exponent} {kind} packets to nine quantities, {threads} threads",
                functions,
                verify=lambda who, found, right=right: _same(found, right),
                baseline="python-graphblas",
                bars={"matchwood": 12.0},
            )
        )
    return results


def _same(found: Any, right: Any) -> None:
    assert found == right, (found, right)


def official(n: int, kind: str) -> Packets:
    """Packets as the challenge's public capture has them: 56-byte records, a microsecond apart."""
    src, dst = generators.packets(n, kind)
    time = 1_715_091_767 * 10**9 + 1000 * np.arange(n, dtype=np.int64)
    return Packets(src, dst, time, np.full(n, 40, np.uint32), np.full(n, 17, np.uint8))


def strided(path: Path) -> tuple[Any, Any]:
    """Addresses of a capture of 56-byte records by NumPy alone."""
    records = np.fromfile(path, np.uint8, offset=24).reshape(-1, 56)
    return tuple(
        np.ascontiguousarray(records[:, at : at + 4]).view(">u4").ravel().astype(np.uint32)
        for at in (28, 32)
    )  # type: ignore[return-value]


def capture_to_sums(exponent: int, threads: int) -> list[harness.Result]:
    """A capture in the official layout to windows and their sum."""
    gb = graphblas(threads)
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for kind, bar in zip(KINDS, (10.0, 7.0), strict=True):
            path = Path(folder) / f"{kind}.pcap"
            write_capture(path, official(1 << exponent, kind))

            def ours(threads: int, path: Path = path) -> list[int]:
                return list(sense(path, threads=threads).statistics.nine().values())

            right = ours(threads)
            functions: dict[str, Any] = {
                "matchwood": lambda ours=ours: ours(threads),
                "matchwood, 1 thread": lambda ours=ours: ours(1),
                "matchwood, 2 threads": lambda ours=ours: ours(2),
            }
            if gb is not None:
                functions["NumPy and python-graphblas"] = lambda path=path: theirs(gb, path)
            result = harness.compare(
                f"capture of 2^{exponent} {kind} packets to windows and sum, {threads} threads",
                functions,
                verify=lambda who, found, right=right: _same(found, right),
                baseline="NumPy and python-graphblas",
                bars={"matchwood": bar},
                rounds=3,
            )
            rate = (1 << exponent) / result["rows"]["matchwood"]["median"]
            print(f"{rate / 1e6:.2f} M packets/s; the thesis, eight A100: {THESIS / 1e6:.2f}")
            results.append(result)
    return results


def theirs(gb: Any, path: Path) -> list[int]:
    src, dst = strided(path)
    tree: list[Any] = []
    for start in range(0, src.size, WINDOW):
        carry = matrix_of(gb, src[start : start + WINDOW], dst[start : start + WINDOW])
        nine_of(gb, carry)
        level = 0
        while level < len(tree) and tree[level] is not None:
            carry, tree[level] = carry.ewise_add(tree[level], gb.binary.plus).new(), None
            level += 1
        tree[level : level + 1] = [carry]
    total = None
    for part in tree:
        if part is not None:
            total = part if total is None else total.ewise_add(part, gb.binary.plus).new()
    return nine_of(gb, total)


def sliding(exponent: int, threads: int) -> list[harness.Result]:
    """All nine quantities at stride 1, against a matrix for each window at stride 2^17."""
    gb = graphblas(threads)
    results = []
    for kind, bar in zip(KINDS, (1.2, 2.5), strict=True):
        packets = generators.packets(1 << exponent, kind=kind)
        src, dst = packets[0], packets[1]

        def ours(src: Any = src, dst: Any = dst) -> list[int]:
            found = sliding_statistics(src, dst, WINDOW, threads=threads)
            return [found[0][name] for name in NINE]

        functions: dict[str, Any] = {"matchwood, stride 1": ours}
        if gb is not None:

            def blocks(src: Any = src, dst: Any = dst) -> list[int]:
                found = [
                    nine_of(gb, matrix_of(gb, src[k : k + WINDOW], dst[k : k + WINDOW]))
                    for k in range(0, src.size, WINDOW)
                ]
                return found[0]

            functions["python-graphblas, stride 2^17"] = blocks
        right = ours()
        results.append(
            harness.compare(
                f"sliding window of 2^17 over 2^{exponent} {kind} packets, {threads} threads",
                functions,
                verify=lambda who, found, right=right: _same(found, right),
                baseline="python-graphblas, stride 2^17",
                bars={"matchwood, stride 1": bar},
                rounds=3,
            )
        )
    return results


PARTS = {
    "packets": packets_to_quantities,
    "capture": lambda exponent, threads: capture_to_sums(exponent - 1, threads),
    "sliding": lambda exponent, threads: sliding(exponent - 3, threads),
}


def run(exponent: int = 22, threads: int = 1) -> list[harness.Result]:
    return [result for part in PARTS.values() for result in part(exponent, threads)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--exponent", type=int, default=24)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--part", choices=sorted(PARTS))
    options = parser.parse_args()
    if options.part:
        PARTS[options.part](options.exponent, options.threads)
    else:
        run(options.exponent, options.threads)
