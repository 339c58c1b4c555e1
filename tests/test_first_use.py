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


STATEMENT_AND_NAME = """
import importlib
import threading
import matchwood
from matchwood import _lazy
inside, taken = threading.Event(), threading.Event()
class Lock:
    lock = threading.RLock()
    def __enter__(self):
        if threading.current_thread() is first:
            inside.set()  # in the middle of a module, which the other waits for in its turn
            taken.wait(60)
        self.lock.acquire()
        taken.set()
    def __exit__(self, *error):
        self.lock.release()
def other():
    inside.wait(2)
    _lazy._import("matchwood.components")
_lazy._lock = Lock()
first = threading.Thread(target=importlib.import_module, args=("matchwood.components",))
threads = [first, threading.Thread(target=other)]
for thread in threads:
    thread.daemon = True
    thread.start()
for thread in threads:
    thread.join(60)
print([thread.is_alive() for thread in threads])
"""


@pytest.mark.slow
def test_an_import_statement_while_another_thread_uses_a_name():
    """One had a module and waited for a turn; the other had it, and waited for the module."""
    command = [sys.executable, "-c", STATEMENT_AND_NAME]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True)
    assert done.stdout.strip() == "[False, False]", done.stderr
