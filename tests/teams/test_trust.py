"""Which compiled code is loaded: loading means running, so only files no other user can write."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import warnings
from pathlib import Path

import pytest
from llvmlite import binding

from forked import forked_script
from matchwood._version import __version__
from matchwood.engines.cpu import cache

pytestmark = pytest.mark.skipif(not cache.OWNED, reason="no owners of files on this system")

STRANGER = 54321  # a user that is not us


@pytest.fixture(autouse=True)
def afresh(monkeypatch):
    """No folder found before, and a umask that hides nothing."""
    cache.cache_folder.cache_clear()
    before = os.umask(0)
    yield
    os.umask(before)
    cache.cache_folder.cache_clear()


def found(monkeypatch, base) -> tuple[Path | None, list[str]]:
    """The folder for a base in the environment, and the warnings on the way."""
    monkeypatch.setenv("MATCHWOOD_CACHE_DIR", str(base))
    cache.cache_folder.cache_clear()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        folder = cache.cache_folder()
        assert cache.cache_folder() == folder  # and not told a second time
    return folder, [str(one.message) for one in told]


def belongs_to_a_stranger(monkeypatch, path):
    """Make it look so: only root can give files away."""
    asked = os.stat(path)
    real_stat, real_lstat, real_fstat = os.stat, os.lstat, os.fstat

    def changed(real):
        def status(*args, **options):
            answer = real(*args, **options)
            if (answer.st_ino, answer.st_dev) != (asked.st_ino, asked.st_dev):
                return answer
            return os.stat_result([*answer[:4], STRANGER, *answer[5:]])

        return status

    for name, real in (("stat", real_stat), ("lstat", real_lstat), ("fstat", real_fstat)):
        monkeypatch.setattr(cache.os, name, changed(real))


def test_what_is_made_is_for_this_user_alone(tmp_path, monkeypatch):
    folder, told = found(monkeypatch, tmp_path / "a" / "b")
    assert (folder, told) == (tmp_path / "a" / "b" / __version__, [])
    for path in (tmp_path / "a", tmp_path / "a" / "b", folder):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    cache.save(folder / "code", b"code")
    assert stat.S_IMODE((folder / "code").stat().st_mode) == 0o600
    assert cache.load(folder / "code") == b"code"


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o757, 0o1777, 0o722])
def test_a_base_that_others_can_write_is_refused(tmp_path, monkeypatch, mode):
    """Sticky or not: in a base itself others must not add anything."""
    base = tmp_path / "base"
    base.mkdir(mode=0o700)
    base.chmod(mode)
    folder, (message,) = found(monkeypatch, base)
    assert folder is None
    assert message.startswith("matchwood compiles its kernels again in every process: others may ")
    assert str(base) in message


@pytest.mark.parametrize("which", ["", __version__])
def test_a_folder_of_somebody_else_is_refused(tmp_path, monkeypatch, which):
    base = tmp_path / "base"
    (base / __version__).mkdir(parents=True, mode=0o700)
    base.chmod(0o700)
    belongs_to_a_stranger(monkeypatch, base / which)
    folder, (message,) = found(monkeypatch, base)
    assert folder is None
    assert f"belongs to user {STRANGER}, not to {os.geteuid()}" in message


def test_the_folder_of_the_version_is_asked_too(tmp_path, monkeypatch):
    base = tmp_path / "base"
    base.mkdir(mode=0o700)
    (base / __version__).mkdir(mode=0o777)
    folder, (message,) = found(monkeypatch, base)
    assert folder is None
    assert str(base / __version__) in message


def test_a_parent_where_others_can_replace_the_base_is_refused(tmp_path, monkeypatch):
    shared = tmp_path / "shared"
    (shared / "base").mkdir(parents=True, mode=0o700)
    shared.chmod(0o777)
    folder, (message,) = found(monkeypatch, shared / "base")
    assert folder is None
    assert f"others may write in {shared}" in message
    shared.chmod(0o1777)  # as /tmp: others cannot touch what is ours
    assert found(monkeypatch, shared / "base") == (shared / "base" / __version__, [])
    shared.chmod(0o755)
    belongs_to_a_stranger(monkeypatch, shared)
    assert found(monkeypatch, shared / "base")[0] is None


def test_nothing_is_made_where_it_would_not_be_trusted(tmp_path, monkeypatch):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    assert found(monkeypatch, shared / "base")[0] is None
    assert list(shared.iterdir()) == []


def test_a_link_of_ours_is_followed_and_every_step_is_asked(tmp_path, monkeypatch):
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("real/../real")
    assert found(monkeypatch, tmp_path / "link")[0] == tmp_path / "link" / __version__
    # a link into a folder where others can change what the next link says
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    (shared / "next").symlink_to(tmp_path / "real")
    (tmp_path / "first").symlink_to(shared / "next")
    folder, (message,) = found(monkeypatch, tmp_path / "first")
    assert folder is None
    assert f"others may write in {shared}" in message
    (tmp_path / "round").symlink_to("round")
    assert found(monkeypatch, tmp_path / "round")[0] != tmp_path / "round" / __version__


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away"
)
def test_folders_files_and_links_that_really_are_somebody_elses(tmp_path, monkeypatch):
    base = tmp_path / "base"
    base.mkdir(mode=0o700)
    folder = found(monkeypatch, base)[0]
    cache.save(folder / "code", b"code")
    os.chown(folder / "code", STRANGER, STRANGER)
    assert cache.load(folder / "code") is None
    (tmp_path / "link").symlink_to(base)
    os.chown(tmp_path / "link", STRANGER, STRANGER, follow_symlinks=False)
    assert found(monkeypatch, tmp_path / "link")[0] is None
    os.chown(base, STRANGER, STRANGER)
    assert found(monkeypatch, base)[0] is None


def test_a_temporary_folder_that_others_can_write_is_not_trusted(tmp_path, monkeypatch):
    monkeypatch.setattr(cache.tempfile, "gettempdir", lambda: str(tmp_path))
    nowhere = tmp_path / "file"
    nowhere.write_text("")
    expected = tmp_path / f"matchwood-{os.geteuid()}"
    assert found(monkeypatch, nowhere / "below") == (expected / __version__, [])
    expected.chmod(0o777)
    folder, (message,) = found(monkeypatch, nowhere / "below")
    assert folder is None
    assert str(expected) in message
    (expected / __version__).rmdir()
    expected.rmdir()
    expected.write_text("")
    expected.chmod(0o600)
    folder, (message,) = found(monkeypatch, nowhere / "below")
    assert folder is None
    assert "no folder can be written" in message


# files


def spoil(path, kind):
    """Put something that is not ours alone, or no file, in the place of a file."""
    content = path.read_bytes()
    path.unlink()
    if kind == "link":
        path.with_name("elsewhere").write_bytes(content)
        path.with_name("elsewhere").chmod(0o600)
        path.symlink_to("elsewhere")
    elif kind == "fifo":
        os.mkfifo(path, 0o600)
    elif kind == "folder":
        path.mkdir()
    elif kind == "socket":
        import socket

        with socket.socket(socket.AF_UNIX) as made:
            here = os.getcwd()
            os.chdir(path.parent)  # the name of a socket must be short
            try:
                made.bind(path.name)
            finally:
                os.chdir(here)
    elif kind == "huge":
        with open(path, "wb") as file:
            file.truncate(2**40)
        path.chmod(0o600)
    else:
        path.write_bytes(content)
        path.chmod(int(kind, 8))


@pytest.mark.parametrize("kind", ["link", "fifo", "folder", "socket", "huge", "620", "602", "666"])
def test_a_file_that_is_not_ours_alone_is_not_read_and_is_replaced(tmp_path, kind):
    path = tmp_path / "code"
    cache.save(path, b"code")
    assert cache.load(path) == b"code"
    spoil(path, kind)
    assert cache.load(path) is None  # at once: a FIFO has no writer, a terabyte is not read
    cache.save(path, b"new")
    assert cache.load(path) == (None if kind == "folder" else b"new")
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith("unfinished")] == []


def test_damage_is_seen(tmp_path):
    path = tmp_path / "code"
    cache.save(path, b"code" * 100)
    whole = path.read_bytes()
    for at in range(0, len(whole), 37):
        for wrong in (whole[:at], whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]):
            path.write_bytes(wrong)
            assert cache.load(path) is None
    path.write_bytes(whole)
    assert cache.load(path) == b"code" * 100
    cache.save(path, b"")
    assert cache.load(path) == b""
    assert cache.load(tmp_path / "missing") is None
    cache.save(tmp_path / "missing" / "code", b"")  # nowhere to write: nothing happens


def test_too_much_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "LARGEST", 1000)
    cache.save(tmp_path / "code", bytes(1000 - cache._DIGEST))
    assert len(cache.load(tmp_path / "code")) == 1000 - cache._DIGEST
    cache.save(tmp_path / "code", bytes(1001 - cache._DIGEST))
    assert len(cache.load(tmp_path / "code")) == 1000 - cache._DIGEST


# where


def test_the_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("MATCHWOOD_CACHE_DIR", str(tmp_path))
    assert cache.user_cache() == tmp_path
    monkeypatch.delenv("MATCHWOOD_CACHE_DIR")
    monkeypatch.setenv("HOME", str(tmp_path))
    if sys.platform.startswith("linux"):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
        assert cache.user_cache() == tmp_path / "xdg" / "matchwood"
        for relative in ("", "xdg", "./xdg"):  # it would be in whatever folder we are
            monkeypatch.setenv("XDG_CACHE_HOME", relative)
            assert cache.user_cache() == tmp_path / ".cache" / "matchwood"
    monkeypatch.setenv("HOME", "home")
    assert cache.user_cache() is None


def test_a_user_without_a_home_or_an_account_has_a_cache(monkeypatch, tmp_path):
    def no_account(number):
        raise KeyError(number)

    import pwd

    for name in ("HOME", "XDG_CACHE_HOME", "MATCHWOOD_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", no_account)
    monkeypatch.setattr(cache.tempfile, "gettempdir", lambda: str(tmp_path))
    assert cache.user_cache() is None
    assert cache.cache_folder() == tmp_path / f"matchwood-{os.geteuid()}" / __version__


CALL = """
import warnings
import matchwood
import numpy as np
from matchwood.primitives.compact import compact
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    for threads in THREADS:
        v = compact(np.arange(5) > 2, threads=threads)
    compact(np.arange(5) > 2, np.arange(5))
