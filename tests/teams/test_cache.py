"""Compiled code: kept, shared between processes, and never served when the sources changed."""

from __future__ import annotations

import itertools
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from forked import forked_script
from matchwood._version import __version__
from matchwood.engines.cpu import cache, compiled, crew, jit
from support import SOURCES, run_script

HELPER = """
from matchwood.engines.cpu import device

FACTOR = 1

@device
def scaled(x):
    return FACTOR * x
"""

CALLER = """
import numpy as np
from matchwood.probe.cpu_helper import scaled
from matchwood.engines.cpu import atomic_add, barrier, code, crew, kernel, share

@kernel
def add_up(team, n, out):
    lo, hi = share(team, n)
    for i in range(lo, hi):
        atomic_add(out, 0, scaled(np.int64(1)))
    if barrier(team):
        return

def run(n=1000):
    out = np.zeros(1, np.int64)
    crew(2, work=10**9).run(add_up, n, out)
    return int(out[0]), code.origins["matchwood.probe.cpu_caller.add_up: cache"]
"""

SCRIPT = "from matchwood.probe.cpu_caller import run\nprint(*run())"


@compiled.kernel
def nothing(team):
    """Run by a team, it makes the engine compile what its members wait in."""


def keep_mailboxes(folder):
    """What members wait in is compiled for this process, and the same in all with these sources.

    It is no matter of these tests, and would take most of the time of twenty processes.
    """
    crew(2, work=10**9).run(nothing)
    place = folder / __version__
    place.mkdir(0o700, parents=True)
    folder.chmod(0o700)
    for name in ("native", "mailboxes"):
        for path in cache.cache_folder().glob(f"matchwood.engines.cpu.{name}.*.code"):
            shutil.copy(path, place)


@pytest.fixture
def package(tmp_path):
    """A copy of the package with a kernel and, in another file, the helper it calls."""
    keep_mailboxes(tmp_path / "cache")
    root = tmp_path / "copy"
    shutil.copytree(SOURCES / "matchwood", root / "matchwood")  # with bytecode, which fits its age
    probe = root / "matchwood" / "probe"
    probe.mkdir()
    write(probe / "__init__.py", "")
    write(probe / "cpu_helper.py", HELPER)
    write(probe / "cpu_caller.py", CALLER)
    return root


def result(package, script=SCRIPT, **extra):
    """(answer, times the cache was used) of a fresh process."""
    folder = package.parent
    extra.setdefault("MATCHWOOD_CACHE_DIR", str(folder / "cache"))
    return tuple(map(int, forked_script(folder, script, sources=package, **extra).split()))


ages = itertools.count(1_600_000_000, 2)


def write(path: Path, text: str) -> None:
    """Python takes bytecode of a file of this size and second for that of the file."""
    path.write_text(text)
    os.utime(path, (next(ages),) * 2)


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    write(path, text.replace(old, new))


@pytest.mark.slow
def test_a_changed_helper_in_another_file_is_never_served_stale(package):
    assert result(package) == (1000, 0)
    assert result(package) == (1000, 1)  # so the cache is in use
    edit(package / "matchwood/probe/cpu_helper.py", "FACTOR = 1", "FACTOR = 2")
    assert result(package) == (2000, 0)
    assert result(package) == (2000, 1)
    edit(package / "matchwood/probe/cpu_helper.py", "FACTOR = 2", "FACTOR = 1")
    assert result(package) == (1000, 1)  # back to sources that were compiled before


@pytest.mark.slow
def test_a_helper_that_changes_after_its_import_is_never_kept_as_what_it_is_now(package):
    """Its code is that of the process, for its hash then; the next process has the new file's."""
    before = """
    from pathlib import Path
    from matchwood.probe import cpu_helper
    from matchwood.probe.cpu_caller import run
    path = Path(cpu_helper.__file__)
    path.write_text(path.read_text().replace("FACTOR = 1", "FACTOR = 2"))
    print(*run())
    """
    assert result(package, before) == (1000, 0)
    assert result(package) == (2000, 0)


@pytest.mark.slow
def test_a_changed_helper_of_the_engine_is_never_served_stale(package):
    assert result(package) == (1000, 0)
    edit(
        package / "matchwood/engines/cpu/team.py",
        "    each, rest = n // team.size, n % team.size\n",
        "    if n > 0:\n        return 0, n\n    each, rest = n // team.size, n % team.size\n",
    )
    assert result(package) == (2000, 0)  # both members now take all of it


@pytest.mark.slow
def test_a_changed_constant_in_a_file_without_kernels_is_never_served_stale(package):
    page = package / "matchwood/probe/page.py"
    write(page, "FACTOR = 1\n")
    edit(
        package / "matchwood/probe/cpu_helper.py",
        "FACTOR = 1\n",
        "from matchwood.probe.page import FACTOR\n",
    )
    assert result(package) == (1000, 0)
    write(page, "FACTOR = 3\n")
    assert result(package) == (3000, 0)


@pytest.mark.slow
def test_only_files_that_the_kernel_imports_count(package):
    assert result(package) == (1000, 0)
    (package / "matchwood/probe/cpu_unused.py").write_text("UNUSED = 1\n")
    assert result(package) == (1000, 1)


