"""Kernels as libraries of the host, by g++: each is compiled once for all workers of a run."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

available = shutil.which("g++") is not None
FLAGS = ("-std=c++17", "-O1", "-fPIC", "-shared", "-w")


@functools.cache
def _folder() -> Path:
    """Of this run of tests, whose workers know its number; else of this process alone."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    if run is None:
        return Path(tempfile.mkdtemp())
    folder = Path(tempfile.gettempdir()) / f"matchwood-kernels-{run}"
    folder.mkdir(0o700, exist_ok=True)
    return folder


def written(text: str, suffix: str) -> Path:
    """A file with this text, whose name depends on it alone."""
    path = _folder() / (hashlib.sha256(text.encode()).hexdigest() + suffix)
    own = path.with_name(f"{os.getpid()}-{path.name}")
    own.write_text(text)
    return own.replace(path)  # whole: another worker may do the same at the same time


def library(text: str, *flags: str) -> ctypes.CDLL:
    """The library of this C++, with more flags."""
    source = written(text, ".cpp")
    path = written("\n".join((source.name, *flags)), ".flags").with_suffix(".so")
    if not path.exists():
        own = path.with_name(f"{os.getpid()}-{path.name}")
        subprocess.run(["g++", *FLAGS, *flags, "-o", str(own), str(source)], check=True)
        own.replace(path)
    return ctypes.CDLL(str(path))
