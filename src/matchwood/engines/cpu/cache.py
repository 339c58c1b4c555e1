"""Where machine code is kept between processes, and which files may be loaded.

Loading compiled code means running it, so no file is loaded that another user could have written:

- the folder belongs to this user, and no other user may write in it;
- the same holds for every folder above it, but these may also belong to the system (root), and a
  shared one may be sticky, as /tmp is: there a user cannot replace files of other users;
- a file is opened without following a link, and is a regular file of this user that no other user
  may write.  The open file is checked, not its name, which could change in between.

Where that does not hold, kernels are compiled in every process, and a warning says why.  Folders
are made for this user alone (0700).  On systems whose files have no owners, as on Windows, these
checks are left out.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import stat
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

from matchwood._version import __version__

OWNED = hasattr(os, "geteuid")  # files have owners on this system
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
LARGEST = 64 * 2**20  # bytes of a file; the code of the largest kernels takes 0.3 MB
LOCKS = "being-compiled"  # a file; which bytes of it are locked says what is compiled now
MOST_LINKS = 40  # links followed on the way to a folder, the limit of Linux
_DIGEST = hashlib.sha256().digest_size
# O_NONBLOCK: opening a FIFO would otherwise wait for a writer.
_FLAGS = os.O_RDONLY | sum(
    getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY")
)


class Distrusted(Exception):
    """Another user could have put code there; the message says what is wrong and where."""


def user_cache() -> Path | None:
    """Folder for compiled code: MATCHWOOD_CACHE_DIR, else the user's cache folder.

    None where the user has no home.  A home or XDG_CACHE_HOME that is not absolute is ignored (as
    the XDG specification asks): it would depend on the folder where the program was started.
    """
    chosen = os.environ.get("MATCHWOOD_CACHE_DIR")
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or tempfile.gettempdir()) / "matchwood"
    shared = os.environ.get("XDG_CACHE_HOME", "")
    if sys.platform != "darwin" and os.path.isabs(shared):
        return Path(shared) / "matchwood"
    home = os.environ.get("HOME") or _home_of_account()
    if home is None or not os.path.isabs(home):
        return None
    inside = ("Library", "Caches") if sys.platform == "darwin" else (".cache",)
    return Path(home, *inside, "matchwood")


def _home_of_account() -> str | None:
    """The home from the system's list of accounts; in containers a user may not be listed."""
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_dir
    except (ImportError, KeyError):
        return None


@functools.cache
def cache_folder() -> Path | None:
    """Where this version keeps its code; None when there is no folder of this user alone.

    Searched once per process.  A warning says why there is none.
    """
    reason = "no folder can be written"
    for base in (user_cache, _temporary):
        try:
            found = base()
            if found is not None:
                return _prepared(Path(os.path.abspath(found)) / __version__)
        except OSError:
            continue
        except Distrusted as error:
            reason = str(error)
            break  # taking another folder would hide the problem
    warnings.warn(
        f"matchwood compiles its kernels again in every process: {reason}. "
        "MATCHWOOD_CACHE_DIR names another folder",
        RuntimeWarning,
        stacklevel=2,
    )
    return None


def _temporary() -> Path:
    user = os.geteuid() if OWNED else 0
    return Path(tempfile.gettempdir()) / f"matchwood-{user}"


def _prepared(folder: Path) -> Path:
    """The folder, made if it is missing; an error unless only this user can write in it."""
    missing = []
    place = folder
    while not os.path.lexists(place):
        missing.append(place)
        place = place.parent
    if OWNED:
        _require_trusted(place)  # before anything is made in it
    for path in reversed(missing):
        with contextlib.suppress(FileExistsError):  # another process made it at the same time
            os.mkdir(path, 0o700)
    if OWNED:
        _require_trusted(folder)
        # checked again now that they exist; the folder above that of the version counts as well
        for path in (folder, folder.parent):
            _require_own(os.path.realpath(path))
    with tempfile.TemporaryFile(dir=folder):
        return folder


