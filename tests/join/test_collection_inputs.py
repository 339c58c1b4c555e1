"""What a join takes, and what it refuses."""

from __future__ import annotations

import copy
import importlib
import random

import numpy as np
import pytest
import scipy.sparse as sp

from join_collections import records
from matchwood.applications.join.fuzzy import estimate
from matchwood.check import check_fuzzy_join
from matchwood.join import collection, fuzzy_join, iter_fuzzy_join

ROWS = [["ab", "cd"], ["cd", "ab", "ab"], ["ab", ""], [], ["xyz"]]
WANTED = [(0, 1, 1.0), (0, 2, 0.5), (1, 2, 0.5)]


def found(*args, **options):
    pairs = fuzzy_join(*args, delta=0.5, **options)
    return list(zip(*(part.tolist() for part in pairs), strict=True))


def test_lists_of_every_kind():
    assert found(ROWS) == WANTED
    assert found(tuple(map(tuple, ROWS))) == WANTED
    assert found([set(row) for row in ROWS]) == WANTED
    assert found([np.array(row, dtype=object) for row in ROWS]) == WANTED
    assert found([np.array(row, dtype="U3") for row in ROWS]) == WANTED
    assert found(row for row in ROWS) == WANTED
    assert found([";".join(row) for row in ROWS], separator=";") == WANTED
    assert found(np.array(ROWS, dtype=object)) == WANTED
    assert found([ROWS[0], ROWS[1], ROWS[2], None, float("nan")]) == WANTED


def test_tables():
    import pandas

    table = pandas.DataFrame({"tags": [";".join(r) for r in ROWS], "lists": ROWS, "n": range(5)})
    assert found(table, on="tags", separator=";") == WANTED
    assert found(table, on="lists") == WANTED
    assert found(table["lists"]) == WANTED
    assert found({"lists": ROWS}, on="lists") == WANTED
    missing = table.assign(tags=[*table["tags"][:3], None, None])
    assert found(missing, on="tags", separator=";") == WANTED
    both = fuzzy_join(table, table, left_on="lists", right_on="lists", delta=0.5)
    assert len(both) == 2 * 3 + 4  # both directions, and each record that is not empty with itself
    grouped = fuzzy_join(table.assign(g=list("xyxyx")), on="lists", by="g", delta=0.5)
    assert list(zip(grouped.left, grouped.right, strict=True)) == [(0, 2)]
    twice = fuzzy_join(table.assign(g=list("xyxyx"), h=1), on="lists", by=["g", "h"], delta=0.5)
    assert twice.left.tolist() == [0]


@pytest.mark.parametrize("module", ["polars", "pyarrow"])
def test_other_tables(module):
    library = importlib.import_module(module)
    make = library.DataFrame if module == "polars" else library.table
    table = make({"tags": [";".join(r) for r in ROWS], "lists": ROWS})
    assert found(table, on="tags", separator=";") == WANTED
    assert found(table, on="lists") == WANTED

    class Stream:  # only the protocol
        def __arrow_c_stream__(self, requested_schema=None):
            return table.__arrow_c_stream__(requested_schema)

    assert found(Stream(), on="lists") == WANTED
    pairs = fuzzy_join(table, on="lists", delta=0.5)
    made = pairs.to_polars() if module == "polars" else pairs.to_arrow()
    assert made["score"].to_pylist() if module == "pyarrow" else made["score"].to_list()


