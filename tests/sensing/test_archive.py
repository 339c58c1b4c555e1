"""Archives: what we write GraphBLAS reads, what it writes we read, and damage is told."""

from __future__ import annotations

import base64
import gzip
import io
import os
import struct
import tarfile
import threading
import types

import numpy as np
import pytest

from matchwood.applications.sensing.archive import blob, files, reference
from matchwood.applications.sensing.archive.check import check_archive
from matchwood.errors import CheckFailed, FileFormatError
from matchwood.sensing import (
    TrafficMatrix,
    archive_writer,
    read_archive,
    sense,
    sum_matrices,
    traffic_matrix,
    write_archive,
)

ROWS = [0, 0, 0, 0, 2, 2, 2, 3, 3, 3, 4, 4]
COLUMNS = [1, 2, 3, 4, 1, 2, 4, 2, 3, 4, 2, 4]
VALUES = [1, 1, 2, 1, 4, 2, 1, 2, 4, 1, 1, 1]
EVERY = 2**32 - 1


def example() -> TrafficMatrix:
    return traffic_matrix(np.repeat(ROWS, VALUES), np.repeat(COLUMNS, VALUES))


def windows() -> list[TrafficMatrix]:
    """Matrices of many shapes: empty, one link, the corners, equal counts, large counts."""
    rng = np.random.default_rng(3)
    many = traffic_matrix(rng.integers(0, 2**32, 5000), rng.integers(0, 2**32, 5000))
    few = traffic_matrix(rng.integers(0, 40, 5000), rng.integers(0, 40, 5000))
    corners = traffic_matrix([0, EVERY, EVERY, 0], [EVERY, 0, EVERY, 0])
    large = TrafficMatrix([1, 2], [0, 1, 2], [3, 4], [2**40, 1])
    equal = TrafficMatrix([1, 2], [0, 1, 2], [3, 4], [2**33, 2**33])
    empty = traffic_matrix(np.zeros(0, np.uint32), np.zeros(0, np.uint32))
    return [example(), empty, many, few, corners, large, equal, traffic_matrix([5], [6])]


@pytest.mark.parametrize("compression", [None, "zstd"])
def test_what_is_written_is_read(compression, tmp_path):
    if compression:
        pytest.importorskip("zstandard")
    path = tmp_path / "x.tar"
    assert write_archive(path, windows(), compression=compression) == [path]
    check_archive(path, windows())
    assert list(read_archive(path)) == windows()
    assert list(read_archive(io.BytesIO(path.read_bytes()))) == windows()
    packed = tmp_path / "x.tar.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert list(read_archive(packed)) == windows()
    assert path.read_bytes() == (write_archive(path, windows(), compression=compression)
                                 and path.read_bytes())  # fmt: skip


class OwnZstd:
    """Python's own package, as far as it is used, by means of zstandard."""

    @staticmethod
    def get_frame_info(frame):
        import zstandard

        size = zstandard.frame_content_size(frame)
        return types.SimpleNamespace(decompressed_size=size)

    @staticmethod
    def ZstdDecompressor():
        import zstandard

        decoder = zstandard.ZstdDecompressor().decompressobj()
        told = types.SimpleNamespace(eof=False, unused_data=b"")

        def decompress(frame, most):
            found = decoder.decompress(frame)
            told.eof, told.unused_data = decoder.eof, decoder.unused_data
            return found[:most]

        told.decompress = decompress
        return told


