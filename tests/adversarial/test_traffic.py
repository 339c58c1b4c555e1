"""Random traffic in random ways: chunks, memory, threads, strides, sums; against the definition.

And what must not be wrong in silence: counts whose sums leave 64 bits, arrays that are written to
after they were looked at.
"""

from __future__ import annotations

import collections
import functools
import itertools
import operator
import pickle
import secrets

import numpy as np
import pytest

from adversarial.clock import attempts
from matchwood import engines
from matchwood.applications.sensing.archive import blob
from matchwood.applications.sensing.sliding.check import check_sliding
from matchwood.applications.sensing.statistics import cpu as statistics_cpu
from matchwood.applications.sensing.statistics.check import check_histograms, check_statistics
from matchwood.applications.sensing.stream import cpu as stream_cpu
from matchwood.applications.sensing.stream import running
from matchwood.applications.sensing.traffic import cpu as traffic_cpu
from matchwood.applications.sensing.traffic.check import check_traffic_matrix
from matchwood.applications.sensing.traffic.result import trusted
from matchwood.errors import FileFormatError
from matchwood.primitives.sort import cpu as sort_cpu
from matchwood.sensing import (
    Anonymizer,
    Histogram,
    Ranges,
    TrafficMatrix,
    Windows,
    read_archive,
    sense,
    sliding_statistics,
    sum_matrices,
    traffic_histograms,
    traffic_matrix,
    traffic_statistics,
    write_archive,
)


def random_traffic(rng):
    """Few or many addresses, at the ends of the range or not, with heavy hitters or not."""
    n = int(rng.integers(0, 3000))
    width = int(rng.integers(0, 33))
    src, dst = rng.integers(0, 1 << width, (2, n)).astype(np.uint32)
    if rng.random() < 0.3:
        src = ~src
    if rng.random() < 0.3:
        dst = ~dst
    for array in (src, dst):
        if n and rng.random() < 0.4:
            array[rng.random(n) < 0.6] = array[0]
        if rng.random() < 0.2:
            array.sort()
    return src, dst


@pytest.fixture
def small_parts(monkeypatch):
    """Limits so low that small traffic goes the ways of large traffic."""
    monkeypatch.setattr(sort_cpu, "TEAM_KEYS", 64)
    monkeypatch.setattr(sort_cpu, "MEMBER_KEYS", 128)
    monkeypatch.setattr(traffic_cpu, "TEAM_KEYS", 64)
    monkeypatch.setattr(statistics_cpu, "MEMBER_KEYS", 128)
    monkeypatch.setattr(traffic_cpu, "LEAST_SHARED_LINKS", 32)
    monkeypatch.setattr(running, "SAMPLE", 8)


@pytest.mark.slow
def test_matrices_and_statistics(small_parts):
    rng = np.random.default_rng(16)
    for _ in attempts(1):
        src, dst = random_traffic(rng)
        threads = int(rng.integers(1, 6))
        A = traffic_matrix(src, dst, threads=threads)
        check_traffic_matrix(src, dst, A)
        found = traffic_statistics((src, dst), threads=threads, batches=int(rng.integers(1, 5)))
        check_statistics(A, found)
        assert traffic_statistics(A, threads=threads) == found
        check_histograms((src, dst), traffic_histograms(A, threads=threads))
        cuts = np.sort(rng.integers(0, src.size + 1, int(rng.integers(0, 9))))
        parts = np.split(np.stack([src, dst]), cuts, axis=1)
        some = (traffic_matrix(np.ascontiguousarray(a), np.ascontiguousarray(b)) for a, b in parts)
        assert sum_matrices(some, threads=threads) == A


