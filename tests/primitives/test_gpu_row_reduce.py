"""Row reduction on a GPU: rows of every length class, all instances, types independent."""

from __future__ import annotations

import numpy as np
import pytest

from matchwood import engines
from matchwood.engines import gpu
from matchwood.primitives.row_reduce import gpu as ours
from matchwood.primitives.row_reduce import lowest
from support import looped

pytestmark = pytest.mark.gpu


@pytest.fixture
def cp():
    return engines.cupy()


def lengths_of(name):
    rng = np.random.default_rng(11)
    if name == "none":
        return np.zeros(0, np.int64)
    if name == "one empty":
        return np.zeros(1, np.int64)
    if name == "empty rows":
        return np.zeros(9000, np.int64)
    if name == "stencil":
        return np.full(20_000, 9)
    if name == "powers of two":
        return np.repeat([1, 2, 4, 8, 16, 32, 64, 128, 256, 512], 40)
    if name == "borders":  # around the long row, the chunk, and the tile
        short = [0, 63, 64, 65, 0, 255, 256, 257, 511, 512, 513, 1, 0]
        return np.array([*short, 2047, 2048, 8191, 8192, 8193, 3, 16_384, 50_000, 0])
    if name == "long alone":
        return np.array([300_000])
    if name == "long first and last":
        return np.concatenate(([100_000], np.full(3000, 3), [600, 600], np.zeros(500), [9000]))
    if name == "one in many":  # one lane a row on average, and rows that take a warp
        lengths = np.full(6000, 2)
        lengths[::97] = rng.integers(65, 500, lengths[::97].size)
        return lengths
    if name == "skewed":
        return np.minimum((rng.pareto(1.1, 8000) * 2).astype(np.int64), 40_000)
    raise KeyError(name)


CASES = (
    "none", "one empty", "empty rows", "stencil", "powers of two", "borders", "long alone",
    "long first and last", "one in many", "skewed",
)  # fmt: skip


def pattern(name, kind, columns=5000):
    lengths = lengths_of(name).astype(np.int64)
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(kind)
    indices = np.random.default_rng(7).integers(0, columns, int(indptr[-1])).astype(kind)
    return indptr, indices


def row_sums(indptr, terms, kind):
    """Sums of rows; exact for integers."""
    sums = np.zeros(indptr.size - 1, kind)
    filled = np.flatnonzero(np.diff(indptr))
    if filled.size:
        sums[filled] = np.add.reduceat(terms.astype(kind), indptr[filled])
    return sums


CHUNK = 8192  # entries, as row_reduce.cuh has it


@looped("name", CASES)
@looped("kind", [np.int32, np.int64])
@looped("size", [1024, 2048])
def test_tiles_cover_everything_once(cp, name, kind, size):
    indptr, _ = pattern(name, kind)
    tiles = ours.Tiles(cp.asarray(indptr), size)
    if indptr.size == 1:
        assert tiles.count == 0
        return
    row, entry = tiles.row.get(), tiles.entry.get()
    assert (row[-1], entry[-1]) == (indptr.size - 1, indptr[-1])
    first = np.where(row < 0, ~row, row)
    assert first[0] == 0
    assert entry[0] == 0
    assert (np.diff(entry) >= 0).all()
    assert (np.diff(first) >= 0).all()
    limit = size // 4
    for t in range(tiles.count):
        long = row[t] < 0
        length = entry[t + 1] - entry[t]
        assert length <= (CHUNK if long else size + limit - 1)
        assert long or first[t + 1] - first[t] <= size
        if long:
            assert indptr[first[t] + 1] - indptr[first[t]] > limit
        else:
            assert entry[t] == indptr[first[t]]