def _require_own(path: str) -> None:
    found = os.stat(path)
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(path)
    if found.st_uid != os.geteuid():
        raise Distrusted(f"{path} belongs to user {found.st_uid}, not to {os.geteuid()}")
    if found.st_mode & OTHERS_WRITE:
        raise Distrusted(
            f"others may write in {path}: empty it and make it yours alone (chmod go-w)"
        )


def _require_trusted(path: Path) -> None:
    """Raise unless only this user and root can change what is found at `path`.

    Goes from the root through every link, and checks each folder on the way.
    """
    waiting = list(reversed(path.parts[1:]))
    here, links = path.anchor, 0
    _require_safe(here, os.lstat(here))
    while waiting:
        name = waiting.pop()
        if name == "..":  # from a link; relative to the current folder, as the system reads it
            here = os.path.dirname(here)
            continue
        here = os.path.join(here, name)
        found = os.lstat(here)
        if not stat.S_ISLNK(found.st_mode):
            _require_safe(here, found)
            continue
        if found.st_uid not in {os.geteuid(), *_system()}:
            raise Distrusted(f"the link {here} belongs to user {found.st_uid}")
        links += 1
        if links > MOST_LINKS:
            raise OSError(f"{path}: too many links")
        target = Path(os.readlink(here))
        waiting += [part for part in reversed(target.parts) if part != target.anchor]
        here = target.anchor or os.path.dirname(here)


def _require_safe(path: str, found: os.stat_result) -> None:
    """Raise where others could replace what is in a folder, or the folder is another user's."""
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(path)
    if found.st_uid not in {os.geteuid(), *_system()}:
        raise Distrusted(f"{path} belongs to user {found.st_uid}, not to {os.geteuid()}")
    if found.st_mode & OTHERS_WRITE and not found.st_mode & stat.S_ISVTX:
        raise Distrusted(f"others may write in {path}, and so replace what is in it")


@functools.cache
def _system() -> frozenset[int]:
    """The users that own the system's folders: root.

    In a user namespace without root (rootless containers of clusters) all users that the namespace
    does not know appear under one number, and so do root's folders.
    """
    try:
        known = [line.split() for line in Path("/proc/self/uid_map").read_text().splitlines()]
        if any(int(first) == 0 for first, _, _ in known):
            return frozenset({0})
        return frozenset({0, int(Path("/proc/sys/kernel/overflowuid").read_text())})
    except (OSError, ValueError):
        return frozenset({0})


def load(path: Path) -> bytes | None:
    """What `save` wrote there; None when it is missing, damaged, or not this user's alone."""
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError:
        return None
    try:
        with open(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST:
                return None
            if OWNED and (found.st_uid != os.geteuid() or found.st_mode & OTHERS_WRITE):
                return None
            content = file.read(found.st_size)  # Python takes that much memory at once
    except OSError:
        return None
    code = content[_DIGEST:]
    return code if content[:_DIGEST] == hashlib.sha256(code).digest() else None


@contextlib.contextmanager
def alone(path: Path) -> Iterator[None]:
    """Within, no other process makes what belongs there; one that wants it waits, and finds it.

    One byte of one file stands for each path.  Where files cannot be locked, nobody waits.
    """
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError, ImportError):
            import fcntl

            flags = os.O_RDWR | os.O_CREAT | _FLAGS
            file = stack.enter_context(open(os.open(path.parent / LOCKS, flags, 0o600), "rb+"))
            byte = int.from_bytes(hashlib.sha256(path.name.encode()).digest()[:4], "big") >> 1
            fcntl.lockf(file, fcntl.LOCK_EX, 1, byte)
        yield


def save(path: Path, code: bytes) -> None:
    """Write the code there, all of it or nothing; a file that cannot be written is no error."""
    if len(code) > LARGEST - _DIGEST:
        return
    with contextlib.suppress(OSError):
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix="unfinished-")  # 0600
        try:
            with open(descriptor, "wb") as file:
                file.write(hashlib.sha256(code).digest() + code)
            os.replace(name, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