def test_integers_are_plain_sets():
    rows = [[1, 2, 3], [2, 3, 4], np.array([3, 2, 1, 1]), [10**30, 1]]
    pairs = fuzzy_join(rows, delta=0.5, similarity="equal")
    assert list(zip(*(p.tolist() for p in pairs), strict=True)) == [
        (0, 1, 0.5), (0, 2, 1.0), (1, 2, 0.5),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("data", "options", "kind", "message"),
    [
        ([["a", None]], {}, TypeError, r"left\[0\]\[1\] must be text, got None"),
        ([["a"], ["b", float("nan")]], {}, TypeError, r"left\[1\]\[1\] must be text, got nan"),
        ([["a", 1]], {}, TypeError, r"left\[0\]\[1\] must be text, got int"),
        ([[1, "a"]], {}, TypeError, r"left\[0\]\[1\] must be an integer, got str"),
        ([[1.5]], {}, TypeError, r"left\[0\]\[0\] must be text or an integer, got float"),
        ([[True]], {}, TypeError, "text or an integer, got bool"),
        ([[b"a"]], {}, TypeError, "got bytes"),
        ([b"a"], {}, TypeError, r"left\[0\] must be a list of elements, got bytes"),
        ([[1, 2]], {}, TypeError, "similarity='equal'"),
        (["a b"], {}, TypeError, "separator"),
        ("abc", {}, TypeError, "left must be a list of records, got str"),
        (7, {}, TypeError, "left must be a list of records, got int"),
        ([{"a": 1}], {}, TypeError, "must be a list of elements, got dict"),
        ([["\ud800"]], {}, ValueError, "lone surrogates"),
        ([["a"]], {"delta": 0}, ValueError, "delta must be above 0"),
        ([["a"]], {"delta": 1.1}, ValueError, "delta must be finite and between 0 and 1"),
        ([["a"]], {"delta": float("nan")}, ValueError, "delta"),
        ([["a"]], {"delta": "0.7"}, TypeError, "delta must be a number"),
        ([["a"]], {"delta": True}, TypeError, "delta must be a number"),
        ([["a"]], {"k": 0}, ValueError, "k must be at least 1"),
        ([["a"]], {"k": 1.0}, TypeError, "k must be an integer"),
        ([["a"]], {"per_left": 0}, ValueError, "per_left must be at least 1"),
        ([["a"]], {"k": 1, "per_left": 1}, ValueError, "cannot both be given"),
        ([["a"]], {"k": 1, "shard": (0, 2)}, ValueError, "k looks at all pairs"),
        ([["a"]], {"q": 0}, ValueError, "q must be at least 1"),
        ([["a"]], {"q": 65}, ValueError, "q must be at most 64"),
        ([["a"]], {"similarity": "cosine"}, ValueError, "similarity must be one of"),
        ([["a"]], {"verify": "fast"}, ValueError, "verify must be one of"),
        ([["a"]], {"mode": "both"}, ValueError, "mode must be one of"),
        ([["a"]], {"filters": "none"}, ValueError, "filters must be one of"),
        ([["a"]], {"scores": 1}, TypeError, "scores must be True or False"),
        ([["a"]], {"shard": (2, 2)}, ValueError, "part < parts"),
        ([["a"]], {"shard": 3}, TypeError, "shard must be"),
        ([["a"]], {"limit": -1}, ValueError, "limit must be at least 0"),
        ([["a"]], {"engine": "tpu"}, ValueError, "engine must be"),
        ([["a"]], {"threads": 0}, ValueError, "threads"),
        ([["a"]], {"by": "g"}, TypeError, "by names a column"),
        ([["a"]], {"by": [1, 2]}, ValueError, "a value for each record, got 2 for 1"),
        ([["a"]], {"by": [[1]]}, TypeError, "can be compared"),
        ([["a"]], {"by": memoryview(np.ones((1, 1)))}, TypeError, "by must hold a value for each"),
        ([["a"]], {"on": "tags"}, TypeError, "on is for tables"),
        ({"tags": [["a"]]}, {}, TypeError, "say by on="),
        ({"tags": [["a"]]}, {"on": "tag"}, ValueError, "has no column 'tag'; it has 'tags'"),
        ([["a"]], {"separator": ";"}, TypeError, "must be text, since a separator is given"),
        (["a"], {"separator": ""}, TypeError, "separator must be text"),
        ([["a"]], {"normalise": "upper"}, ValueError, "normalise must be"),
        ([["a"]], {"normalise": lambda text: 1}, TypeError, "normalise must return text"),
        ([["a"]], {"right_on": "x"}, ValueError, "right_on needs a right table"),
        ([np.zeros((2, 2))], {}, TypeError, "one-dimensional"),
    ],
)  # fmt: skip
def test_what_is_refused(data, options, kind, message):
    before = copy.deepcopy(data)
    for function in (fuzzy_join, iter_fuzzy_join):
        if function is iter_fuzzy_join and "k" in options:
            continue
        with pytest.raises(kind, match=message) as caught:
            function(data, **options)
        assert str(caught.value).startswith(function.__name__ + ": ")
    assert repr(data) == repr(before)


