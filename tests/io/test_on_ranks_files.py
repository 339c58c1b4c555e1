"""Files read by all ranks together: the graph and the errors of one machine."""

from __future__ import annotations

import functools
import gzip
import os
import threading

import numpy as np
import pytest

import matchwood
from graphs import ZOO
from matchwood import dist, io
from spread_graphs import blocks, compare, tried, whole

RANKS = (1, 5, 16)


def same_as_alone(path, ranks=RANKS, **options):
    alone = tried(lambda: whole(matchwood.graph(io.read(path, **options))))
    for size in ranks:
        found = dist.run(
            lambda comm: tried(lambda: blocks(io.read(path, comm=comm, **options))), size
        )
        if isinstance(alone, str):
            assert set(found) == {alone}
        else:
            assert not any(isinstance(each, str) for each in found), found[0]
            compare(found, alone)


@pytest.mark.parametrize("suffix", [".txt", ".mtx", ".gr", ".csv"])
@pytest.mark.parametrize("name", ["rmat, directed", "duplicates", "one edge", "explicit zeros"])
def test_formats_that_all_ranks_parse(tmp_path, name, suffix):
    path = tmp_path / f"graph{suffix}"
    A = ZOO[name]().astype(np.int64) if suffix == ".gr" else ZOO[name]()
    io.write(path, A)
    same_as_alone(path, (1, 3, 16))


@pytest.mark.slow
def test_edge_lists_of_all_kinds(tmp_path):
    path = tmp_path / "list.txt"
    rng = np.random.default_rng(1)
    edges = rng.integers(0, 30, (200, 2))
    plain = "".join(f"{u} {v}\n" for u, v in edges)
    weighted = "".join(
        f"{u}\t{v}\t{w:.3f}\n" for (u, v), w in zip(edges, rng.random(200), strict=True)
    )
    for text, options in [
        (plain, {}),
        (plain, {"symmetric": True}),
        (plain, {"duplicates": "first"}),
        (plain, {"shape": 40}),
        ("# a comment\n" * 50 + plain, {}),
        ("# Nodes: 50 Edges: 200\n" + plain, {}),
        ("\ufeff" + plain, {}),
        ("30\n200\n" + plain, {}),
        (plain.replace(" ", ","), {}),
        ("source,target\n" + plain.replace(" ", ","), {}),
        (plain.replace("\n", "\n\n# between\n"), {}),
        (weighted, {}),
        (weighted, {"symmetric": True}),
        (weighted, {"duplicates": "min", "symmetric": True}),
        (weighted, {"duplicates": "max"}),
        (weighted, {"columns": (1, 0), "dtype": np.float32}),
        (weighted, {"pattern": True}),
        (plain.replace("\n", "\r\n"), {}),
        ("# Nodes: 4 Edges: 0\n", {}),
        ("1 2\n", {"base": 1}),
    ]:
        path.write_text(text)
        same_as_alone(path, (1, 6), **options)


@pytest.mark.slow
def test_errors_name_the_line_of_the_file(tmp_path):
    path = tmp_path / "list.txt"
    good = [f"{k} {k + 1}" for k in range(300)]
    for k in (0, 1, 77, 150, 299):
        lines = list(good)
        lines[k] = "5 x7"
        path.write_text("# head\n\n" + "\n".join(lines) + "\n")
        same_as_alone(path, (1, 3, 16))
    lines = list(good)
    lines[100], lines[200] = "1 2 3", "-4 5"
    path.write_text("\n".join(lines) + "\n")
    same_as_alone(path, (2, 16))
    for text in ("", "\n\n", "# only a comment\n", "0 1\n1 2",
                 "# Nodes: 4 Edges: 7\n0 1\n1 2\n\n\n",
                 "0 1\n5 999999999999\n", "nonsense\nmore nonsense here\n",
                 "1 2 3 4 5\n"):  # fmt: skip
        path.write_text(text)
        same_as_alone(path, (1, 3, 9))
    market = tmp_path / "m.mtx"
    for text in ("%%MatrixMarket matrix coordinate real general\n3 3 2\n1 2 1.5\n",
                 "%%MatrixMarket matrix coordinate real general\n3 3 2\n1 2 1.5\n1 x 2\n",
                 "%%MatrixMarket matrix coordinate real general\n3 3 2\n1 2 1.5\n4 1 2\n",
                 "%%MatrixMarket matrix coordinate real general\n3 4 1\n1 2 1.5\n",
                 "not a matrix\n", "%%MatrixMarket matrix coordinate real general\n"):  # fmt: skip
        market.write_text(text)
        same = tried(lambda: whole(matchwood.graph(io.read(market))))
        if "must be square" in same:
            same = "ValueError: read: a graph on ranks must be square, got shape (3, 4)"
        for size in (1, 3, 9):
            found = dist.run(lambda comm: tried(lambda: blocks(io.read(market, comm=comm))), size)
            assert set(found) == {same}
    arcs = tmp_path / "a.gr"
    for text in ("p sp 3 2\na 1 2 5\n", "c x\np sp 3 1\na 1 2 five\n", "c only\n", "a 1 2 3\n"):
        arcs.write_text(text)
        same_as_alone(arcs, (1, 4))