@pytest.mark.slow
def test_streams(small_parts, monkeypatch):
    rng = np.random.default_rng(17)
    for _ in attempts(1):
        src, dst = random_traffic(rng)
        time = np.cumsum(rng.integers(0, 50, src.size)) + rng.integers(-20, 20, src.size)
        window = int(rng.integers(1, 400)) if rng.random() < 0.7 else f"{rng.integers(1, 5000)}ns"
        monkeypatch.setattr(running, "CHUNK", int(rng.integers(1, 2000)))
        monkeypatch.setattr(running, "RUNS_PART", int(rng.choice([10, 1000, 100_000])))
        monkeypatch.setattr(stream_cpu, "FEWER", int(rng.integers(1, 4)))
        options = {
            "window": window,
            "threads": int(rng.integers(1, 4)),
            "partial": str(rng.choice(["keep", "drop"])),
            "memory": rng.choice([None, 10**6]),
        }
        size = int(rng.integers(1, 700))
        blocks = [
            (src[k : k + size], dst[k : k + size], time[k : k + size])
            for k in range(0, src.size, size)
        ]
        whole = sense((src, dst, time), **options, batches=int(rng.integers(1, 4)))
        found = sense(iter(blocks), **options)
        assert found.windows == whole.windows
        assert found.matrix == whole.matrix
        kept = src.size - found.capture["dropped"]
        assert int(found.windows.valid_packets.sum()) == kept
        assert found.matrix == traffic_matrix(src[:kept], dst[:kept])
        check_statistics((src[:kept], dst[:kept]), found.statistics)
        check_histograms((src[:kept], dst[:kept]), found.histograms)
        ends = [*found.windows.first.tolist(), kept]
        for k, row in enumerate(found.windows):
            assert row == traffic_statistics(
                (src[ends[k] : ends[k + 1]], dst[ends[k] : ends[k + 1]]), engine="reference"
            )


@pytest.mark.slow
def test_sliding_windows():
    rng = np.random.default_rng(18)
    for _ in attempts(0.7):
        src, dst = random_traffic(rng)
        window, stride = int(rng.integers(1, 300)), int(rng.integers(1, 20))
        found = sliding_statistics(src, dst, window, stride, threads=int(rng.integers(1, 5)))
        check_sliding(src, dst, found)


# Counts at the end of what 64 bits hold, against the integers of Python

MOST = 2**63 - 1
SIZES = [
    1,
    2,
    2**31,
    2**32 - 1,
    2**32,
    2**32 + 1,
    2**53 + 1,
    2**61,
    2**62 - 1,
    2**62,
    MOST - 1,
    MOST,
]


def large_links(rng) -> dict[tuple[int, int], int]:
    """{(source, destination): packets}; all together fit or not, often by one."""
    ends = rng.integers(0, int(rng.choice([2, 5, 2**32])), (2, int(rng.integers(1, 12)))).tolist()
    links = dict.fromkeys(sorted(zip(*ends, strict=True)), 1)
    for link in links:
        links[link] = int(rng.choice(SIZES[: int(rng.integers(1, len(SIZES) + 1))]))
    left = MOST - sum(links.values())
    if rng.random() < 0.5 and 1 <= links[link] + left <= MOST:
        links[link] += left  # just so many as fit
        if rng.random() < 0.3 and links[link] < MOST:
            links[link] += 1  # or one more
    return links


def arrays_of(links):
    rows = collections.Counter(i for i, _ in links)
    return list(rows), np.cumsum([0, *rows.values()]), [j for _, j in links], list(links.values())


def links_of(matrix) -> dict[tuple[int, int], int]:
    i, j, counts = (part.tolist() for part in matrix.tocoo())
    return dict(zip(zip(i, j, strict=True), counts, strict=True))


def made_of(links, engine):
    """The matrix; None where the links do not fit, which must be refused by name."""
    arrays = arrays_of(links)
    if engine == "gpu":
        there = engines.cupy()
        kinds = (np.uint32, np.int64, np.uint32, np.int64)
        arrays = [there.asarray(np.array(x, k)) for x, k in zip(arrays, kinds, strict=True)]
    if sum(links.values()) <= MOST:
        return TrafficMatrix(*arrays)
    with pytest.raises(ValueError, match=r"TrafficMatrix: counts must be at most 2\^63 - 1"):
        TrafficMatrix(*arrays)
    return None


def compare(matrix, links, engine) -> None:
    """Every sum of a matrix with sums of Python."""
    assert matrix.packets == sum(links.values())
    for column, found_sums in ((1, matrix.destination_sums().packets), (0, matrix.source_sums())):
        found = collections.Counter()
        for link, packets in links.items():
            found[link[column]] += packets
        assert found_sums.tolist() == [found[address] for address in sorted(found)]
    found = traffic_statistics(matrix, engine=engine)
    assert found.valid_packets == sum(links.values())
    assert found == traffic_statistics(matrix, engine="reference")
    check_statistics(matrix, found)
    histograms = traffic_histograms(matrix, engine=engine)
    check_histograms(matrix, histograms)
    assert histograms.link_packets.weight == histograms.source_packets.weight == matrix.packets