told = [str(w.message) for w in told if w.category is RuntimeWarning]
print(v.tolist(), matchwood.show_config(mode="dicts")["cache"]["folder"] is None, len(told))
"""


def hostile(content: bytes) -> bytes:
    """Code under the same name that does nothing."""
    symbol = content[hashlib.sha256().digest_size :].partition(b"\0")[0]
    text = f'define i32 @"{symbol.decode()}"(i64* %x, i64 %y, i64* %z) {{\n  ret i32 0\n}}\n'
    machine = binding.Target.from_default_triple().create_target_machine(jit=True)
    code = symbol + b"\0" + machine.emit_object(binding.parse_assembly(text))
    return hashlib.sha256(code).digest() + code


@pytest.mark.slow
def test_code_that_others_could_have_written_is_not_run(tmp_path):
    """The attack: code of somebody else's in the place of ours.  A call works, and says once that
    it compiles in every process."""
    base = tmp_path / "base"
    variables = {"MATCHWOOD_CACHE_DIR": str(base), "MATCHWOOD_KERNELS": "off"}
    alone, team = CALL.replace("THREADS", "(1,)"), CALL.replace("THREADS", "(1, 2)")
    assert forked_script(tmp_path, alone, **variables) == "[3, 4] False 0"
    files = [path for path in base.rglob("*.code") if "mailboxes" not in path.name]
    assert files
    for path in files:
        path.write_bytes(hostile(path.read_bytes()))
    assert forked_script(tmp_path, alone, **variables) == "[] False 0"  # it would be run
    base.chmod(0o777)
    assert forked_script(tmp_path, team, **variables) == "[3, 4] True 1"
    base.chmod(0o700)
    for path in files:
        path.chmod(0o666)
    assert forked_script(tmp_path, alone, **variables) == "[3, 4] False 0"
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in files)  # made anew