@pytest.mark.parametrize(
    "decorator", [compiled.kernel, compiled.device, compiled.expanded, compiled.inlined]
)
def test_a_kernel_in_a_file_that_is_not_hashed_is_refused(decorator):
    namespace = {}
    path = str(compiled.PACKAGE / "traversal" / "quick.py")
    exec(compile("def f(team):\n    pass\n", path, "exec"), namespace)
    with pytest.raises(RuntimeError, match=r"f: kernels live in cpu\.py.*quick\.py is nei"):
        decorator(namespace["f"])


def test_only_kernels_can_call_what_is_compiled_into_them():
    """Numba would enter at no address."""

    @compiled.device
    def twice(x):
        return 2 * x

    @compiled.kernel
    def double(team, x):
        x[0] = twice(x[0])

    x = np.ones(1, np.int64)
    for expected in (2, 4):  # not compiled yet, and then compiled for the kernel
        with pytest.raises(TypeError, match="twice: only kernels can call this function"):
            twice(x[0])
        crew(1, work=1).run(double, x)
        assert x[0] == expected


@pytest.mark.slow
def test_code_that_is_kept_needs_no_compiler(tmp_path):
    """A process that finds its code in the cache imports LLVM and not Numba."""
    script = """
    import sys
    import numpy as np
    from matchwood.primitives.compact import compact
    for threads in (1, 2):
        assert compact(np.arange(5) > 2, threads=threads).tolist() == [3, 4]
    for _ in range(20):
        compact(np.arange(5) > 2, threads=2)
    print("numba" in sys.modules, "llvmlite" in sys.modules)
    """
    folder = {"MATCHWOOD_CACHE_DIR": str(tmp_path / "cache"), "MATCHWOOD_KERNELS": "off"}
    assert run_script(tmp_path, script, **folder).split() == ["True", "True"]
    assert run_script(tmp_path, script, **folder).split() == ["False", "True"]


def test_a_function_that_is_not_linked_is_an_error(monkeypatch):
    """LLVM would call address 0."""

    @compiled.device
    def one_more(x):
        return x + 1

    @compiled.kernel
    def add(team, x):
        x[0] = one_more(x[0])

    monkeypatch.setattr(jit, "_reached", lambda library: [])
    with pytest.raises(AssertionError, match=r"one_more.* is not linked"):
        crew(1, work=1).run(add, np.zeros(1))


@pytest.mark.slow
def test_a_damaged_file_costs_a_compilation_and_no_more(package):
    assert result(package) == (1000, 0)
    for damage in ("cut", "empty", "changed"):
        (path,) = (package.parent / "cache").rglob("matchwood.probe.*.code")
        content = path.read_bytes()
        half = len(content) // 2
        path.write_bytes(
            {
                "cut": content[:half],
                "empty": b"",
                "changed": content[:half] + bytes([content[half] ^ 1]) + content[half + 1 :],
            }[damage]
        )
        assert result(package) == (1000, 0)
    assert result(package) == (1000, 1)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_processes_that_compile_at_the_same_time_do_not_disturb_each_other(package):
    """Different signatures of one kernel, saved together, must not end up as each other's."""
    script = """
    import os
    import numpy as np
    from matchwood.probe.cpu_caller import add_up
    from matchwood.engines.cpu import crew

    def work(kind, count):
        out = np.zeros(1, kind)
        crew(2, work=10**9).run(add_up, np.dtype(count).type(1000), out)
        os._exit(0 if out[0] == 1000 else 1)

    kinds = [(out, n) for out in ("int64", "uint64") for n in ("int32", "int64")]
    together = []
    for kind in kinds:
        together.append(os.fork())
        if together[-1] == 0:
            work(*kind)
    print(*(os.waitpid(child, 0)[1] for child in together))
    """
    assert result(package, script) == (0, 0, 0, 0)
    assert len(list((package.parent / "cache").rglob("matchwood.probe.*.code"))) == 4


@pytest.mark.slow
def test_without_a_folder_to_write_everything_still_works(package):
    """A cache folder that cannot be made: below a file."""
    (package.parent / "file").write_text("")
    nowhere = str(package.parent / "file" / "cache")
    temporary = package.parent / "temporary"
    keep_mailboxes(temporary / cache._temporary().name)
    for hits in (0, 1):  # the folder for temporary files serves instead
        found = result(package, MATCHWOOD_CACHE_DIR=nowhere, TMPDIR=str(temporary))
        assert found == (1000, hits)
    blocked = (
        "import warnings\nwarnings.simplefilter('ignore')\n"
        "from matchwood.engines.cpu import cache\ncache._temporary = lambda: None\n"
        "from matchwood.probe.cpu_caller import run\nassert cache.cache_folder() is None\n"
        "print(*run())"
    )
    for _ in range(2):  # and with no folder at all, each process compiles
        assert result(package, blocked, MATCHWOOD_CACHE_DIR=nowhere) == (1000, 0)


def test_functions_from_elsewhere_are_not_kept_in_the_cache():
    """A function that a user passes may change without our seeing it."""

    def outside(x):
        return x

    assert compiled.name_of(compiled.device(outside)) is None
    assert compiled.described(compiled.device(outside)) is None
    assert compiled.described(3) == "int64"
    from matchwood.engines.cpu import barrier

    assert compiled.name_of(barrier) == "matchwood.engines.cpu.team:barrier"
