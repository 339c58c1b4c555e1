"""The list of all kernels with all types of their arguments, and what is made from it.

`kernels.json` has one signature a line (see engines/cpu/compiled.py).  From it `warmup` compiles
for this machine, and

    python -m matchwood.machine.kernels build FOLDER     makes libraries, one for each level
    python -m matchwood.machine.kernels wheel FOLDER     packs them as matchwood-kernels

Nothing is run for that.  The tests meet all kernels, and fail on a signature that is not listed;
``pytest --list-kernels`` adds what they meet.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import inspect
import json
import os
import platform
import queue
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import zipfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from matchwood._version import __version__
from matchwood.arguments import callback, shown
from matchwood.engines.cpu import available_cpus, cache_folder, code, library
from matchwood.engines.cpu.compiled import PACKAGE, found, read_anew, source_hash, sources

LIST = Path(__file__).with_name("kernels.json")


def listed() -> set[str]:
    """The signatures in the list."""
    return {json.dumps(each, separators=(",", ":")) for each in json.loads(LIST.read_bytes())}


def write_list(signatures: Iterable[str]) -> None:
    """Write the list anew; other processes see the old one or the new one."""
    new = LIST.with_suffix(".new")
    new.write_text("[\n" + ",\n".join(sorted(signatures)) + "\n]\n", encoding="utf-8")
    new.replace(LIST)


def warmup(
    only: str | None = None, *, report: Callable[[str], object] | None = None
) -> dict[str, Any]:
    """Compile every kernel now, instead of when a function is first called.

    Compiles what the package's list names, on all cores, for 32- and 64-bit indices and weights;
    nothing is run.  The compiled code stays in the user's cache folder, so this is needed once per
    version (say, when an image is built, or before timing), and not at all for kernels that came
    compiled with the package matchwood-kernels.

    Parameters
    ----------
    only : str or None
        Just the kernels whose signature contains this: a folder of the package
        ("breadth_first"), a kernel, a type ("int64").
    report : callable (str), optional
        Called with the name of each kernel before it is compiled.

    Returns
    -------
    summary : dict
        ``seconds`` taken, ``compiled``, the number of kernels added to the cache, and ``folder``,
        where the cache is (None when no folder is this user's alone: nothing is compiled then).

    Raises
    ------
    ValueError
        If there is no such kernel.

    Examples
    --------
    >>> import matchwood
    >>> matchwood.warmup("mailboxes:wait")["compiled"] >= 0
    True
    """
    callback("warmup", "report", report)
    if not (only is None or isinstance(only, str)):
        raise TypeError(f"warmup: only must be text or None, got {shown(only)}")
    chosen = [text for text in listed() if only is None or only in text]
    if not chosen:
        raise ValueError(f"warmup: no kernel has {shown(only)} in its signature")
    folder, start = cache_folder(), time.perf_counter()
    count = 0 if folder is None else compiled(chosen, report=report)
    return {
        "seconds": time.perf_counter() - start,
        "compiled": count,
        "folder": None if folder is None else str(folder),
    }


# Compilers: processes that each take the next kernel that nobody has taken


def compiled(
    signatures: Iterable[str],
    *,
    folder: Path | None = None,
    workers: int | None = None,
    report: Callable[[str], object] | None = None,
    **environment: str,
) -> int:
    """Compile all of them, and return how many were.

    Where `folder` is given, they are written there as files of objects; else into the cache of
    the user, unless they are there.
    """
    by_kernel: dict[str, list[str]] = {}
    for text in sorted(signatures):
        by_kernel.setdefault(json.loads(text)[0], []).append(text)
    # the longest first: code grows with the arguments
    order = sorted(by_kernel.values(), key=lambda texts: (-sum(map(len, texts)), texts))
    lock, waiting = threading.Lock(), iter(order)
    begun: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    command = [sys.executable, "-m", __spec__.name, "serve", *([str(folder)] if folder else [])]
    number = min(workers or available_cpus(), len(order))
    variables = os.environ | {"PYTHONHASHSEED": "0"} | environment
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    compilers = [subprocess.Popen(command, env=variables, **pipes) for _ in range(number)]

    def attend(compiler: Any) -> int:
        count = 0
        try:
            while True:
                with lock:
                    texts = next(waiting, None)
                if texts is None:
                    return count
                begun.put(json.loads(texts[0])[0])
                compiler.stdin.write(json.dumps(texts) + "\n")
                compiler.stdin.flush()
                answer = compiler.stdout.readline().strip()
                if not answer.isdigit():
                    raise RuntimeError(answer or f"the compiler ended at {texts[0]}")
                count += int(answer)
        finally:
            begun.put(None)

    with ThreadPoolExecutor(max(1, number)) as pool:
        try:
            counts = [pool.submit(attend, compiler) for compiler in compilers]
            running = number
            while running:
                name = begun.get()
                if name is None:
                    running -= 1
                elif report is not None:
                    report(name)
            return sum(count.result() for count in counts)
        finally:
            waiting = iter(())
            for compiler in compilers:
                compiler.terminate()
                compiler.communicate()


def serve(folder: Path | None) -> None:
    """Compile the signatures of each line that comes, and answer how many were."""
    if folder is not None:
        _prepare()
    for line in sys.stdin:
        texts = json.loads(line)
        try:
            count = sum(map(code.keep, texts)) if folder is None else _written(folder, texts)
            answer = str(count)
        except Exception as error:
            answer = f"{texts[0]}: {type(error).__name__}: {error}".replace("\n", " ")
        print(answer, flush=True)  # noqa: T201  the parent reads it


def _prepare() -> None:
    """Let Numba load all that it needs, once for all processes that are forked."""
    from matchwood.engines.cpu import jit

    jit.object_code('["matchwood.engines.cpu.mailboxes:wait","int64","int64"]', "wait")


def _written(folder: Path, texts: list[str]) -> int:
    """Write objects, in a process of its own: what was compiled before changes LLVM's choices."""
    from matchwood.engines.cpu import jit

    child = os.fork()
    if child == 0:
        try:
            for text in texts:
                name = library.symbol(text)
                (folder / f"{name}.o").write_bytes(jit.object_code(text, name))
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        raise RuntimeError("the compiler failed")
    return len(texts)


# Libraries

LINKED = ("-shared", "-nostdlib", "-Wl,--strip-all", "-Wl,--build-id=none", "-Wl,-z,noexecstack")
OUTSIDE = {
    "exp2", "ilogb", "ldexp", "memcpy", "memmove", "memset", "sched_yield", "syscall", "usleep",
}  # fmt: skip
"""Symbols that a library may ask for: the C library's, which every Python has loaded.  Any other
would be one of Numba's, NumPy's or Python's."""


def build(folder: Path, levels: Iterable[str], workers: int | None = None) -> None:
    """Make a library for each level in the folder, and their index."""
    folder.mkdir(parents=True, exist_ok=True)
    known = library.LEVELS[platform.machine()]
    texts = packed()
    files = sorted(set().union(*map(sources, texts)))
    sums, hashes = {}, _hashes(files)
    for level in levels:
        path = folder / f"{level}.so"
        with tempfile.TemporaryDirectory() as objects:
            compiled(
                texts, folder=Path(objects), workers=workers,
                NUMBA_CPU_NAME=known[level].processor, NUMBA_CPU_FEATURES=known[level].features,
            )  # fmt: skip
            read_anew()
            if _hashes(files) != hashes:
                raise RuntimeError("sources changed while their kernels were compiled")
            names = sorted(library.symbol(text) for text in texts)
            parts = [f"{name}.o" for name in names]
            subprocess.run(["cc", *LINKED, "-o", path.resolve(), *parts], cwd=objects, check=True)
        _require_sound(path, names)
        sums[level] = hashlib.sha256(path.read_bytes()).hexdigest()
    index = {"version": __version__, "levels": sums, "sources": hashes}
    (folder / library.INDEX).write_text(json.dumps(index, indent=1) + "\n", encoding="utf-8")


def _hashes(files: Iterable[Path]) -> dict[str, str]:
    return {file.relative_to(PACKAGE).as_posix(): source_hash(file) for file in files}


PYTHONS = ("matchwood.gate.networkx.cpu:",)
"""Kernels that call functions of Python by address, which are not the same in all its versions."""

READERS = ("matchwood.primitives.", "matchwood.components.strong.condensation.")
"""Kernels that meet indices of 64 bits in small graphs too, before these are made narrow."""


def packed() -> list[str]:
    """What comes compiled: the list without PYTHONS, and without kernels for graphs of more than
    2^31 vertices or entries, which take longer to read than to compile for."""
    return sorted(text for text in listed() if not text[2:].startswith(PYTHONS) and _is_met(text))


def _is_met(text: str) -> bool:
    """Whether a kernel is for graphs that have their indices in 32 bits, or for none."""
    name, *kinds = json.loads(text)
    fields = zip(inspect.signature(found(name).py_func).parameters, kinds, strict=True)
    wide = ("indices", "int64 1C"), ("indices", "uint64 1C")
    return name.startswith(READERS) or not any(
        part in wide for field, kind in fields for part in _parts(field, kind)
    )


def _parts(field: str, kind: Any) -> Iterator[tuple[str, str]]:
    """Names and types of what an argument consists of."""
    if isinstance(kind, str):
        yield field, kind
        return
    place, *items = kind
    names = found(place)._fields if place else [field] * len(items)
    for name, item in zip(names, items, strict=True):
        yield from _parts(name, item)


def _require_sound(path: Path, names: list[str]) -> None:
    """Raise unless a library has these entries, and asks for nothing that it may not ask for."""
    seen = subprocess.run(
        ["nm", "-D", "--format=posix", path], check=True, capture_output=True, text=True
    )
    parts = [line.split() for line in seen.stdout.splitlines()]
    asked = {name.partition("@")[0] for name, kind, *_ in parts if kind in "Uw"}
    given = {name for name, kind, *_ in parts if kind == "T"}
    if asked - OUTSIDE or given != set(names):
        raise RuntimeError(
            f"{path} asks for {sorted(asked - OUTSIDE)}, lacks {sorted(set(names) - given)[:3]} "
            f"and has {sorted(given - set(names))[:3]} besides"
        )


# The wheel, written here: two builds of it have the same bytes

TIME = (1980, 1, 1, 0, 0, 0)  # the first that a zip file can have


def wheel(folder: Path, built: Path) -> Path:
    """Pack a folder of libraries; returns the path of the wheel."""
    machine = platform.machine()
    tags = [f"py3-none-{system}_{machine}" for system in ("manylinux_2_17", "musllinux_1_1")]
    platforms = ".".join(tag.rpartition("-")[2] for tag in tags)
    path = folder / f"{library.FOLDER}-{__version__}-py3-none-{platforms}.whl"
    info = f"{library.FOLDER}-{__version__}.dist-info"
    contents = {
        f"{library.FOLDER}/{file.name}": file.read_bytes() for file in sorted(built.iterdir())
    }
    contents[f"{info}/METADATA"] = METADATA.format(version=__version__).encode()
    contents[f"{info}/WHEEL"] = "\n".join(
        ["Wheel-Version: 1.0", "Generator: matchwood", "Root-Is-Purelib: false"]
        + [f"Tag: {tag}" for tag in tags]
        + [""]
    ).encode()
    record = "".join(
        f"{name},sha256={_in_base64(content)},{len(content)}\n"
        for name, content in contents.items()
    )
    contents[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            entry = zipfile.ZipInfo(name, TIME)
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return path


METADATA = """Metadata-Version: 2.1
Name: matchwood-kernels
Version: {version}
Summary: The kernels of matchwood {version}, compiled
License: BSD-3-Clause
"""


def _in_base64(content: bytes) -> str:
    digest = hashlib.sha256(content).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog=f"python -m {__spec__.name}", description=__doc__)
    parser.add_argument("what", choices=("build", "wheel", "serve"))
    parser.add_argument("folder", type=Path, nargs="?")
    all_levels = tuple(library.LEVELS.get(platform.machine(), ()))
    parser.add_argument("--level", action="append", choices=(*all_levels, "own"))
    parser.add_argument("--workers", type=int)
    given = parser.parse_intermixed_args(arguments)
    best = next(iter(library.levels()), "own")
    wanted = [best if level == "own" else level for level in given.level or all_levels]
    if "own" in wanted:
        parser.error(f"this processor has none of the levels {', '.join(all_levels)}")
    if given.what == "serve":
        serve(given.folder)
    elif given.folder is None:
        parser.error("a folder is needed")
    elif given.what == "build":
        build(given.folder, wanted, given.workers)
    else:
        with tempfile.TemporaryDirectory() as built:
            build(Path(built), wanted, given.workers)
            print(wheel(given.folder, Path(built)))  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
