"""Names of the package that several threads use first, at once."""

from __future__ import annotations

import subprocess
import sys

import pytest

FIRST_USE = """
import threading
import matchwood
names = ("layered_label_propagation_order rabbit_order refine_order shingle_order hub_order gaps "
         "reverse_cuthill_mckee permute louvain pagerank").split()
meet, failed = threading.Barrier(len(names)), []
def use(name):
    meet.wait()
    try:
        getattr(matchwood, name)
    except BaseException as error:
        failed.append(f"{name}: {error!r}")
threads = [threading.Thread(target=use, args=(name,)) for name in names]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(failed)
"""


@pytest.mark.slow
def test_threads_that_are_the_first_to_use_names():
    """Modules that import each other raised KeyError, ImportError or a deadlock's error."""
    command = [sys.executable, "-c", FIRST_USE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "[]", done.stdout
