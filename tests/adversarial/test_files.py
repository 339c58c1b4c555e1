"""Files that were spoiled on purpose: an error of ours or a matrix, never a crash, never a hang.

Each search runs in a process of its own, so that a crash is seen and does not end the tests.  By
hand for longer: MATCHWOOD_ATTACK_SECONDS=3600, with NUMBA_BOUNDSCHECK=1 for checked indices.
"""

from __future__ import annotations

import importlib.util
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from adversarial.clock import attempts, seconds
from support import SOURCES, environment

VALID = {
    "a.mtx": b"%%MatrixMarket matrix coordinate real general\n% c\n3 3 2\n1 2 0.5\n3 1 -2e3\n",
    "b.mtx": b"%%MatrixMarket matrix array complex hermitian\n2 2\n1 0\n2 -1\n3 0\n",
    "c.mtx": b"%%MatrixMarket matrix coordinate integer symmetric\n3 3 2\n2 1 7\n\n3 3 0\n",
    "d.mtx": b"%%MatrixMarket matrix coordinate pattern general\r\n2 2 1\r\n1 2\r\n",
    "e.mtx": b"%%MatrixMarket matrix array real general\n0 0\n",
    "a.txt": b"# Nodes: 4 Edges: 3\n0\t1\t0.5\n3\t1\t2\n2\t2\t1e-3\n",
    "b.txt": b"4\n3\n0 1\n1 2\n3 0\n",
    "a.csv": b"source,target,weight\n0,1,0.25\n1,2,7\n",
    "n.csv": b"from,to,weight\nada,bob,1\nbob,cy,2\n",
    "a.graph": b"% c\n3 2 11 1\n5 2 1\n6 1 1 3 2\n7 2 2\n",
    "a.hgr": b"2 3 11\n5 1 2\n6 2 3\n1\n2\n3\n",
    "a.gr": b"c x\np sp 3 2\na 1 2 4\na 3 1 5\n",
    "a.max": b"p max 3 2\nn 1 s\nn 3 t\na 1 2 4\na 2 3 5\n",
    "a.col": b"p edge 3 2\nn 1 4\ne 1 2\ne 2 3\n",
    "a.co": b"p aux sp co 2\nv 1 5 6\nv 2 -7 8\n",
    "a.graph-txt": b"3\n1 2\n\n0\n",
    "names.txt": b"ada\nbob\n",
}  # fmt: skip
PACKED = (".gz", ".bz2", ".xz", *([".zst"] if importlib.util.find_spec("zstandard") else []))
COMPRESSIONS = ("", "", "", *PACKED)
NUMBERS = (
    b"0", b"-1", b"1", b"18446744073709551616", b"9223372036854775807", b"999999999999999999",
    b"2147483648", b"1e999", b"-1e-400", b"nan", b"inf", b"0x10", b"1_000", b"+5", b".", b"1e",
    b"1" * 400, b"0." + b"3" * 900, b"4000000000", b"10000000000", b"\xd9\xa3",
)  # fmt: skip
SPLICES = (
    b"\0", b"\r", b"\n", b"\r\n", b"\n\n\n", b" ", b"\t", b",", b";", b"#", b"%", b"\"",
    b"\xff\xfe", b"\xef\xbb\xbf", b"c", b"p ", b"\x1a", b"\v", b"\x85", b"-", b"x" * 3000,
    b" " * 5000, b"\n" * 3000, b"1 " * 3000,
)  # fmt: skip
HEADERS = [
    b"%%%%MatrixMarket matrix %s %s %s\n" % (layout, field, symmetry)
    for layout in (b"coordinate", b"array", b"vector")
    for field in (b"real", b"double", b"integer", b"unsigned-integer", b"pattern", b"complex", b"?")
    for symmetry in (b"general", b"symmetric", b"skew-symmetric", b"hermitian", b"")
]
SIZES = (
    b"0 0", b"0 5", b"5 0", b"1 1", b"2 2", b"-1 3", b"1000000000000 1", b"0 1000000000000", b"",
    b"999999999999999999 999999999999999999", b"3", b"2 2 2 2", b"1e3 2", b"2.0 2",
)  # fmt: skip
OPTIONS = (
    {}, {}, {}, {"strict": False}, {"compact": True}, {"names": True}, {"symmetric": True},
    {"columns": (0, 1, 7)}, {"columns": (0, 9, 1)}, {"columns": (1, 0)}, {"columns": (2, 0)},
    {"base": 1}, {"skip": 1}, {"shape": 3}, {"header": True}, {"header": False}, {"dtype": "int8"},
    {"threads": 3}, {"duplicates": "min"}, {"delimiter": ","}, {"delimiter": ";"},
    {"names": True, "header": True}, {"names": True, "columns": (0, 1, 7)},
)  # fmt: skip


def spoiled(content: bytes, rng: random.Random) -> bytes:
    """The bytes after one to four changes."""
    for _ in range(rng.randint(1, 4)):
        at, kind = rng.randint(0, len(content)), rng.randrange(8)
        if kind == 0:
            content = content[:at]
        elif kind == 1 and content:
            at = min(at, len(content) - 1)
            content = content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]
        elif kind == 2:
            content = content[:at] + rng.choice(SPLICES) + content[at:]
        elif kind in (3, 4):
            words = content.split(b" ")
            words[rng.randrange(len(words))] = rng.choice(NUMBERS)
            content = b" ".join(words)
        elif kind == 5:
            lines = content.split(b"\n")
            other = rng.choice(list(VALID.values())).split(b"\n")
            lines.insert(rng.randint(0, len(lines)), rng.choice(other))
            content = b"\n".join(lines)
        elif kind == 6:
            lines = content.split(b"\n")
            del lines[rng.randrange(len(lines))]
            content = b"\n".join(lines)
        else:
            content = content.replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\r", b"\n ")))
    return content