def test_collections_are_checked():
    one, other = collection([["a"]]), collection([["a"]], q=2)
    with pytest.raises(ValueError, match="one similarity and q"):
        fuzzy_join(one, other)
    with pytest.raises(ValueError, match="belongs to collection"):
        fuzzy_join(one, separator=";")
    with pytest.raises(TypeError, match="one side holds text"):
        fuzzy_join([["a"]], [[1]], similarity="equal")
    with pytest.raises(TypeError, match="unknown argument 'deltas'"):
        iter_fuzzy_join([["a"]], deltas=1)
    with pytest.raises(ValueError, match="iter_fuzzy_join: k looks"):
        iter_fuzzy_join([["a"]], k=1)


def test_normalise():
    rows = [["Straße ", "ÀB"], ["strasse", "àb"], ["", " "]]
    assert len(fuzzy_join(rows, delta=0.99)) == 0
    assert len(fuzzy_join(rows, delta=0.99, normalise=("casefold", "strip"))) == 1
    assert len(fuzzy_join(rows, delta=0.99, normalise=lambda text: text.strip().casefold())) == 1
    assert fuzzy_join(rows, delta=0.01, normalise="strip").right.max(initial=0) < 2


def test_empty_things():
    for rows in ([], [[]], [["a"]], [[""], [""]], [[], []], [None, None]):
        for options in (
            {},
            {"k": 3},
            {"per_left": 1},
            {"similarity": "edit"},
            {"similarity": "equal"},
        ):
            pairs = fuzzy_join(rows, **options)
            assert len(pairs) == 0
            assert pairs.left.dtype == np.int64
            assert pairs.score.dtype == np.float64
            assert len(fuzzy_join(rows, [["zzz"]], **options)) == 0
    assert list(iter_fuzzy_join([])) == []


def test_a_collection_is_used_again():
    rng = random.Random(1)
    left, right = records(rng, 30), records(rng, 30)
    one, other = collection(left), collection(right)
    for delta in (0.8, 0.4, 0.8):
        for a, b in ((left, right), (right, left)):
            kept = {id(left): one, id(right): other}
            found = fuzzy_join(kept[id(a)], kept[id(b)], delta=delta)
            wanted = fuzzy_join(a, b, delta=delta)
            assert np.array_equal(found.left, wanted.left)
            assert np.array_equal(found.score, wanted.score)
    assert one.record(0) == list(dict.fromkeys(x for x in left[0] if x))
    assert repr(one).startswith(f"Collection({len(left)} records")


# Pairs


def test_pairs_and_tables():
    import pandas

    table = pandas.DataFrame({"name": list("abcde"), "lists": ROWS}, index=[9, 8, 7, 6, 5])
    pairs = fuzzy_join(table, on="lists", delta=0.5)
    assert pairs.to_pandas().columns.tolist() == ["left", "right", "score"]
    inner = pairs.merge(table)
    assert inner["name_left"].tolist() == ["a", "a", "b"]
    assert inner["name_right"].tolist() == ["b", "c", "c"]
    assert inner["score"].tolist() == [1.0, 0.5, 0.5]
    left = pairs.merge(table, how="left")
    assert left["name_left"].tolist() == ["a", "a", "b", "d", "e"]  # c is the partner of a and b
    assert left["name_right"].isna().tolist() == [False] * 3 + [True] * 2
    assert pairs.merge(table, how="anti")["name"].tolist() == ["d", "e"]
    assert pairs.merge(table, table, how="anti")["name"].tolist() == ["d", "e"]
    beside = fuzzy_join(table, table, on="lists", delta=0.9, exclude_equal=True)  # two sides
    assert beside.merge(table, table, how="anti")["name"].tolist() == list("abcde")
    other = pandas.DataFrame({"lists": [["xyz"]], "price": [3]})
    two = fuzzy_join(table, other, on="lists").merge(table, other, suffixes=("", "_other"))
    assert two.columns.tolist() == ["name", "lists", "lists_other", "price", "score"]
    with pytest.raises(ValueError, match="left must have 5 rows, got 1"):
        pairs.merge(other)
    with pytest.raises(ValueError, match="how must be one of"):
        pairs.merge(table, how="outer")
    assert pairs.merge(ROWS)[0] == (ROWS[0], ROWS[1], 1.0)
    assert pairs.merge(ROWS, how="anti") == [ROWS[3], ROWS[4]]


def test_two_columns_of_one_table_are_two_sides():
    import pandas

    table = pandas.DataFrame({"a": [["cat", "dog"], ["xyz"]], "b": [["xyz"], ["cat", "dog"]]})
    for one in (table, {"a": table["a"].tolist(), "b": table["b"].tolist()}):
        pairs = fuzzy_join(one, one, left_on="a", right_on="b")
        assert (pairs.left.tolist(), pairs.right.tolist()) == ([0, 1], [1, 0])
        pairs.check(one, one)
        same = fuzzy_join(one, one, on="a")
        assert (same.left.tolist(), same.right.tolist()) == ([0, 1], [0, 1])


