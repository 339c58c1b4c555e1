"""Files that change while they are read: an answer of one of their states, or a named error.

Run as a program it makes the attacks, as children.py says: ``test_changing_files.py FIRST END
SEED``.  A thread truncates, extends, replaces or overwrites a file at a random moment of a call
that reads it; or spoils the description of a saved graph before.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import matchwood
from adversarial.children import Attack, faults_of, make
from adversarial.clock import seconds, seed
from matchwood import dist
from matchwood.applications.sensing.capture import sources
from matchwood.errors import FileFormatError, OutOfMemory
from matchwood.gate.plain_files import PlainFile
from matchwood.sensing import (
    Packets,
    iter_capture,
    read_archive,
    read_capture,
    traffic_matrix,
    write_archive,
    write_capture,
)
from sensing import frames

PACKETS, EDGES = 60_000, 20_000  # some megabytes, read in some milliseconds
DESCRIPTION = "matchwood-graph.json"

# What is read, in two states each: (make a file, read it as something that can be compared)


def _packets(state: int, size: int = PACKETS) -> Packets:
    rng = np.random.default_rng(state)
    src, dst = (rng.integers(0, 1000, size + 100 * state, np.uint32) for _ in range(2))
    return Packets(src, dst, np.arange(src.size), src * 0 + 60, np.zeros(src.size, np.uint8))


def _matrix(state: int) -> Any:
    rng = np.random.default_rng(state)
    ends = rng.integers(0, 3000, (2, EDGES + 100 * state))
    return sp.csr_array((rng.integers(1, 9, ends.shape[1]), ends), shape=(3000, 3000))


def _write_archive(path: Path, state: int) -> None:
    packets = _packets(state, PACKETS // 3)
    matrices = [traffic_matrix(packets.src[k:], packets.dst[k:]) for k in range(3)]
    write_archive(path, matrices, compression="zstd" if "zstd" in path.name else None)


def _write_graph(path: Path, state: int) -> None:
    entries = _matrix(state).tocoo()
    edges = np.stack([entries.row, entries.col], axis=1)
    weights = entries.data if "weighted" in path.name else None

    def save(comm: Any) -> None:
        given = (3000, edges) if weights is None else (3000, edges, weights)
        matchwood.distribute(given if comm.rank == 0 else None, comm=comm).save(path)

    dist.run(save, 2)


def _of_packets(packets: Packets) -> Any:
    return tuple(field.tobytes() for field in packets)


def _in_blocks(path: Path) -> Any:
    blocks = list(iter_capture(path, packets=5000))
    return tuple(b"".join(part.tobytes() for part in field) for field in zip(*blocks, strict=True))


def _of_archive(path: Path) -> Any:
    found = []
    for matrix in read_archive(path, threads=2):
        matrix.check()
        found += [matrix.sources.tobytes(), matrix.destinations.tobytes(), matrix.counts.tobytes()]
    return found


def _of_matrix(path: Path) -> Any:
    A = matchwood.io.read(path)
    A.check_format(full_check=True)
    return A.shape, A.indptr.tobytes(), A.indices.tobytes(), A.data.tobytes()


def _on_ranks(path: Path) -> Any:
    def read(comm: Any) -> Any:
        try:
            G = matchwood.io.read(path, comm=comm)
        except (FileFormatError, OSError, OutOfMemory, ValueError) as error:
            return error
        view = G.entries()
        data = b"" if view.data is None else view.data.tobytes()
        return G.n, G.nnz, view.indptr.tobytes(), view.indices.tobytes(), data

    found = dist.run(read, 2)
    errors = [each for each in found if isinstance(each, Exception)]
    if errors:
        if len({(type(error), str(error)) for error in errors}) > 1 or len(errors) < len(found):
            raise AssertionError(f"ranks have different outcomes: {found}"[:300])
        raise errors[0]
    return found


def _write_capture(path: Path, state: int) -> None:
    write_capture(path, _packets(state))


def _write_matrix(path: Path, state: int) -> None:
    matchwood.io.write(path, _matrix(state))


READERS: dict[str, tuple[Callable[[Path, int], None], Callable[[Path], Any]]] = {
    "a.pcap": (_write_capture, lambda path: _of_packets(read_capture(path))),
    "b.pcap": (_write_capture, _in_blocks),
    "a.pcapng": (_write_capture, lambda path: _of_packets(read_capture(path, threads=2))),
    "a.pcap.gz": (_write_capture, lambda path: _of_packets(read_capture(path))),
    "plain.tar": (_write_archive, _of_archive),
    "zstd.tar": (_write_archive, _of_archive),
    "a.mtx": (_write_matrix, _of_matrix),
    "a.txt": (_write_matrix, _of_matrix),
    "a.npz": (_write_matrix, _of_matrix),
    "a.mtx.gz": (_write_matrix, _of_matrix),
    "ranks.txt": (_write_matrix, _on_ranks),
    "ranks.mtx": (_write_matrix, _on_ranks),
    "graph": (_write_graph, _on_ranks),
    "weighted": (_write_graph, _on_ranks),
}


# Changes


def _replace(path: Path, content: bytes) -> None:
    fresh = path.with_name(f"{path.name}.new")
    fresh.write_bytes(content)
    os.replace(fresh, path)


def _truncate(path: Path, size: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.truncate(path, size)


def _append(path: Path, content: bytes) -> None:
    with path.open("ab", buffering=0) as stream:
        stream.write(content)


def _overwrite(path: Path, content: bytes) -> None:
    with path.open("r+b", buffering=0) as stream:
        stream.write(content)


class Target:
    """A file, or a folder of files, in two states; what a change may leave to be read."""

    def __init__(self, name: str, folder: Path) -> None:
        self.write, self.read = READERS[name]
        self.states: list[dict[str, bytes]] = []
        self.place, self.scratch = folder / name, folder / f"quiet {name}"
        for state in range(2):
            self.write(self.scratch, state)
            self.states.append({file.name: file.read_bytes() for file in self._files(self.scratch)})
            shutil.rmtree(self.scratch, ignore_errors=True)
            self.scratch.unlink(missing_ok=True)
        self._known: dict[Any, Any] = {}

    @staticmethod
    def _files(place: Path) -> list[Path]:
        return sorted(place.iterdir()) if place.is_dir() else [place]

    def path(self, file: str, place: Path) -> Path:
        return place / file if len(self.states[0]) > 1 else place

    def put(self, state: dict[str, bytes], place: Path) -> None:
        if len(state) > 1:
            place.mkdir(exist_ok=True)
        for file in sorted(state, key=lambda name: name == DESCRIPTION):
            _replace(self.path(file, place), state[file])

    def quiet(self, state: dict[str, bytes]) -> Any:
        """What is read where nobody changes anything: an answer, or None for an error."""
        key = hash(tuple(state.values()))
        if key not in self._known:
            self.put(state, self.scratch)
            try:
                self._known[key] = self.read(self.scratch)
            except (FileFormatError, OSError, OutOfMemory, ValueError):
                self._known[key] = None
        return self._known[key]


def _change(target: Target, rng: Any) -> tuple[str, Callable[[], None], list[dict[str, bytes]]]:
    """(what, how, states that may be read); no states: any answer that is sound."""
    old, new = target.states
    names = [name for name in old if name != DESCRIPTION]
    file = names[int(rng.integers(len(names)))]
    path, content = target.path(file, target.place), old[file]
    kind = int(rng.integers(4))
    if kind == 0:
        size = int(rng.choice([0, 1, 24, 512, rng.integers(len(content)), len(content) - 1]))
        cut = {**old, file: content[:size]}
        return f"truncated to {size}", lambda: _truncate(path, size), [old, cut]
    if kind == 1:
        tail = content[-int(rng.integers(1, 100)) :]
        return "extended", lambda: _append(path, tail), [old, {**old, file: content + tail}]
    if kind == 2 and len(old) == 1:
        return "replaced", lambda: _replace(path, new[file]), [old, new]
    if kind == 2:  # as `save` does

        def saved_again() -> None:
            (target.place / DESCRIPTION).unlink(missing_ok=True)
            target.put(new, target.place)

        return "saved again", saved_again, [old, new]
    start = int(rng.integers(len(content)))
    return "overwritten", lambda: _overwrite(path, content[start:]), []


def _changed_while_read(target: Target, rng: Any, last: list[float]) -> str:
    target.put(target.states[0], target.place)
    what, change, states = _change(target, rng)
    wait = 10 ** float(rng.uniform(-4, 0)) * last[0]  # files are read at the beginning, mostly
    begin = threading.Event()

    def later() -> None:
        begin.wait()
        time.sleep(wait)
        change()

    thread = threading.Thread(target=later)
    thread.start()
    found = None
    start = time.perf_counter()
    begin.set()
    try:
        found = target.read(target.place)
        last[0] = 0.5 * last[0] + 0.5 * (time.perf_counter() - start)
    except (FileFormatError, FileNotFoundError) as error:
        if target.place.name not in str(error):
            return f"{what}: no file is named: {error}"
    except OutOfMemory:
        pass
    except Exception as error:
        if not str(error).startswith("read: "):
            return f"{what}: {type(error).__name__}: {error}"
    finally:
        thread.join()
    if found is None or not states or any(found == target.quiet(state) for state in states):
        return ""
    return f"{what} after {wait * 1000:.2f} ms: an answer of no state of the file"


# Descriptions of saved graphs

ODD = [None, True, False, 0, 1, -1, 2, 3000, 2**31, 2**62, 2**63, 10**30, 0.5, 1.0, float("nan"),
       float("inf"), "", "1", "<i4", ">i4", ">i8", "<f8", ">f8", "|O", "<U3", "i4,i4", "int32",
       "float64", "sum", "error", [], [1], [-1, 1], [2**62, 2**62], ["1"], {}, [[]]]  # fmt: skip


def _spoiled_description(target: Target, rng: Any) -> str:
    """A description with one or two facts that are wrong is refused, or changes no entry."""
    facts = json.loads(target.states[0][DESCRIPTION])
    before = dict(facts)
    for _ in range(int(rng.integers(1, 3))):
        name = [*facts, "more"][int(rng.integers(len(facts) + 1))]
        kind = int(rng.integers(8))
        if kind == 0 and name in facts:
            del facts[name]
        elif kind == 1 and isinstance(facts.get(name), int):
            facts[name] += int(rng.choice([-1, 1, 1000]))
        elif kind == 2 and isinstance(facts.get(name), list) and facts[name]:
            facts[name][int(rng.integers(len(facts[name])))] = ODD[int(rng.integers(len(ODD)))]
        else:
            facts[name] = ODD[int(rng.integers(len(ODD)))]
    text = json.dumps(facts).encode()
    if rng.random() < 0.1:
        text = text[: int(rng.integers(len(text)))]
    target.put({**target.states[0], DESCRIPTION: text}, target.place)
    try:
        found = target.read(target.place)
    except (FileFormatError, OutOfMemory):
        return ""
    except Exception as error:
        return f"{facts}: {type(error).__name__}: {error}"
    right = target.quiet(target.states[0])
    for name in ("version", "entries", "index", "values"):
        if facts.get(name) != before[name] or type(facts.get(name)) is not type(before[name]):
            return f"{facts}: {name} is wrong, and the graph was read"
    if facts["n"] == before["n"] and [each[2:] for each in found] != [each[2:] for each in right]:
        same = facts["index_dtype"] == before["index_dtype"]
        return f"{facts}: other entries" if same else ""
    return ""


def _spoiled_array(target: Target, rng: Any) -> str:
    """Bytes at the head of an array that are wrong."""
    state = dict(target.states[0])
    name = [name for name in state if name != DESCRIPTION][int(rng.integers(len(state) - 1))]
    content = bytearray(state[name])
    for _ in range(int(rng.integers(1, 4))):
        place = int(rng.integers(140))
        kind = int(rng.integers(3))
        if kind == 0:
            content[place] = int(rng.choice([0, 255, *b"0189()[]{}<>'\", \n|OV"]))
        elif kind == 1:
            del content[place : place + int(rng.integers(1, 20))]
        else:
            marks = rng.choice([*b"([{,9 '"], int(rng.integers(1, 500)))
            content[place:place] = marks.astype(np.uint8).tobytes()
    target.put({**state, name: bytes(content)}, target.place)
    try:
        target.read(target.place)
    except (FileFormatError, OutOfMemory):
        pass
    except Exception as error:
        return f"{bytes(content[:140])!r}: {type(error).__name__}: {error}"
    return ""


def attacks(end: float, number: int) -> Iterator[Attack]:
    folder = Path(tempfile.mkdtemp())
    targets = {name: Target(name, folder) for name in READERS}
    last = {name: [0.01] for name in READERS}
    for name, target in targets.items():  # what is compiled is not what is attacked
        for _ in range(2):
            target.put(target.states[0], target.place)
            start = time.perf_counter()
            target.read(target.place)
            last[name][0] = time.perf_counter() - start
    try:
        for k in itertools.count():
            for at, (name, target) in enumerate(targets.items()):
                rng = np.random.default_rng((number, k, at))
                yield name, functools.partial(_changed_while_read, target, rng, last[name])
                if target.write is _write_graph:
                    yield f"{name}, facts", functools.partial(_spoiled_description, target, rng)
                    yield f"{name}, heads", functools.partial(_spoiled_array, target, rng)
            if time.time() > end:
                return
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
def test_files_that_change_give_an_answer_or_an_error() -> None:
    end = time.time() + seconds(4)
    found = faults_of("test_changing_files.py", str(end), str(seed()))
    assert not found, "\n".join(found)


# One change each, at a moment that is known


@pytest.fixture
def small_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "AHEAD", 1 << 16)
    monkeypatch.setattr(sources, "AHEAD_OF_MEMBER", 1 << 16)


def _later(path: Path) -> None:
    """The clock of the file system may not have moved since the last write."""
    facts = path.stat()
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns + 10**7))


@pytest.mark.parametrize("name", ["a.pcap", "a.pcapng"])
def test_captures_that_get_shorter_grow_or_are_overwritten(name, tmp_path, small_buffers):
    path, packets = tmp_path / name, _packets(0)
    for change, error in (("shorter", "became shorter"), ("other", "was changed"), ("longer", "")):
        write_capture(path, packets)
        content = path.read_bytes()
        with iter_capture(path, packets=1000) as capture:
            found = [next(capture)]
            if change == "shorter":
                os.truncate(path, len(content) // 2)
            elif change == "longer":
                _append(path, content[-56:])
            else:
                _overwrite(path, content)
                _later(path)
            if error:
                with pytest.raises(FileFormatError, match=f"{name}, byte .*{error}"):
                    found.extend(capture)
            else:
                found.extend(capture)
        src = np.concatenate([block.src for block in found])
        assert np.array_equal(src, packets.src[: src.size])
        assert (src.size < packets.src.size) == (change == "shorter")


def test_a_record_longer_than_a_buffer(tmp_path, small_buffers):
    """Long records between short ones: what is kept of a buffer is larger than the next one."""
    rng = np.random.default_rng(1)
    packets = [frames.ipv4(k, k + 1) + bytes(int(rng.choice([0, 262_000]))) for k in range(40)]
    path = tmp_path / "long.pcap"
    path.write_bytes(frames.pcap(packets))
    for threads in (1, 2):
        assert read_capture(path, threads=threads).src.tolist() == list(range(40))
    blocks = frames.section() + frames.interface()
    blocks += frames.block(5, bytes(1 << 21)) + frames.enhanced(packets[3], 5)
    path.write_bytes(blocks)
    assert read_capture(path).src.tolist() == [3]


@pytest.mark.parametrize("threads", [1, 2])
def test_archives_that_get_shorter_or_are_overwritten(threads, tmp_path):
    path = tmp_path / "plain.tar"
    for change, error in (("shorter", "became shorter"), ("other", "was changed")):
        _write_archive(path, 0)
        content = path.read_bytes()
        matrices = read_archive(path, threads=threads)
        first = next(matrices)
        if change == "shorter":
            os.truncate(path, len(content) // 2)
        else:
            _overwrite(path, content)
            _later(path)
        with pytest.raises(FileFormatError, match=f"plain.tar, byte .*{error}"):
            list(matrices)
        first.check()  # its memory is its own


@pytest.mark.parametrize("change", ["truncate", "append", "overwrite"])
@pytest.mark.parametrize("name", ["a.txt", "a.mtx", "a.npz", "ranks.txt", "graph"])
def test_graphs_in_files_that_change(name, change, tmp_path, monkeypatch):
    target = Target(name, tmp_path)
    target.put(target.states[0], target.place)
    path = target.path("columns-00001.npy", target.place)
    content, fill, done = path.read_bytes(), PlainFile.fill, []

    def changed_meanwhile(self: PlainFile, start: int, goal: Any) -> None:
        fill(self, start, goal)
        if Path(self.name) == path and not done:
            done.append(True)
            if change == "truncate":
                os.truncate(path, len(content) // 3)
            elif change == "append":
                _append(path, b"1 2\n")
            else:
                _overwrite(path, content)
            _later(path)

    monkeypatch.setattr(PlainFile, "fill", changed_meanwhile)
    with pytest.raises(FileFormatError, match=f"{name}.*(was changed|became shorter)"):
        target.read(target.place)
    assert done


@pytest.mark.skipif(os.name == "nt", reason="no such files there")
def test_what_is_no_plain_file(tmp_path):
    """Nothing is waited for, and nothing is read for ever."""
    with pytest.raises(FileFormatError, match="/dev/zero: expected a file or a pipe, got a device"):
        matchwood.io.read("/dev/zero", format="edges")
    for read in (read_capture, lambda path: list(read_archive(path))):
        with pytest.raises(FileFormatError, match="got a device"):
            read("/dev/zero")
        with pytest.raises(FileFormatError, match="got a device"):
            read("/dev/urandom")
    os.mkfifo(tmp_path / "x.tar")
    with pytest.raises(FileFormatError, match=r"x\.tar: expected a plain file, got a pipe"):
        list(read_archive(tmp_path))
    loop = tmp_path / "loop.txt"
    loop.symlink_to(loop)
    for read in (matchwood.io.read, read_capture, lambda path: list(read_archive(path))):
        with pytest.raises(OSError, match=r"loop\.txt"):
            read(loop)
    target = Target("graph", tmp_path)
    target.put(target.states[0], target.place)
    (target.place / "rows-00001.npy").unlink()
    os.mkfifo(target.place / "rows-00001.npy")
    with pytest.raises(
        FileFormatError, match=r"rows-00001\.npy: expected a plain file, got a pipe"
    ):
        target.read(target.place)


def test_holes_of_terabytes_are_not_read(tmp_path):
    for name in ("a.txt", "a.npz", "a.grb"):
        path = tmp_path / name
        path.write_bytes(b"1 2\n")
        try:
            os.truncate(path, 1 << 42)
        except OSError:
            pytest.skip("no such large files here")
        with pytest.raises(OutOfMemory):
            list(read_archive(path)) if name == "a.grb" else matchwood.io.read(path)
        path.unlink()


FACTS = [
    ("version", 2), ("version", True), ("version", 1.0), ("n", -1), ("n", 2**63), ("n", 3000.0),
    ("n", "3000"), ("n", float("nan")), ("nnz", 19_984.0), ("nnz", -1), ("nnz", 5),
    ("nnz", True), ("nnz", 2**70), ("entries", 5), ("entries", [19_984.0]), ("entries", {}),
    ("entries", [-1, 19_985]), ("entries", [True, 19_983]), ("entries", [2**62, 2**62]),
    ("index", None), ("index", "|O"), ("index", "<f8"), ("values", "|O"), ("values", "i4,i4"),
    ("values", ["<f8"]), ("values", True), ("edges", 1), ("edges", None), ("duplicates", "all"),
    ("duplicates", ["sum"]), ("index_dtype", "int16"), ("index_dtype", None), ("values", "<U3"),
]  # fmt: skip


def test_every_fact_of_a_saved_graph_is_checked(tmp_path):
    target = Target("weighted", tmp_path)
    target.put(target.states[0], target.place)
    path = target.place / DESCRIPTION
    facts = json.loads(path.read_text())
    for name, value in FACTS:
        path.write_text(json.dumps({**facts, name: value}))
        with pytest.raises(FileFormatError, match=f"no description of a graph: {name} must be"):
            target.read(target.place)
    path.write_text(json.dumps({**facts, "nnz": facts["nnz"] + 1}))
    with pytest.raises(FileFormatError, match="nnz must be 19984, the sum of entries, got 19985"):
        target.read(target.place)
    for wrong in ({**facts, "more": 1}, {k: facts[k] for k in facts if k != "nnz"}, [facts], None):
        path.write_text(json.dumps(wrong))
        with pytest.raises(FileFormatError, match="no description of a graph: expected an object"):
            target.read(target.place)
    path.write_text("[" * 100_000)
    with pytest.raises(FileFormatError, match="no description of a graph"):
        target.read(target.place)


def test_saved_graphs_of_machines_with_another_order_of_bytes(tmp_path):
    target = Target("weighted", tmp_path)
    target.put(target.states[0], target.place)
    right = target.read(target.place)
    for file in target.place.glob("*.npy"):
        array = np.load(file)
        np.save(file, array.astype(array.dtype.newbyteorder("S")))
    path = target.place / DESCRIPTION
    path.write_text(path.read_text().replace("<i", ">i"))
    assert target.read(target.place) == right


if __name__ == "__main__":
    sources.AHEAD = sources.AHEAD_OF_MEMBER = 1 << 18  # captures come in several parts
    make(attacks(float(sys.argv[2]), int(sys.argv[3])), int(sys.argv[1]))