@pytest.mark.parametrize("own", [False, True])
def test_arrays_of_several_blocks(own, tmp_path, monkeypatch):
    """GraphBLAS makes some for each thread.  Matrices that are read stay as they are."""
    zstandard = pytest.importorskip("zstandard")
    monkeypatch.setattr(blob, "BLOCK", 1000)
    path = write_archive(tmp_path / "x.tar", windows(), compression="zstd")[0]
    package = (OwnZstd, True) if own else (zstandard, False)
    monkeypatch.setattr(blob, "_tools", lambda: package)
    found = [*read_archive(path, threads=1), *read_archive(path, threads=3)]
    assert found == windows() * 2
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 255
    with pytest.raises(FileFormatError):
        list(read_archive(io.BytesIO(bytes(content))))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_give_matrices_in_order(threads, tmp_path):
    """Small and large ones; what is damaged is told behind the matrices before it."""
    rng = np.random.default_rng(1)
    sizes = [5, 3000, 10, 3000, 2000, 3, 3000, 1] * 2
    matrices = [traffic_matrix(*rng.integers(0, 2**32, (2, n))) for n in sizes]
    path = write_archive(tmp_path / "x.tar", matrices, compression=None)[0]
    assert list(read_archive(path, threads=threads)) == matrices
    content = bytearray(path.read_bytes())
    for place, error in ((len(content) // 2, "checksum"), (None, "cut off")):
        wrong = content[:]
        if place is None:
            del wrong[-1024 - 3000 :]
        else:
            header = next(k for k in range(place // 512 * 512, len(wrong), 512)
                          if wrong[k + 257 : k + 262] == b"ustar")  # fmt: skip
            wrong[header] ^= 1
        found = []
        with pytest.raises(FileFormatError, match=rf"{error}|are left"):
            for matrix in read_archive(io.BytesIO(bytes(wrong)), threads=threads):
                found.append(matrix)
        assert 0 < len(found) < len(matrices)
        assert found == matrices[: len(found)]
    reading = read_archive(path, threads=threads)
    next(reading)
    reading.close()  # nobody works on
    names = [thread.name for thread in threading.enumerate()]
    assert not any(name.startswith("matchwood-archive") for name in names)


def test_folders_have_64_matrices_a_file(tmp_path):
    matrices = [traffic_matrix([k], [k + 1]) for k in range(130)]
    files = write_archive(f"{tmp_path}/out/", matrices, compression=None)
    assert [file.name for file in files] == ["000000.tar", "000001.tar", "000002.tar"]
    assert len(list(read_archive(files[0]))) == 64
    assert list(read_archive(tmp_path / "out")) == matrices
    outer = tmp_path / "outer.tar"
    with tarfile.open(outer, "w") as archive:  # archives within an archive, and a folder
        archive.add(tmp_path / "out", "tar")
    assert list(read_archive(outer)) == matrices


def test_files_of_a_folder_are_named_by_time(tmp_path):
    """As in the study: when the first packet came, and how many packets the file has."""
    start = 1_729_569_462 * 10**9 + 648_596_123  # 2024-10-22 03:57:42 UTC
    matrices = [traffic_matrix([k, k], [k + 1, 7]) for k in range(5)]
    times = [start + k * 10**9 for k in range(5)]
    files = write_archive(tmp_path / "a", matrices, each=2, times=times, compression=None)
    assert [file.name for file in files] == ["a"]  # one file, named by the caller
    (tmp_path / "out").mkdir()
    files = write_archive(tmp_path / "out", matrices, each=2, times=times, compression=None)
    assert [file.name for file in files] == [
        "20241022-035742-648596.4.tar",
        "20241022-035744-648596.4.tar",
        "20241022-035746-648596.2.tar",
    ]
    assert sorted(tmp_path.joinpath("out").iterdir()) == files
    assert list(read_archive(tmp_path / "out")) == matrices
    (tmp_path / "same").mkdir()
    files = write_archive(tmp_path / "same", matrices[:3], each=1, times=[0, 0, -1],
                          compression=None)  # fmt: skip
    assert [file.name for file in files] == [
        "19700101-000000-000000.2.tar",
        "19700101-000000-000000.2_001.tar",
        "19691231-235959-999999.2.tar",
    ]
    for time, error in ((1.5, TypeError), (True, TypeError), (2**63, ValueError)):
        with pytest.raises(error, match="write_archive: time must"):
            write_archive(tmp_path / "same", matrices[:1], times=[time], compression=None)
    with pytest.raises(ValueError, match="write_archive: times must"):
        write_archive(tmp_path / "same", matrices, times=[1], compression=None)


def test_sense_names_files_by_time(tmp_path):
    src = np.arange(10, dtype=np.uint32)
    time = 10**9 * np.arange(10)
    for window in (3, "3s"):
        folder = tmp_path / str(window)
        folder.mkdir()
        with archive_writer(folder, each=2, compression=None) as writer:
            found = sense((src, src, time), window=window, on_window=writer.add)
        names = ["19700101-000000-000000.6.tar", "19700101-000006-000000.4.tar"]
        assert [file.name for file in writer.paths] == names
        assert sense(folder).statistics == found.statistics


def test_the_end_of_an_archive_may_be_missing(tmp_path):
    path = tmp_path / "x.tar"
    write_archive(path, [example()] * 3, compression=None)
    content = path.read_bytes()
    assert content.endswith(files.TAR_BLOCK * 2 * b"\0")
    assert list(read_archive(io.BytesIO(content[:-1024]))) == [example()] * 3
    with tarfile.open(path) as archive:
        assert archive.getnames() == ["0.grb", "1.grb", "2.grb"]


def test_a_single_matrix_needs_no_archive(tmp_path):
    (tmp_path / "x.grb").write_bytes(blob.dump(example()))
    assert list(read_archive(tmp_path / "x.grb")) == [example()]
    assert list(read_archive(tmp_path)) == [example()]


def test_a_writer_takes_matrices_one_at_a_time(tmp_path):
    with archive_writer(tmp_path / "x.tar", compression=None) as writer:
        writer.add(example())
        assert not (tmp_path / "x.tar").exists()
        writer.add(example())
    assert writer.matrices == 2
    assert len(list(read_archive(tmp_path / "x.tar"))) == 2
    with pytest.raises(KeyError), archive_writer(tmp_path / "y.tar", compression=None) as writer:
        writer.add(example())
        raise KeyError
    assert not (tmp_path / "y.tar").exists()
    assert len(list(tmp_path.iterdir())) == 1
    assert list(read_archive(write_archive(tmp_path / "z.tar", [], compression=None)[0])) == []


def graphblas():
    return pytest.importorskip("graphblas", exc_type=ImportError)


def as_peer(matrix, gb, dtype):
    source, destination, packets = matrix.tocoo()
    return gb.Matrix.from_coo(
        source.astype(np.uint64), destination.astype(np.uint64), packets,
        nrows=2**32, ncols=2**32, dtype=dtype,
    )  # fmt: skip


def same_as_peer(matrix, peer) -> bool:
    rows, columns, values = peer.to_coo()
    source, destination, packets = matrix.tocoo()
    return (
        np.array_equal(rows, source)
        and np.array_equal(columns, destination)
        and np.array_equal(values.astype(np.int64), packets)
    )


@pytest.mark.parametrize("compression", [None, "zstd"])
def test_graphblas_reads_ours(compression):
    gb = graphblas()
    for matrix in windows():
        peer = gb.Matrix.ss.deserialize(np.frombuffer(blob.dump(matrix, compression), np.uint8))
        assert peer.nrows == 2**32
        assert same_as_peer(matrix, peer)


@pytest.mark.parametrize("compression", ["none", "zstd"])
@pytest.mark.parametrize("order", ["rowwise", "columnwise"])
def test_we_read_those_of_graphblas(compression, order):
    gb = graphblas()
    for matrix in windows():
        for dtype in ("UINT32", "INT64", "UINT64"):
            if dtype == "UINT32" and matrix.counts.max(initial=0) > EVERY:
                continue
            peer = as_peer(matrix, gb, dtype)
            peer.ss.config["format"] = "by_row" if order == "rowwise" else "by_col"
            level = {"level": 1} if compression == "zstd" else {}
            content = bytes(peer.ss.serialize(compression, **level))
            assert list(read_archive(io.BytesIO(content))) == [matrix]


def test_small_matrices_of_graphblas_in_every_format():
    gb = graphblas()
    for kind in ("INT64", "UINT8", "BOOL"):
        values = [1] * 12 if kind == "BOOL" else VALUES
        peer = gb.Matrix.from_coo(ROWS, COLUMNS, values, nrows=6, ncols=6, dtype=kind)
        wanted = traffic_matrix(np.repeat(ROWS, values), np.repeat(COLUMNS, values))
        for form in ("hypersparse", "sparse", "bitmap"):
            for order in ("by_row", "by_col"):
                peer.ss.config["format"] = order
                peer.ss.config["sparsity_control"] = form
                content = bytes(peer.ss.serialize("none"))
                assert struct.unpack("<i", content[116:120])[0] >> 2 in (1, 2, 4)
                assert list(read_archive(io.BytesIO(content))) == [wanted]
    full = gb.Matrix.from_scalar(3, 4, 5, dtype="INT32")
    (found,) = read_archive(io.BytesIO(bytes(full.ss.serialize("none"))))
    assert found.links == 20
    assert found.packets == 60


def test_lz4_gets_a_named_error():
    gb = graphblas()
    peer = as_peer(windows()[2], gb, "UINT32")
    for name in ("lz4", "lz4hc"):
        with pytest.raises(FileFormatError, match="LZ4"):
            list(read_archive(io.BytesIO(bytes(peer.ss.serialize(name)))))


def library():
    """The C library itself, of whatever release is installed."""
    package = pytest.importorskip("suitesparse_graphblas", exc_type=ImportError)
    if not package.is_initialized():
        package.initialize(blocking=False, memory_manager="c")
    return package.lib, package.ffi


def test_the_library_reads_ours_and_we_read_its():
    """With 9.4.5 and 10.5.1 this was tried; python-graphblas takes the first only."""
    lib, ffi = library()
    for matrix in windows():
        source, destination, packets = matrix.tocoo()
        n = matrix.links
        index = [np.append(x, 0).astype(np.uint64) for x in (source, destination)]
        values = np.append(packets, 0).astype(np.int64)
        pointers = [ffi.cast("uint64_t*", x.ctypes.data) for x in index]
        theirs = ffi.new("GrB_Matrix*")
        assert lib.GrB_Matrix_new(theirs, lib.GrB_INT64, 2**32, 2**32) == 0
        counts = ffi.cast("int64_t*", values.ctypes.data)
        assert lib.GrB_Matrix_build_INT64(theirs[0], *pointers, counts, n, lib.GrB_PLUS_INT64) == 0
        handle, size = ffi.new("void**"), ffi.new("uint64_t*")
        assert lib.GxB_Matrix_serialize(handle, size, theirs[0], ffi.NULL) == 0
        content = bytes(ffi.buffer(handle[0], size[0]))  # compressed by zstd, level 1
        (major,) = struct.unpack("<i", content[12:16])
        assert major // 10**6 == lib.GxB_IMPLEMENTATION_MAJOR
        assert list(read_archive(io.BytesIO(content))) == [matrix]
        for compression in (None, "zstd"):
            ours = blob.dump(matrix, compression)
            found, number = ffi.new("GrB_Matrix*"), ffi.new("uint64_t*", n)
            buffer = ffi.from_buffer(ours)
            done = lib.GxB_Matrix_deserialize(found, ffi.NULL, buffer, len(ours), ffi.NULL)
            assert done == 0
            back = [np.zeros(n + 1, np.uint64) for _ in range(2)] + [np.zeros(n + 1, np.int64)]
            where = [ffi.cast("uint64_t*", x.ctypes.data) for x in back[:2]]
            held = ffi.cast("int64_t*", back[2].ctypes.data)
            assert lib.GrB_Matrix_extractTuples_INT64(*where, held, number, found[0]) == 0
            assert number[0] == n
            order = np.lexsort((back[1][:n], back[0][:n]))
            for one, other in zip(back, (source, destination, packets), strict=True):
                assert np.array_equal(one[:n][order], other)


@pytest.mark.parametrize("version", [7_002_001, 7_003_000, 8_001_000, 9_004_005, 10_005_001])
def test_headers_of_other_versions(version):
    """The layout is the same since 7.2.1: what the header says does not matter to any reader."""
    for matrix in windows():
        content = bytearray(blob.dump(matrix))
        assert struct.unpack("<i", content[12:16])[0] == blob.VERSION
        struct.pack_into("<i", content, 12, version)
        assert list(read_archive(io.BytesIO(bytes(content)))) == [matrix]
        nameless = content[: -len(b"\0GrB_UINT32\0")]  # before 8.1 no names follow
        if matrix.counts.max(initial=0) <= EVERY:
            struct.pack_into("<Q", nameless, 0, len(nameless))
            assert list(read_archive(io.BytesIO(bytes(nameless)))) == [matrix]


def test_versions_before_7_2_1_do_not_count_values():
    for matrix in windows():
        content = bytearray(blob.dump(matrix))
        struct.pack_into("<i", content, 12, 7_001_000)
        struct.pack_into("<q", content, 48, 0)
        assert list(read_archive(io.BytesIO(bytes(content)))) == [matrix]


def test_32_bit_indices():
    """Since GraphBLAS 10 the arrays i, h and p may have 32 bits."""
    matrix = windows()[3]
    arrays = [
        matrix.indptr.astype("<u4"), matrix.sources.astype("<u4"), np.empty(0, np.uint8),
        matrix.destinations.astype("<u4"), matrix.counts.astype("<u4"),
    ]  # fmt: skip
    content = bytearray(made(arrays, len(matrix.sources), matrix.links))
    struct.pack_into("<I", content, 8, 7 | 0x1110)
    assert reference.links_of(bytes(content)).keys() == reference.links_of(blob.dump(matrix)).keys()
    assert list(read_archive(io.BytesIO(bytes(content)))) == [matrix]


def made(arrays, rows, links, kind=7, iso=False) -> bytes:
    """A blob without compression from five arrays, whatever they hold."""
    ends = b"".join(struct.pack("<q", array.nbytes) for array in arrays if array.nbytes)
    body = ends + b"".join(array.tobytes() for array in arrays) + b"\0GrB_UINT32\0"
    stored = [(int(array.nbytes > 0), -1) for array in arrays]
    lengths = [array.nbytes for array in arrays]
    return blob.header_bytes(160 + len(body), kind, rows, links, lengths, iso, stored) + body


def parts(p=(0, 1, 3), h=(5, 9), i=(2, 1, 7), x=(1, 1, 1)):
    return [np.array(a, "<i8") for a in (p, h)] + [
        np.empty(0, np.int8), np.array(i, "<i8"), np.array(x, "<u4"),
    ]  # fmt: skip


BROKEN = {
    "p falls": parts(p=(0, 4, 3)),
    "p starts late": parts(p=(1, 1, 3)),
    "p ends early": parts(p=(0, 1, 2)),
    "p is negative": parts(p=(0, -1, 3)),
    "p leaves": parts(p=(0, 2**62, 3)),
    "h falls": parts(h=(9, 5)),
    "h repeats": parts(h=(5, 5)),
    "h leaves": parts(h=(5, 2**32)),
    "h is negative": parts(h=(-1, 9)),
    "i falls": parts(i=(2, 7, 1)),
    "i repeats": parts(i=(2, 7, 7)),
    "i leaves": parts(i=(2, 1, 2**32)),
    "i is negative": parts(i=(-2, 1, 7)),
    "x is zero": parts(x=(1, 0, 1)),
}


@pytest.mark.parametrize("name", BROKEN)
def test_arrays_that_contradict_the_header(name):
    good = made(parts(), 2, 3)
    assert next(iter(read_archive(io.BytesIO(good)))).links == 3
    with pytest.raises(FileFormatError, match=", byte 0"):
        list(read_archive(io.BytesIO(made(BROKEN[name], 2, 3))))


def test_huge_matrices_are_refused_before_any_memory_is_taken():
    arrays = parts()
    for rows, links in ((2**40, 3), (2, 2**40), (2**59, 2**59)):
        with pytest.raises(FileFormatError, match="contradict"):
            list(read_archive(io.BytesIO(made(arrays, rows, links))))
    full = bytearray(made([np.empty(0, np.int8)] * 4 + [np.array([1], "<u4")], 0, 0, iso=True))
    struct.pack_into("<i", full, 116, 4 * blob.FULL + 2)
    with pytest.raises(FileFormatError, match="most_bytes"):
        list(read_archive(io.BytesIO(bytes(full))))


def test_a_bomb_in_a_frame_is_refused():
    zstandard = pytest.importorskip("zstandard")
    frame = np.frombuffer(zstandard.compress(bytes(1 << 24)), np.uint8)
    arrays = [*parts(p=(0, 3), h=(5,))[:2], np.empty(0, np.int8), frame, np.array([1], "<u4")]
    content = bytearray(made(arrays, 1, 2**21))
    lengths = [16, 8, 0, 2**24, 4 * 2**21]
    struct.pack_into("<5q", content, 64, *lengths)
    struct.pack_into("<i", content, 148, blob.ZSTD + 1)
    struct.pack_into("<i", content, 116, 4 * blob.HYPERSPARSE + 2)
    struct.pack_into("<q", content, 96, 4)
    with pytest.raises(FileFormatError, match=r"does not ascend|p must go"):
        list(read_archive(io.BytesIO(bytes(content))))
    with pytest.raises(FileFormatError, match="most_bytes"):
        list(read_archive(io.BytesIO(bytes(content)), most_bytes=1 << 20))
    struct.pack_into("<q", content, 88, 2**24 - 8)
    struct.pack_into("<q", content, 48, 2**21 - 1)
    with pytest.raises(FileFormatError, match="expected"):
        list(read_archive(io.BytesIO(bytes(content))))


def member(name: bytes, size: bytes, content: bytes) -> bytes:
    header = bytearray(files.member_header("x", 0))
    header[0 : len(name)] = name
    header[124:136] = size
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + content + bytes(-len(content) % 512)


def test_members_with_paths_and_bad_sizes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content = made(parts(), 2, 3)
    size = b"%011o\0" % len(content)
    for name in (b"../../x.grb", b"/etc/passwd", b"a/b/c.grb", b"\xff\xfe"):
        found = list(read_archive(io.BytesIO(member(name, size, content))))
        assert found[0].links == 3
    assert list(tmp_path.iterdir()) == []  # names are never used
    far = b"\x80" + (2**62).to_bytes(11, "big")
    base256 = b"\x80" + len(content).to_bytes(11, "big")
    assert next(iter(read_archive(io.BytesIO(member(b"x", base256, content))))).links == 3
    for wrong in (
        b"77777777777\0",
        b"0000000009\0\0",
        b"-1\0\0\0\0\0\0\0\0\0\0",
        far,
        b"\xff" * 12,
    ):
        with pytest.raises(FileFormatError, match="byte 124"):
            list(read_archive(io.BytesIO(member(b"x", wrong, content))))
    spoiled = bytearray(member(b"x", size, content))
    spoiled[3] ^= 1
    with pytest.raises(FileFormatError, match="checksum"):
        list(read_archive(io.BytesIO(bytes(spoiled))))
    deep = member(b"x", size, content)
    for _ in range(5):
        deep = member(b"deep.tar", b"%011o\0" % len(deep), deep)
    with pytest.raises(FileFormatError, match="within one another"):
        list(read_archive(io.BytesIO(deep)))


def test_the_check_sees_what_is_wrong(tmp_path):
    path = tmp_path / "x.tar"
    matrices = windows()[:4]
    write_archive(path, matrices, compression=None)
    check_archive(path, matrices)
    with pytest.raises(CheckFailed, match="4 matrices"):
        check_archive(path, matrices[:3])
    for k in (0, 2, 3):
        given = list(matrices)
        given[k] = sum_matrices([given[k], traffic_matrix([1], [2])])
        with pytest.raises(CheckFailed, match=f"of matrix {k} has"):
            check_archive(path, given)
    with pytest.raises(CheckFailed):
        check_archive(path, matrices[::-1])


def test_errors(tmp_path):
    with pytest.raises(TypeError, match="read_archive: path must be"):
        read_archive(5)
    with pytest.raises(TypeError, match="read_archive: path must be"):
        read_archive(io.StringIO("x"))
    with pytest.raises(TypeError, match="write_archive: matrices must be an iterable"):
        write_archive(tmp_path / "x", example(), compression=None)
    with pytest.raises(TypeError, match="write_archive: path must be"):
        write_archive(5, [])
    with pytest.raises(TypeError, match="write_archive: matrices must be"):
        write_archive(tmp_path / "x", [5], compression=None)
    with pytest.raises(ValueError, match="write_archive: compression must be one of"):
        write_archive(tmp_path / "x", [], compression="lz4")
    with pytest.raises(ValueError, match="write_archive: level must be at most"):
        write_archive(tmp_path / "x", [], level=20)
    with pytest.raises(TypeError, match="write_archive: times must be an iterable"):
        write_archive(tmp_path / "x", [], times=np.array(3))
    with pytest.raises(ValueError, match="archive_writer: level must be at most"):
        archive_writer(tmp_path / "x", level=20)
    with pytest.raises(ValueError, match="read_archive: path must be the name of a file"):
        read_archive("a\0b")
    with pytest.raises(FileFormatError, match="empty"):
        list(read_archive(io.BytesIO(b"")))
    assert list(tmp_path.iterdir()) == []


def test_a_check_refuses_what_is_no_archive(tmp_path):
    path = tmp_path / "x"
    for content in (b"", b"x" * 4000, b"x" * 257 + b"ustar" + b"x" * 4000):
        path.write_bytes(content)
        with pytest.raises(CheckFailed, match="check_archive: the file is no archive"):
            check_archive(path, [])
    with path.open("rb") as stream:
        with pytest.raises(TypeError, match="check_archive: path must be the name of a file"):
            check_archive(stream.fileno(), [])
        os.fstat(stream.fileno())  # still open


# A blob of the official unit test, written by GraphBLAS (456 bytes in its tar; here ours)
def test_the_official_example():
    content = blob.dump(example())
    links = reference.links_of(content)
    assert links == dict(zip(zip(ROWS, COLUMNS, strict=True), VALUES, strict=True))
    assert base64.b64encode(content[:8]) == base64.b64encode(struct.pack("<Q", len(content)))


def test_threads_write_the_same_bytes(tmp_path):
    """Large and small matrices mixed: those that are packed ahead and those that are not."""
    pytest.importorskip("zstandard")
    large = windows()[2]
    matrices = [large, *windows(), large + large, large, example(), large]
    times = list(range(len(matrices)))
    for given in (tmp_path / "all.tar", tmp_path / "folder"):
        written = []
        for threads in (1, 2, 5):
            if not given.suffix:
                given.mkdir(exist_ok=True)
            paths = write_archive(given, matrices, each=3, times=times, threads=threads)
            written.append({path.name: path.read_bytes() for path in paths})
        assert written[0] == written[1] == written[2]
        assert [m for path in paths for m in read_archive(path)] == matrices


def test_a_matrix_that_cannot_be_packed_leaves_no_file(tmp_path, monkeypatch):
    """The error of a thread comes to who added the matrix, at the end at the latest."""
    pytest.importorskip("zstandard")

    def broken(self, matrix):
        raise RuntimeError("no room")

    monkeypatch.setattr(blob.Packer, "pieces", broken)
    with pytest.raises(RuntimeError, match="no room"):
        write_archive(tmp_path / "a.tar", windows()[2:3], threads=2)
    assert list(tmp_path.iterdir()) == []