def test_merge_names_columns_and_takes_columns_as_lists():
    import pandas

    table = pandas.DataFrame({"score": list("abcde"), 0: ROWS})
    pairs = fuzzy_join(table, on=0, delta=0.5)
    merged = pairs.merge(table)
    assert merged.columns.tolist() == ["score_left", "0_left", "score_right", "0_right", "score"]
    assert merged["score"].tolist() == [1.0, 0.5, 0.5]
    other = table[[0]]
    two = fuzzy_join(table, other, on=0).merge(table, other)
    assert two.columns.tolist() == ["score_left", "0_left", "0_right", "score"]
    for suffixes in (("", ""), ("_x", "_x")):
        with pytest.raises(ValueError, match="suffixes must tell columns apart"):
            pairs.merge(table, suffixes=suffixes)
    for suffixes in (None, 5, "ab", ("_a",)):
        with pytest.raises(ValueError, match="suffixes must be two texts"):
            pairs.merge(table, suffixes=suffixes)
    assert pairs.merge(table[0]) == pairs.merge(ROWS)
    assert pairs.merge(table["score"], how="anti") == ["d", "e"]
    for wrong in (5, None, {"score": ROWS}):
        with pytest.raises(TypeError, match="merge: left must be"):
            pairs.merge(wrong)
    with pytest.raises(TypeError, match="right must be of the kind of left, pandas, got list"):
        pairs.merge(table, ROWS)


def test_pairs_and_arrow_tables():
    import pyarrow

    table = pyarrow.table({"name": list("abcde"), "lists": ROWS})
    pairs = fuzzy_join(table, on="lists", delta=0.5)
    inner = pairs.merge(table)
    assert inner.column_names == ["name_left", "lists_left", "name_right", "lists_right", "score"]
    assert inner["name_right"].to_pylist() == ["b", "c", "c"]
    left = pairs.merge(table, how="left")
    assert left["name_right"].to_pylist() == ["b", "c", "c", None, None]
    assert pairs.merge(table, how="anti")["name"].to_pylist() == ["d", "e"]


def test_tables_that_come_as_a_stream():
    import pyarrow

    table = pyarrow.table({"lists": ROWS, "group": [1, 2, 1, 1, 1]})
    stream = pyarrow.RecordBatchReader.from_batches(table.schema, table.to_batches())
    pairs = fuzzy_join(stream, on="lists", by="group", delta=0.5)
    assert (pairs.left.tolist(), pairs.right.tolist()) == ([0], [2])


def test_a_table_that_is_not_read_yet():
    import polars

    with pytest.raises(TypeError, match="left is a LazyFrame; collect it first"):
        fuzzy_join(polars.LazyFrame({"lists": ROWS}), on="lists")


def test_pairs_as_a_graph():
    from matchwood import connected_components

    groups = connected_components(fuzzy_join(ROWS, delta=0.5).graph())
    assert groups.count == 3
    assert groups.labels[0] == groups.labels[1] == groups.labels[2]
    both = fuzzy_join(ROWS, [["xyz"]], delta=0.5).graph()
    assert both.shape == (6, 6)


def test_pairs_and_polars_tables():
    import polars

    table = polars.DataFrame({"name": list("abcde"), "lists": ROWS})
    pairs = fuzzy_join(table, on="lists", delta=0.5)
    inner = pairs.merge(table)
    assert inner.columns == ["name_left", "lists_left", "name_right", "lists_right", "score"]
    assert inner["name_right"].to_list() == ["b", "c", "c"]
    left = pairs.merge(table, how="left")
    assert left["name_right"].to_list() == ["b", "c", "c", None, None]
    assert pairs.merge(table, how="anti")["name"].to_list() == ["d", "e"]