def compressed(content: bytes, suffix: str, rng: random.Random) -> bytes:
    """The compressed bytes, spoiled as well every third time."""
    import bz2
    import gzip
    import lzma

    if suffix == ".zst":
        import zstandard

        packed = zstandard.ZstdCompressor().compress(content)
    else:
        packed = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}[suffix](content)
    return spoiled(packed, rng) if rng.random() < 0.3 else packed


def archive(rng: random.Random) -> bytes:
    """An npz with arrays that need not fit each other."""
    import io
    import zipfile

    import numpy as np

    length = rng.choice((0, 1, 2, 3, 2**40))
    fitting = rng.random() < 0.5
    n = 2 if fitting else min(length, 3)
    arrays = {
        "format": np.array(
            rng.choice((b"csr", b"csc", b"coo", b"dia", b"bsr", b"lil", b"\xff", 5))
        ),
        "shape": np.array(
            rng.choice(((2, 2), (2, 2), (0, 0), (2**40, 2), (-1, 2), (2,), (2.5, 2)))
        ),
        "data": rng.choice((np.ones(2), np.ones(n), np.ones((1, 2)), np.ones((2, 1, 1)))),
        "indices": np.array(rng.choice(([0, 1], [0, 9], [-5, 1], [0.5, 1]))),
        "indptr": np.array(rng.choice(([0, 1, 2], [0, 2, 1], [0, 0, 9], [0], [0, -1, 2]))),
        "row": np.array(rng.choice(([0, 1], [0, 9], [-5, 1]))),
        "col": np.array(rng.choice(([0, 1], [0, 2**40]))),
        "offsets": np.array(rng.choice(([0], [0, 0], [-(2**40)], [1, 2, 3]))),
    }
    if rng.random() < 0.1:
        arrays["data"] = np.array([{}, print], dtype=object)
    for name in rng.sample(sorted(arrays), rng.choice((0, 0, 1, 3))):
        del arrays[name]
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as members:
        for name, array in arrays.items():
            written = io.BytesIO()
            np.save(written, array, allow_pickle=True)
            content = written.getvalue()
            if rng.random() < 0.15:
                content = content.replace(b"(2,)", b"(10000000000000,)")
            members.writestr(
                f"{name}.npy", spoiled(content, rng) if rng.random() < 0.1 else content
            )
    content = stream.getvalue()
    return spoiled(content, rng) if rng.random() < 0.3 else content


def matrix_market(rng: random.Random) -> bytes:
    """Any banner over any sizes and a few lines."""
    entries = b"".join(
        b" ".join(rng.choice(NUMBERS) for _ in range(rng.randint(0, 4))) + b"\n"
        for _ in range(rng.randint(0, 4))
    )
    tail = rng.choice((b"", b" 0", b" 1", b" 999999999999"))
    return rng.choice(HEADERS) + rng.choice(SIZES) + tail + b"\n" + entries


def search(seed: int, limit: float) -> int:
    """Read spoiled files for some seconds; what comes out must be sound.  Returns how many."""
    import matchwood
    from matchwood.errors import FileFormatError, OutOfMemory

    rng = random.Random(seed)
    folder = Path(tempfile.mkdtemp())
    end, count, name = time.monotonic() + limit, 0, ""
    while time.monotonic() < end or count < 50:
        kind = rng.randrange(6)
        if kind == 0:
            name, content = "z.npz", archive(rng)
        elif kind == 1:
            name, content = "m.mtx", matrix_market(rng)
        else:
            name = rng.choice(list(VALID))
            content = spoiled(VALID[name], rng)
            suffix = rng.choice(COMPRESSIONS)
            if suffix:
                name, content = name + suffix, compressed(content, suffix, rng)
        path = folder / name
        path.write_bytes(content)
        (folder / "case").write_bytes(repr((name, content)).encode())
        options = rng.choice(OPTIONS)
        try:
            if name.startswith("names"):
                matchwood.io.read_names(path)
                continue
            A = matchwood.io.read(path, **options)
            A = A[0] if isinstance(A, tuple) else A
            A.check_format(full_check=True)
            assert A.has_canonical_format
            assert max(A.shape) <= 10**7
        except (FileFormatError, OutOfMemory):
            pass
        except BaseException as error:
            if not (isinstance(error, (ValueError, TypeError)) and str(error).startswith("read: ")):
                raise AssertionError((name, content, options)) from error
        count += 1
    return count


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_spoiled_files(seed: int) -> None:
    limit = seconds(2) / 2
    code = f"from adversarial.test_files import search; print(search({seed}, {limit}))"
    tests = Path(__file__).parent.parent
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=limit + 240,
        env=environment(PYTHONPATH=os.pathsep.join((str(SOURCES), str(tests)))),
    )  # fmt: skip
    assert ended.returncode == 0, (ended.returncode, ended.stderr[-4000:])


def test_compressed_files_within_limits(tmp_path: Path) -> None:
    """Whatever a decoder is given, it stops at the limit and says why."""
    from matchwood.io.files import expanded

    rng = random.Random(5)
    text = b"0 1\n" * 1000
    for _ in attempts(0.3):
        suffix = rng.choice(PACKED)
        packed = compressed(text, suffix, rng)
        found = expanded(packed, suffix, 3000)
        assert len(found.text) <= 3000 + (1 << 22)
        assert found.too_much or found.damage or bytes(found.text) in text