@pytest.mark.parametrize("field", ["real", "integer", "pattern", "complex"])
@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric", "hermitian"])
def test_matrix_market(tmp_path, field, symmetry):
    if (symmetry == "skew-symmetric" and field == "pattern") or (
        symmetry == "hermitian" and field != "complex"
    ):
        pytest.skip("there is no such matrix")
    path = tmp_path / "m.mtx"
    rng = np.random.default_rng(2)
    rows = []
    for i in range(1, 20):
        for j in range(1, i + (symmetry != "skew-symmetric")):
            if rng.random() < 0.3:
                value = {"real": f"{rng.normal():.5f}", "integer": f"{rng.integers(-9, 9)}",
                         "pattern": "", "complex": f"{rng.normal():.3f} 0.5"}[field]  # fmt: skip
                rows.append(f"{i} {j} {value}".strip())
    head = f"%%MatrixMarket matrix coordinate {field} {symmetry}\n% some\n19 19 {len(rows)}\n"
    path.write_text(head + "\n".join(rows) + "\n")
    same_as_alone(path, (1, 6))


def test_what_one_rank_reads(tmp_path):
    A = ZOO["random"]()
    for name in ("g.graph", "g.npz", "g.txt.gz", "g.mtx.xz", "g.graph-txt", "g.col"):
        path = tmp_path / name
        kind = A if name in ("g.npz", "g.txt.gz", "g.mtx.xz") else (A != 0).astype(np.float64)
        io.write(path, kind)
        same_as_alone(path, (1, 4))
    (tmp_path / "bad.txt.gz").write_bytes(gzip.compress(b"0 1\n1 x\n"))
    same_as_alone(tmp_path / "bad.txt.gz", (1, 3))
    (tmp_path / "dense.mtx").write_text(
        "%%MatrixMarket matrix array real general\n2 2\n1\n2\n0\n4\n"
    )
    same_as_alone(tmp_path / "dense.mtx", (1, 3))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_a_pipe_is_read_once(tmp_path):
    path = tmp_path / "pipe.txt"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_text("0 1\n1 2\n"))
    writer.start()
    found = dist.run(lambda comm: io.read(path, comm=comm).nnz, 3)
    writer.join()
    assert found == [2, 2, 2]


def test_ids_with_gaps_and_names(tmp_path):
    path = tmp_path / "list.txt"
    path.write_text("70 20\n20 500\n")
    for options in ({"compact": True}, {"names": True}):
        alone = io.read(path, **options)

        def look(comm, options=options):
            matrix, ids = io.read(path, comm=comm, **options)
            return blocks(matrix), list(ids)

        found = dist.run(look, 4)
        compare([each[0] for each in found], whole(matchwood.graph(alone.matrix)))
        assert all(each[1] == list(alone.ids) for each in found)


@pytest.mark.slow
def test_files_of_a_folder_are_dealt_out(tmp_path):
    rng = np.random.default_rng(7)
    edges = rng.integers(0, 40, (300, 2))
    weights = rng.random(300)
    lines = [f"{u} {v} {w}\n" for (u, v), w in zip(edges, weights, strict=True)]
    single, folder = tmp_path / "all.txt", tmp_path / "parts"
    folder.mkdir()
    single.write_text("".join(lines))
    bounds = [0, 10, 11, 90, 200, 290, 300]
    for k in range(6):
        text = "".join(lines[bounds[k] : bounds[k + 1]])
        name = folder / f"part-{k}.txt"
        if k == 2:
            (folder / f"part-{k}.txt.gz").write_bytes(gzip.compress(text.encode()))
        else:
            name.write_text(text)
    (folder / "_SUCCESS").touch()
    for options in ({}, {"symmetric": True}, {"duplicates": "max"}):
        expected = whole(matchwood.graph(io.read(single, **options)))
        for size in (1, 3, 16):
            found = dist.run(
                lambda comm, options=options: blocks(io.read(folder, comm=comm, **options)), size
            )
            compare(found, expected)
    (folder / "part-3.txt").write_text("0 1 2\n0 y 3\n")
    found = dist.run(lambda comm: tried(lambda: io.read(folder, comm=comm)), 3)
    assert len(set(found)) == 1
    assert "part-3.txt, line 2: expected a whole number" in found[0]
    empty = tmp_path / "nothing"
    empty.mkdir()
    found = dist.run(lambda comm: tried(lambda: io.read(empty, comm=comm)), 3)
    assert set(found) == {f"ValueError: read: the folder {empty} holds no files"}