def test_rows_of_a_matrix_are_sets_of_columns():
    rng = np.random.default_rng(3)
    dense = rng.random((60, 40)) < 0.15
    dense[7] = dense[3]
    dense[11] = False
    lists = [np.flatnonzero(row).tolist() for row in dense]
    wanted = fuzzy_join(lists, delta=0.3, similarity="equal")
    assert len(wanted) > 0
    for kind in ("csr", "csc", "coo", "bsr", "lil"):
        for made in (getattr(sp, f"{kind}_array"), getattr(sp, f"{kind}_matrix")):
            found = fuzzy_join(made(dense.astype(float)), delta=0.3, similarity="equal")
            assert all(map(np.array_equal, wanted, found))
    mixed = fuzzy_join(sp.csr_array(dense), lists, delta=0.3, similarity="equal", per_left=1)
    both = fuzzy_join(lists, lists, delta=0.3, similarity="equal", per_left=1)
    assert all(map(np.array_equal, mixed, both))
    assert collection(sp.csr_array(dense), similarity="equal").record(3) == lists[3]


def test_a_matrix_with_repeats_zeros_and_no_entries():
    twice = sp.csr_array((np.zeros(5), [2, 2, 0, 0, 2], [0, 3, 5, 5]), shape=(3, 3))
    before = twice.indices.copy(), twice.indptr.copy()
    left, right, score = fuzzy_join(twice, similarity="equal", delta=1.0)
    assert (left.tolist(), right.tolist(), score.tolist()) == ([0], [1], [1.0])
    assert np.array_equal(twice.indices, before[0])
    assert np.array_equal(twice.indptr, before[1])
    for shape in ((0, 0), (4, 0), (0, 4), (3, 3)):
        assert len(fuzzy_join(sp.csr_array(shape), similarity="equal")) == 0


def test_a_matrix_holds_integers_and_takes_no_options_of_text():
    A = sp.csr_array(np.eye(3))
    with pytest.raises(TypeError, match="similarity 'jaccard' compares text"):
        fuzzy_join(A)
    for option, value in (("on", "tags"), ("separator", ";"), ("normalise", "lower")):
        with pytest.raises(TypeError, match=f"fuzzy_join: {option} is not for matrices"):
            fuzzy_join(A, similarity="equal", **{option: value})
    with pytest.raises(TypeError, match="rows and columns"):
        fuzzy_join(sp.coo_array(np.ones(3)), similarity="equal")


def test_integers_of_any_size_are_equal_or_not():
    rows = [[2**70, -5, 0], [0, 2**70, -5], [-(2**63), 2**63 - 1], [2**63 - 1, -(2**63)]]
    for left in (rows, rows[2:]):
        found = fuzzy_join(left, similarity="equal", delta=1.0)
        assert found.right.tolist() == [i + 1 for i in range(0, len(left), 2)]


# What comes from outside is not trusted


@pytest.mark.parametrize(
    ("kind", "name", "values", "message"),
    [
        ("csr", "indptr", [0, 10**8, 4, 5], "left: indptr must"),
        ("csr", "indptr", [0, 4, 2, 5], "left: indptr must"),
        ("csr", "indptr", [0, 2, 5], "left: indptr must have 4 elements"),
        ("csr", "indices", [0, 1, -1, 2, 3], "left: indices must"),
        ("csr", "indices", [0, 1, 4, 2, 3], "left: indices must"),
        ("csr", "indices", [0, 1], "left: "),
        ("csc", "indices", [0, 1, -7, 2, 1], "left: "),
        ("coo", "row", [0, 0, -1, 2, 1], "left: row must be within 0..2, got -1"),
    ],
)
def test_matrices_pass_the_gate(kind, name, values, message):
    dense = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]])
    matrix = getattr(sp, f"{kind}_array")(dense)
    setattr(matrix, name, np.array(values, np.int32))
    for function in (fuzzy_join, iter_fuzzy_join, collection):
        caller = function.__name__
        wanted = message.replace("left", "data") if caller == "collection" else message
        with pytest.raises(ValueError, match=f"{caller}: {wanted}"):
            function(matrix, similarity="equal")
    with pytest.raises(ValueError, match="fuzzy_join: right: "):
        fuzzy_join([[1]], matrix, similarity="equal")


def test_matrices_of_every_kind_and_of_very_many_columns():
    dense = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [1, 1, 0, 0]])
    wide = (np.ones(6), np.array([7, 2**40, 2**40, 5, 2**40, 7]), np.array([0, 2, 4, 6]))
    spare = sp.csr_array(dense)
    spare.indices = np.r_[spare.indices, [99, -99]].astype(np.int32)
    spare.data = np.r_[spare.data, [1, 1]]
    for matrix in (
        *(getattr(sp, f"{kind}_array")(dense) for kind in ("dia", "dok", "lil", "bsr")),
        sp.csr_array(wide, shape=(3, 2**41)),
        spare,
    ):
        assert found(matrix, similarity="equal") == [(0, 2, 1.0)]