def compare_sums(matrices, engine, path, rng) -> None:
    """Sums of matrices, here and of an archive: right, or refused by name."""
    total: collections.Counter = collections.Counter()
    for matrix in matrices:
        total.update(links_of(matrix))
    write_archive(path, matrices, compression=None)
    assert [links_of(m) for m in read_archive(path)] == [links_of(m) for m in matrices]
    memory = rng.choice([None, 10**6])
    options = {"ranges": [["0.0.0.0/31"]]} if rng.random() < 0.5 else {}
    for way in (
        lambda: sum_matrices(matrices, engine=engine),
        lambda: sum_matrices(matrices, engine="reference"),
        lambda: functools.reduce(operator.add, matrices, sum_matrices(matrices[:0])),
        lambda: sense(path, memory=memory, engine=engine, **options).matrix,
        lambda: sense(path, engine="reference", **options).matrix,
    ):
        if total.total() <= MOST:
            assert links_of(way()) == dict(sorted(total.items()))
        else:
            with pytest.raises(ValueError, match=r": \w+ must have at most 2\^63 - 1 packets"):
                way()


def large_counts(engine, path) -> None:
    for k in attempts(1):
        rng = np.random.default_rng(k)
        matrices = []
        for links in [large_links(rng) for _ in range(int(rng.integers(1, 5)))]:
            matrix = made_of(links, engine)
            if matrix is not None:
                compare(matrix, links, engine)
                assert pickle.loads(pickle.dumps(matrix)) == matrix
                matrices.append(matrix)
        if matrices:
            compare_sums(matrices, engine, path, rng)


@pytest.mark.slow
def test_counts_at_the_end_of_what_fits(tmp_path):
    large_counts("cpu", tmp_path / "x.tar")


@pytest.mark.gpu
def test_counts_at_the_end_of_what_fits_on_a_gpu(tmp_path):
    large_counts("gpu", tmp_path / "x.tar")


def test_archives_whose_counts_do_not_fit(tmp_path):
    """Stored as one value for all, or each by itself; such matrices are written by others only."""
    path = tmp_path / "x.grb"
    for counts in ([MOST, 1], [2**62, 2**62], [MOST, MOST], [2**62 + 5, 2**61, 2**61]):
        n = len(counts)
        columns = np.arange(n, dtype=np.uint32)
        false = trusted(np.array([7], np.uint32), np.array([0, n]), columns, np.array(counts))
        path.write_bytes(blob.dump(false))
        for read in (lambda: list(read_archive(path)), lambda: sense(path)):
            with pytest.raises(FileFormatError, match=r"packets in all are more than 2\^63 - 1"):
                read()


def test_histograms_of_any_counts():
    for k in attempts(0.3):
        rng = np.random.default_rng(k)
        values = sorted({int(v) for v in rng.choice(SIZES, int(rng.integers(1, 9)))})
        counts = [int(c) for c in rng.choice(SIZES, len(values))]
        if sum(counts) > MOST:
            with pytest.raises(ValueError, match="Histogram: counts must have at most"):
                Histogram(values, counts)
            continue
        found = Histogram(values, counts)
        assert found.total == sum(counts)
        assert found.weight == sum(map(operator.mul, values, counts))
        right = [part / found.total for part in itertools.accumulate(counts)]
        assert np.allclose(found.cumulative(), right, rtol=1e-12)
        if values[-1] <= 2**62:
            edges, shares = found.log_binned()
            assert edges[-1] >= values[-1]
            assert np.isclose(shares.sum(), 1)
        else:
            with pytest.raises(ValueError, match="log_binned: values must be at most"):
                found.log_binned()
        fit = found.fit()
        assert fit is None or (fit.largest == values[-1] and 0 <= fit.distance <= 1)


# Arrays that are written to after they were given, or after they came back


