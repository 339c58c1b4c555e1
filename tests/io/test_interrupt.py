"""Ctrl-C at any time: heard soon, and nothing is left behind."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from support import run_script

SCRIPT = """
    import os, pathlib, random, signal, sys, threading, time
    import numpy as np
    import scipy.sparse as sp
    import matchwood
    from matchwood import generators

    folder, what = pathlib.Path(sys.argv[1]), sys.argv[2]
    rng = np.random.default_rng(0)
    m, n = int(sys.argv[3]), 100_000
    A = sp.csr_array((rng.random(m), (rng.integers(0, n, m), rng.integers(0, n, m))), shape=(n, n))

    def work():
        if what == "delaunay":
            generators.delaunay(m)
        elif what.startswith("write"):
            matchwood.io.write(folder / f"a{what.split()[1]}", A)
        else:
            matchwood.io.read(folder / f"a{what.split()[1]}")

    if what.startswith("read"):
        matchwood.io.write(folder / f"a{what.split()[1]}", A)
        matchwood.io.write(folder / f"b{what.split()[1]}", A[:5])
        matchwood.io.read(folder / f"b{what.split()[1]}")  # compiled
    generators.delaunay(100)  # what is imported and compiled is not what is measured here

    def late(share):
        '''Seconds from the signal until it is heard.'''
        sent = []

        def kick():
            time.sleep(share)
            sent.append(time.perf_counter())
            os.kill(os.getpid(), signal.SIGINT)

        helper = threading.Thread(target=kick)
        try:
            helper.start()
            work()
            helper.join()
            time.sleep(0.1)
        except KeyboardInterrupt:
            heard = time.perf_counter() - sent[0]
        helper.join()
        return heard

    worst = 0
    for share in (0.2, 0.5, 0.1, 0.3):
        end, best = time.monotonic() + 40, late(share)
        while best > ALLOWED and time.monotonic() < end:  # other programs may be at work
            best = min(best, late(share))
        worst = max(worst, best)
    left = [path.name for path in folder.iterdir() if path.name.endswith(".part")]
    assert not left, left
    print(worst)
"""

ALLOWED = 0.3  # seconds; 100 ms is what is promised, on a machine that does nothing else
WORK = [
    ("delaunay", 300_000), ("write .npz", 2_000_000), ("write .txt.xz", 500_000),
    ("write .mtx", 2_000_000), ("read .mtx", 1_000_000), ("read .npz", 1_000_000),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals are sent another way there")
@pytest.mark.parametrize(("what", "size"), WORK, ids=[name.replace(" ", "-") for name, _ in WORK])
def test_ctrl_c_is_heard(tmp_path: Path, what: str, size: int) -> None:
    assert signal.SIGINT
    folder = tmp_path / "files"
    folder.mkdir()
    script = SCRIPT.replace("ALLOWED", str(ALLOWED))
    assert float(run_script(tmp_path, script, str(folder), what, str(size))) <= ALLOWED


LARGE = """
    import os, pathlib, subprocess, sys, time
    import matchwood

    path = pathlib.Path(sys.argv[1], "holes.txt")
    path.write_text("0 1\\n")
    matchwood.io.read(path)  # what is imported and compiled is not what is measured here
    os.truncate(path, 1_500_000_000)
    # from outside: a thread of this process could send nothing while another one holds the GIL
    killer = '''if True:
        import os, signal, sys, time
        sys.stdin.read()
        time.sleep(0.15)
        print(time.monotonic(), flush=True)
        os.kill(int(sys.argv[1]), signal.SIGINT)'''
    times = []
    while not times or (min(times) > ALLOWED and len(times) < 10):
        with subprocess.Popen(
            [sys.executable, "-c", killer, str(os.getpid())], stdin=-1, stdout=-1, text=True
        ) as sender:
            try:
                sender.stdin.close()
                matchwood.io.read(path)
            except KeyboardInterrupt:
                heard = time.monotonic()
            times.append(heard - float(sender.stdout.readline()))
    print(min(times))
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals are sent another way there")
def test_ctrl_c_while_memory_is_taken_for_a_large_file(tmp_path: Path) -> None:
    script = LARGE.replace("ALLOWED", str(ALLOWED))
    assert float(run_script(tmp_path, script, str(tmp_path))) <= ALLOWED
