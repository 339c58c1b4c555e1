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
from matchwood.errors import FileFormatError, OutOfMemory
from matchwood.sensing import (
    Packets,
    iter_capture,
    read_archive,
    read_capture,
    traffic_matrix,
    write_archive,
    write_capture,
)
from matchwood.sensing.capture import sources

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
    wait = float(rng.random()) * last[0]
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


@pytest.mark.timeout(4 * 3600)
def test_files_that_change_give_an_answer_or_an_error() -> None:
    end = time.time() + seconds(8)
    found = faults_of("test_changing_files.py", str(end), str(seed()))
    assert not found, "\n".join(found)


if __name__ == "__main__":
    sources.BUFFER = sources.BUFFER_OF_MEMBER = 1 << 18  # captures come in several parts
    make(attacks(float(sys.argv[2]), int(sys.argv[3])), int(sys.argv[1]))