def arrays_in(value, seen):
    """Every array that an object of ours has."""
    if id(value) in seen:
        return
    seen[id(value)] = value
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from arrays_in(item, seen)
    elif isinstance(value, dict):
        yield from arrays_in(list(value.values()), seen)
    elif type(value).__module__.startswith("matchwood."):
        slots = getattr(type(value), "__slots__", ())
        names = [*getattr(value, "__dict__", {}), *slots]
        yield from arrays_in([getattr(value, name, None) for name in names], seen)


def bases(array):
    """The array, and those whose memory it is; the last one is behind a door that stays shut."""
    while isinstance(array, np.ndarray):
        yield array
        array = array.base


def test_nothing_that_is_kept_can_be_written_to():
    src, dst = random_traffic(np.random.default_rng(3))
    matrix = traffic_matrix(src, dst)
    matrix.destination_sums()
    matrix.source_sums()
    found = sense((src, dst, np.arange(src.size)), window=100, ranges=[["10.0.0.0/8"]])
    kept = [matrix, found.windows, found.matrix, found.histograms, Ranges([["10.0.0.0/8"]]),
            Anonymizer("permutation", secrets.token_bytes(32)),
            Anonymizer("cryptopan", secrets.token_bytes(32))]  # fmt: skip
    for value in kept:
        arrays = list(arrays_in(value, {}))
        assert arrays
        for array in itertools.chain.from_iterable(map(bases, arrays)):
            assert not array.flags.writeable
            with pytest.raises(ValueError, match="cannot set WRITEABLE flag to True"):
                array.setflags(write=True)


@pytest.mark.slow
def test_arrays_of_the_caller_are_copied():
    for k in attempts(0.5):
        rng = np.random.default_rng(k)
        src, dst = random_traffic(rng)
        source = traffic_matrix(src, dst)
        given = [x.copy() for x in (source.sources, source.indptr, source.destinations,
                                    source.counts)]  # fmt: skip
        if rng.random() < 0.5:
            given = [x.view(_Other) for x in given]
        made = TrafficMatrix(*given)
        windows = sense((src, dst), window=100).windows
        tables = [windows.table.copy(), windows.first.copy()]
        other = Windows(*tables, tables[1])
        numbers = [np.arange(1, 9), np.arange(1, 9)]
        histogram = Histogram(*numbers)
        for array in (*given, *tables, *numbers):
            assert array.flags.writeable  # ours are; those of the caller stay as they were
            array[...] = rng.integers(0, 2**31)
        assert made == source
        assert other == windows
        assert histogram == Histogram(np.arange(1, 9), np.arange(1, 9))
        assert sum_matrices([made, made]).packets == 2 * src.size
        assert traffic_statistics(made) == traffic_statistics((src, dst))


class _Other(np.ndarray):
    """An array of another class."""


def test_what_was_pickled_is_looked_at_again():
    """Bytes that were changed on the way must not become a matrix that kernels trust."""
    rng = np.random.default_rng(5)
    A = traffic_matrix(*rng.integers(0, 50, (2, 300), dtype=np.uint32))
    whole = pickle.dumps(A)
    where = whole.index(A.indptr.tobytes())
    for _ in attempts(0.3):
        changed = bytearray(whole)
        at = where + 8 * int(rng.integers(A.indptr.size))
        changed[at : at + 8] = rng.integers(0, 2**63, dtype=np.int64).tobytes()
        with pytest.raises(ValueError, match="TrafficMatrix: "):
            pickle.loads(bytes(changed))


class _Wrong:
    """An anonymizer of the user, whose answer is wrong."""

    def __init__(self, answer) -> None:
        self.apply = answer


def test_wrong_anonymizers_are_refused():
    src = np.arange(100, dtype=np.uint32)
    for answer in (
        lambda x: x[:-1], lambda x: np.append(x, 1), lambda x: x.astype(float), lambda x: None,
        lambda x: x.astype(np.int64) - 5, lambda x: x[None], lambda x: x.astype(object),
        lambda x: np.ma.masked_array(x), lambda x: x.astype(np.uint64) << np.uint64(31),
    ):  # fmt: skip
        for engine in ("cpu", "reference"):
            with pytest.raises((TypeError, ValueError), match="sense: anonymize must "):
                sense((src, src), anonymize=_Wrong(answer), engine=engine)
    with pytest.raises(ValueError, match="sense: key is for a method by name"):
        sense((src, src), anonymize=_Wrong(lambda x: x), key=bytes(32))
