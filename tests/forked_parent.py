"""A process that has imported Numba and made it compile, and forks a child for each script.

forked.py starts it.  It reads a line of JSON for each script, and prints with which code its child
has ended.  It imports nothing of matchwood, which each child does from the folder it is told.
"""

import json
import os
import sys

import numba
import scipy.sparse  # noqa: F401


def fork_for_each_line():
    """Returns in a child, which has what a process has that was started for this script."""
    while line := sys.stdin.readline():
        job = json.loads(line)
        child = os.fork()
        if child == 0:
            return become(job)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    sys.exit()


def become(job):
    for number, path in enumerate((os.devnull, *job["outputs"])):
        opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    os.environ.clear()
    os.environ.update(job["environment"])
    sys.argv = job["argv"]
    folder = os.path.dirname(sys.argv[0])
    sys.path[:0] = [folder, *os.environ["PYTHONPATH"].split(os.pathsep)]


if __name__ == "__main__":
    numba.njit(lambda x: x + 1)(1)
    fork_for_each_line()
    __file__ = sys.argv[0]
    with open(__file__, encoding="utf-8") as script:
        code = compile(script.read(), __file__, "exec")
    exec(code)  # as the main module; the process ends behind it