@looped("name", CASES)
@looped("kind", [np.int32, np.int64])
def test_chunks_know_their_first_row(cp, name, kind):
    indptr, indices = pattern(name, kind)
    chunks = ours.Chunks(cp.asarray(indptr), indices.size)
    assert chunks.count == -(-indices.size // ours.CHUNK)
    if chunks.count:
        expected = np.searchsorted(indptr, ours.CHUNK * np.arange(chunks.count), "right") - 1
        assert chunks.first_row.get().tolist() == [*expected.tolist(), indptr.size - 2]


@looped("name", CASES)
@looped("kind", [np.int32, np.int64])
def test_spmv_of_integers_is_exact(cp, name, kind):
    indptr, indices = pattern(name, kind)
    rng = np.random.default_rng(1)
    data = rng.integers(-100, 100, indices.size).astype(np.int32)
    x = rng.integers(-(1 << 40), 1 << 40, 5000)
    arrays = [cp.asarray(array) for array in (indptr, indices, data, x)]
    y = ours.spmv(*arrays, dtype=np.int64, accumulator=np.int64)
    assert y.get().tolist() == row_sums(indptr, data * x[indices], np.int64).tolist()
    y = ours.spmv(arrays[0], arrays[1], None, arrays[3], dtype=np.int64, accumulator=np.int64)
    assert y.get().tolist() == row_sums(indptr, x[indices], np.int64).tolist()


@looped("name", CASES)
@looped("matrix", [np.float32, np.float64])
@looped("vector", [np.float32, np.float64])
@looped("result", [np.float32, np.float64])
def test_spmv_of_floats(cp, name, matrix, vector, result):
    indptr, indices = pattern(name, np.int32)
    rng = np.random.default_rng(2)
    data, x = rng.random(indices.size).astype(matrix), rng.random(5000).astype(vector)
    arrays = [cp.asarray(array) for array in (indptr, indices, data, x)]
    y = ours.spmv(*arrays, dtype=result, accumulator=np.float64).get()
    assert y.dtype == result
    exact = row_sums(indptr, data.astype(np.longdouble) * x[indices], np.longdouble)
    single = result is np.float32 or (matrix, vector) == (np.float32, np.float32)
    np.testing.assert_allclose(y, exact, rtol=1e-6 if single else 1e-12)
    assert ours.spmv(*arrays, dtype=result, accumulator=np.float64).get().tolist() == y.tolist()


def test_short_rows_are_added_in_order(cp):
    """Up to 9 entries a row one thread adds: the bits of a plain loop."""
    indptr, indices = pattern("stencil", np.int32)
    rng = np.random.default_rng(3)
    data, x = rng.normal(size=indices.size), rng.normal(size=5000)
    arrays = [cp.asarray(array) for array in (indptr, indices, data, x)]
    y = ours.spmv(*arrays, dtype=np.float64, accumulator=np.float64).get()
    terms = (data * x[indices]).reshape(-1, 9)
    expected = np.zeros(terms.shape[0])
    for k in range(9):
        expected = expected + terms[:, k]
    assert y.tolist() == expected.tolist()


def test_types_of_sum_and_terms_are_independent(cp):
    """int32 times float32 is float64 in NumPy; the accumulator decides how it is summed."""
    indptr, indices = pattern("powers of two", np.int64)
    data = np.full(indices.size, 3, np.int32)
    x = np.full(5000, 0.25, np.float32)
    arrays = [cp.asarray(array) for array in (indptr, indices, data, x)]
    y = ours.spmv(*arrays, dtype=np.float32, accumulator=np.float64).get()
    assert y.tolist() == (np.diff(indptr) * 0.75).tolist()
    truncated = ours.spmv(*arrays, dtype=np.int32, accumulator=np.int32).get()
    assert not truncated.any()  # 0 + 0.75 becomes 0 again after every term


@looped("name", CASES)
@looped("n", [1, 3, 8])
@looped(
    ("kind", "weight"),
    [
        (np.int32, np.float32),
        (np.int64, np.float64),
        (np.int32, np.float64),
        (np.int64, np.float32),
    ],
)
def test_strongest_neighbours(cp, name, n, kind, weight):
    indptr, indices = pattern(name, kind, columns=max(lengths_of(name).size, 1))
    rng = np.random.default_rng(4)
    data = rng.integers(-4, 5, indices.size).astype(weight)  # many ties
    data[rng.random(data.size) < 0.1] = np.nan
    data[rng.random(data.size) < 0.1] *= weight(1e-40)  # subnormal numbers are no zeros
    columns, weights = (
        array.get()
        for array in ours.strongest_neighbours(*map(cp.asarray, (indptr, indices, data)), n)
    )
    rows = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
    kept = (indices != rows) & ~np.isnan(data)
    r, c, w = rows[kept], indices[kept], data[kept]
    order = np.lexsort((c, -w, r))
    r, c, w = r[order], c[order], w[order]
    slot = np.arange(r.size) - np.searchsorted(r, r)
    expected_columns = np.full((indptr.size - 1, n), -1, kind)
    expected_weights = np.zeros((indptr.size - 1, n), weight)
    best = slot < n
    expected_columns[r[best], slot[best]] = c[best]
    expected_weights[r[best], slot[best]] = w[best]
    assert columns.dtype == kind
    assert weights.dtype == weight
    np.testing.assert_array_equal(columns, expected_columns)
    np.testing.assert_array_equal(weights, expected_weights)


@looped("name", CASES)
@looped("kind", [np.int32, np.int64])
@looped("label_kind", [np.int32, np.int64])
def test_minimum_label(cp, name, kind, label_kind):
    rows = lengths_of(name).size
    indptr, indices = pattern(name, kind, columns=max(rows, 1))
    label = np.random.default_rng(5).permutation(rows).astype(label_kind)
    expected = label.copy()
    np.minimum.at(expected, np.repeat(np.arange(rows), np.diff(indptr)), label[indices])
    smallest = ours.minimum_label(*map(cp.asarray, (indptr, indices, label))).get()
    assert smallest.dtype == label_kind
    np.testing.assert_array_equal(smallest, expected)


@looped("name", CASES)
@looped("kind", [np.int32, np.int64, np.float32, np.float64])
def test_maximum_neighbour(cp, name, kind):
    indptr, indices = pattern(name, np.int32)
    x = np.random.default_rng(6).integers(-50, 0, 5000).astype(kind)
    if x.dtype.kind == "f":
        x[::7] = np.nan
    rows = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
    expected = np.full(indptr.size - 1, lowest(kind))
    np.fmax.at(expected, rows, x[indices])
    largest = ours.maximum_neighbour(*map(cp.asarray, (indptr, indices, x))).get()
    assert largest.dtype == kind
    np.testing.assert_array_equal(largest, expected)


@looped("size", [1024, 2048])
def test_size_of_tiles_does_not_matter(cp, size):
    indptr, indices = pattern("borders", np.int32)
    data, x = np.arange(indices.size) % 100, np.arange(5000)
    arrays = [cp.asarray(array) for array in (indptr, indices, data, x)]
    tiles = ours.Tiles(arrays[0], size)
    y = ours.spmv(*arrays, dtype=np.int64, accumulator=np.int64, tiles=tiles)
    assert y.get().tolist() == row_sums(indptr, data * x[indices], np.int64).tolist()


def test_captured(cp):
    """Rows of several chunks work inside a captured graph, replayed."""
    indptr, indices = pattern("long first and last", np.int32)
    tiles = ours.Tiles(cp.asarray(indptr))
    cols = cp.asarray(indices)
    rows = indptr.size - 1
    label = cp.arange(max(rows, 5000), 0, -1, dtype=np.int32)
    out = cp.zeros(rows, np.int32)
    k = ours.SOURCE.kernels("smallest", I=np.int32, L=np.int32, T="2048")
    space = tiles.scratch(4)
    captured = gpu.capture(lambda: tiles.launch(k.smallest, 4, cols, (label, out), space))
    host = label.get()
    expected = host[:rows].copy()
    np.minimum.at(expected, np.repeat(np.arange(rows), np.diff(indptr)), host[indices])
    for _ in range(3):
        out.fill(0)
        captured.launch()
        np.testing.assert_array_equal(out.get(), expected)


def test_kernel_made_for_other_tiles_is_refused(cp):
    indptr, indices = pattern("stencil", np.int32)
    k = ours.SOURCE.kernels("smallest", I=np.int32, L=np.int32, T="1024")
    with pytest.raises(ValueError, match="not made for tiles of 2048"):
        ours.Tiles(cp.asarray(indptr)).launch(k.smallest, 4, cp.asarray(indices), ())


def test_tiles_serve_many_reductions_and_streams(cp):
    indptr, indices = pattern("skewed", np.int32)
    tiles = ours.Tiles(cp.asarray(indptr))
    data = cp.ones(indices.size, np.float32)
    results = []
    for _ in range(8):
        with cp.cuda.Stream(non_blocking=True) as stream:
            y = ours.spmv(
                tiles.indptr, cp.asarray(indices), data, cp.ones(5000, np.float32),
                dtype=np.float32, accumulator=np.float32, tiles=tiles,
            )  # fmt: skip
            stream.synchronize()
            results.append(y.get())
    for y in results:
        np.testing.assert_array_equal(y, np.diff(indptr))