def test_wrong_calls_are_the_same_error_on_all_ranks(tmp_path):
    path = tmp_path / "list.txt"
    path.write_text("0 1\n")
    cases = [
        (lambda comm: io.read(tmp_path / "none.txt", comm=comm), "FileNotFoundError"),
        (lambda comm: io.read(path, comm=comm, dtype="nothing"), "TypeError: read: dtype must be"),
        (
            lambda comm: io.read(path, comm=comm, base=comm.rank),
            "ValueError: read: options must be",
        ),
        (lambda comm: io.read(path, comm=comm, grid="7x7"), "ValueError: read: grid must have"),
        (lambda comm: io.read(path, comm=comm, shape=(3, 4)), "ValueError: read: a graph on ranks"),
        (lambda comm: io.read(path, comm=comm, format="what"), "ValueError: read: format must be"),
    ]
    for call, text in cases:

        def work(comm, call=call):
            try:
                call(comm)
            except (OSError, TypeError, ValueError) as error:
                return f"{type(error).__name__}: {error}"

        found = dist.run(work, 3)
        assert len(set(found)) == 1
        assert found[0].startswith(text)


@pytest.mark.slow
def test_saved_graphs_are_read_back_on_any_grid(tmp_path):
    edges = np.random.default_rng(3).integers(0, 23, (160, 2))
    weights = np.random.default_rng(4).normal(size=160)
    for k, (A, rule) in enumerate([
        ((23, edges), None), ((23, edges, weights), None), ((23, edges, weights), "sum"),
        ((23, edges, weights.astype(np.float32)), "min"), ((0, np.empty((0, 2), int)), None),
        ((23, edges, (9 * weights).astype(np.int16)), None),
    ]):  # fmt: skip
        expected = whole(matchwood.graph(A, duplicates=rule))
        folder = tmp_path / f"saved{k}"

        def write(comm, A=A, rule=rule, folder=folder):
            mine = tuple(part[comm.rank :: comm.size] for part in A[1:])
            if comm.size == 1 or rule is None:
                mine = A[1:] if comm.rank == 0 else tuple(part[:0] for part in A[1:])
            else:
                bounds = [len(A[1]) * r // comm.size for r in (comm.rank, comm.rank + 1)]
                mine = tuple(part[bounds[0] : bounds[1]] for part in A[1:])
            G = matchwood.distribute((A[0], *mine), comm=comm, duplicates=rule)
            G.save(folder)
            G.save(folder)  # replaced by itself

        dist.run(write, (4, 1, 6)[k % 3])
        for size, grid in ((1, None), (4, "4x1"), (6, "2x3"), (16, None)):
            read = functools.partial(io.read, folder, grid=grid)
            found = dist.run(lambda comm, read=read: blocks(read(comm=comm)), size)
            compare(found, expected)


def test_folders_that_are_not_to_be_touched(tmp_path):
    (tmp_path / "precious").touch()

    def work(comm):
        G = matchwood.distribute((2, [[0, 1]] if comm.rank == 0 else []), comm=comm)
        return tried(lambda: G.save(tmp_path))

    found = dist.run(work, 2)
    assert len(set(found)) == 1
    assert "must be empty or hold a saved graph" in found[0]
    folder = tmp_path / "saved"
    dist.run(
        lambda comm: matchwood.distribute(
            (2, [[0, 1]]) if comm.rank == 0 else None, comm=comm
        ).save(folder),
        2,
    )
    np.save(folder / "columns-00000.npy", np.array([7], np.int32))
    (folder / "columns-00001.npy").unlink()
    found = dist.run(lambda comm: tried(lambda: io.read(folder, comm=comm)), 2)
    assert len(set(found)) == 1
    assert "FileFormatError" in found[0]
    (folder / "matchwood-graph.json").write_text("{}")
    found = dist.run(lambda comm: tried(lambda: io.read(folder, comm=comm)), 2)
    assert "no description of a graph" in found[0]
