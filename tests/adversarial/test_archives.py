"""Damaged archives: a FileFormatError with file and byte, or the matrices that are there."""

from __future__ import annotations

import functools
import io
import struct

import numpy as np
import pytest

from adversarial.clock import attempts
from matchwood.applications.sensing.archive import blob, files
from matchwood.errors import FileFormatError, OutOfMemory
from matchwood.sensing import TrafficMatrix, read_archive, traffic_matrix


@functools.cache
def matrices() -> list[TrafficMatrix]:
    rng = np.random.default_rng(1)
    return [
        traffic_matrix(rng.integers(0, 2**32, 60), rng.integers(0, 2**32, 60)),
        traffic_matrix(rng.integers(0, 9, 300), rng.integers(0, 9, 300)),
    ]


def archive(compress) -> bytes:
    found = b""
    for k, matrix in enumerate(matrices()):
        content = blob.dump(matrix, compress)
        found += files.member_header(f"{k}.grb", len(content)) + content
        found += bytes(-len(content) % files.TAR_BLOCK)
    return found


def archives() -> list[bytes]:
    found = [archive(None), blob.dump(matrices()[1])]
    pytest.importorskip("zstandard")
    return [*found, archive("zstd"), blob.dump(matrices()[0], "zstd")]


def survives(content: bytes) -> list[TrafficMatrix]:
    """The matrices before the damage, each of them sound."""
    found = []
    try:
        for matrix in read_archive(io.BytesIO(content), most_bytes=1 << 22):
            matrix.check()
            found.append(matrix)
    except FileFormatError as error:
        if ", byte " not in str(error):
            raise
    except OutOfMemory:
        pass
    return found


def test_truncation_at_every_byte():
    for content in archives():
        for size in range(0, len(content), 1 if len(content) < 3000 else 7):
            found = survives(content[:size])
            same = all(a == b for a, b in zip(found, matrices(), strict=False))
            assert same or len(content) < 5000


WORDS = [0, 1, 3, 7, 8, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1]


def test_every_word_of_the_header_replaced():
    for content in archives():
        start = files.TAR_BLOCK if files.is_tar(memoryview(content)) else 0
        for place in range(start, start + 240, 4):
            for value in WORDS:
                wrong = bytearray(content)
                width = 8 if value >= 2**32 else 4
                wrong[place : place + width] = struct.pack("<Q", value)[:width]
                survives(bytes(wrong))


@pytest.mark.slow
def test_random_damage():
    contents = archives()
    for k in attempts(0.7):
        rng = np.random.default_rng(k)
        wrong = bytearray(contents[k % len(contents)])
        for _ in range(int(rng.integers(1, 5))):
            place = int(rng.integers(len(wrong)))
            kind = rng.integers(3)
            if kind == 0:
                wrong[place] = int(rng.integers(256))
            elif kind == 1:
                del wrong[place : place + int(rng.integers(1, 600))]
            else:
                wrong[place:place] = rng.bytes(int(rng.integers(1, 20)))
        if wrong:
            survives(bytes(wrong))