def test_a_collection_keeps_what_it_read():
    matrix, rows = sp.csr_array(np.eye(3)[[0, 1, 0]]), [["ab"], ["cd"], ["ab"]]
    made = collection(matrix, similarity="equal"), collection(rows)
    matrix.indptr[:], matrix.indices[:] = 10**8, -(10**8)
    rows[0].clear()
    for one in made:
        assert len(fuzzy_join(one)) == 1
        for array in (one.table.starts, one.table.numbers):
            with pytest.raises(ValueError, match="cannot set WRITEABLE"):
                array.setflags(write=True)
        with pytest.raises(AttributeError):
            one.q = 0
        for row, kind in ((-1, ValueError), (3, ValueError), (0.5, TypeError)):
            with pytest.raises(kind, match="record: row must be"):
                one.record(row)
    with pytest.raises(ValueError, match="Collection: table must have starts that ascend"):
        type(made[0])(made[0].table._replace(starts=np.array([0, 9, 3])), "equal", 3, None)


def test_a_text_is_what_it_holds():
    import enum

    kind = enum.Enum("Kind", {"A": "ab", "C": "cd"}, type=str)
    assert found([[kind.A, "cd"], ["ab", kind.C]]) == [(0, 1, 1.0)]
    nan = np.float32("nan")
    assert found([["ab"], ["ab"]], by=[nan, nan]) == []
    assert found([["ab"], ["ab"]], by=(x for x in "gg")) == [(0, 1, 1.0)]
    table = {"lists": ROWS, "g": [1, 1, 2, 2, 2]}
    assert found(table, on="lists", by=(x for x in ["g"])) == WANTED[:1]


def test_arrow_arrays_are_validated():
    import pandas
    import pyarrow

    buffer = pyarrow.py_buffer(np.array([0, 2, 10**8, 3], np.int32))
    child = pyarrow.array(["ab", "cd", "ab"])
    kind = pyarrow.list_(pyarrow.string())
    broken = pyarrow.Array.from_buffers(kind, 3, [None, buffer], children=[child])
    series = pandas.Series(broken, dtype=pandas.ArrowDtype(kind))
    table = pyarrow.table({"lists": broken})
    for data, on in (
        (broken, None),
        (series, None),
        (table, "lists"),
        ({"lists": series}, "lists"),
    ):
        with pytest.raises(ValueError, match="fuzzy_join: left is no valid Arrow array: "):
            fuzzy_join(data, on=on)
    whole = pyarrow.array([[1, 2], [2, 3], [1, 2]], pyarrow.list_(pyarrow.int64(), 2))
    assert found(whole.slice(1), similarity="equal") == []
    behind = pyarrow.Array.from_buffers(whole.type, 3, [None], -1, 2, [whole.values])
    for data in (behind, pandas.Series(behind, dtype=pandas.ArrowDtype(whole.type))):
        with pytest.raises(ValueError, match="lists of 2 values, up to list 5, must lie within 6"):
            fuzzy_join(data, similarity="equal")
    with pytest.raises(ValueError, match="fuzzy_join: by is no valid Arrow array: "):
        fuzzy_join([["ab"]] * 3, by=broken)
    pairs = fuzzy_join([["ab"]] * 3)
    for data in (table, pandas.DataFrame({"lists": series})):
        with pytest.raises(ValueError, match="merge: left is no valid Arrow array: "):
            pairs.merge(data)


def test_pairs_that_were_written_to_are_checked_before_they_are_used():
    for name, value in (("left", -1), ("left", 5), ("right", 10**9), ("score", np.nan)):
        pairs = fuzzy_join(ROWS, delta=0.5)
        getattr(pairs, name)[1] = value
        for use in (lambda p: p.merge(ROWS), lambda p: p.merge(ROWS, how="anti"),
                    lambda p: p.graph(), lambda p: p.to_arrow()):  # fmt: skip
            with pytest.raises(ValueError, match=rf"^(merge|graph|to_arrow): {name} must "):
                use(pairs)
    with pytest.raises(TypeError, match=r"check_fuzzy_join: pairs must be Pairs or \(left"):
        check_fuzzy_join(7, ROWS)
    with pytest.raises(TypeError, match="estimate: unknown argument 'deltas'"):
        estimate(ROWS, deltas=0.5)
