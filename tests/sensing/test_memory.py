"""A capture larger than the memory that is allowed, through a pipe."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from support import environment, write_script

WRITER = """
    import struct, sys
    import numpy as np
    from matchwood import generators

    out, blocks = sys.stdout.buffer, int(sys.argv[1])
    out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101))
    size = 1 << 18
    records = np.zeros((size, 56), np.uint8)
    records[:, 0:4] = np.frombuffer(struct.pack("<I", 1_700_000_000), np.uint8)
    records[:, 8:12] = records[:, 12:16] = np.frombuffer(struct.pack("<I", 40), np.uint8)
    records[:, 16], records[:, 19], records[:, 25] = 0x45, 40, 17
    for k in range(blocks):
        for at, part in zip((28, 32), generators.packets(size, sys.argv[2], rng=k)):
            records[:, at : at + 4] = part.astype(">u4").view(np.uint8).reshape(size, 4)
        out.write(records.tobytes())
"""
READER = """
    import json, sys
    from pathlib import Path
    from matchwood.sensing import sense

    def most_resident():  # not ru_maxrss, in which a child also finds what its parent took
        status = Path("/proc/self/status").read_text()
        return 1024 * int(status.split("VmHWM:")[1].split()[0])

    sense((__import__("numpy").zeros(3, "u4"),) * 2)  # compiled beforehand, as in any process
    before = most_resident()
    found = sense(sys.stdin.buffer, memory=sys.argv[1], threads=2)
    print(json.dumps([before, most_resident(), found.statistics.valid_packets,
                      found.statistics.unique_links, len(found.windows)]))
"""


def sensed(tmp_path, blocks, kind, memory):
    """(resident bytes before, at most, packets, links, windows)."""
    writer, reader = tmp_path / "writer", tmp_path / "reader"
    writer.mkdir()
    reader.mkdir()
    scripts = [write_script(writer, WRITER), write_script(reader, READER)]
    first = subprocess.Popen(
        [sys.executable, str(scripts[0]), str(blocks), kind],
        stdout=subprocess.PIPE,
        env=environment(),
    )
    done = subprocess.run(
        [sys.executable, str(scripts[1]), memory],
        stdin=first.stdout,
        capture_output=True,
        text=True,
        env=environment(),
        timeout=1800,
    )
    first.stdout.close()
    assert first.wait() == 0
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="resident memory is read from /proc")
def test_a_pipe_stays_within_the_memory_allowed(tmp_path):
    for name in ("compiling", "compiled"):
        (tmp_path / name).mkdir()
    sensed(tmp_path / "compiling", 1, "uniform", "2MB")  # the compiler takes memory of its own
    before, most, packets, links, windows = sensed(tmp_path / "compiled", 8, "uniform", "32MB")
    assert packets == 8 << 18
    assert links > packets - 100
    assert windows == 16
    assert most - before < 96e6  # the sums alone would be 34 MB, and their merges as much again


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="resident memory is read from /proc")
def test_many_packets_in_half_a_gigabyte(tmp_path):
    for name in ("compiling", "compiled"):
        (tmp_path / name).mkdir()
    sensed(tmp_path / "compiling", 1, "zipf", "512MB")  # the compiler takes memory of its own
    _, most, packets, _, windows = sensed(tmp_path / "compiled", 256, "zipf", "512MB")
    assert packets == 1 << 26
    assert windows == 512
    assert most < 1 << 30
