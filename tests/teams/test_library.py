"""Kernels that come compiled: used where all is as it was built, and compiled anew otherwise."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import json
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from matchwood.engines.cpu import library
from matchwood.machine import kernels
from support import SOURCES, environment, run_script
from teams.test_cache import CALLER, HELPER

pytestmark = pytest.mark.skipif(
    not library.levels() or shutil.which("cc") is None or shutil.which("nm") is None,
    reason="libraries are made on Linux, with a C compiler",
)

SCRIPT = """
import sys
{before}
from matchwood.engines.cpu import code, crew
from matchwood.probe.cpu_caller import run
for _ in range(2):
    answer, _ = run()
(origin,) = (o.split()[1] for o in code.origins if "add_up" in o)
print(answer, origin, "numba" in sys.modules)
"""

USED, COMPILED = "1000 library False", "1000 compiled True"

TEAM = ["matchwood.engines.cpu.team:Team", "int64", "int64", "int64 1C"]
WORDS = {"fill": 3, "run": 5, "start": 5, "attend": 2, "call": 2, "wait": 2, "cancel": 3}
LIST = [
    ["matchwood.probe.cpu_caller:add_up", TEAM, "int64", "int64 1C"],
    *[[f"matchwood.engines.cpu.mailboxes:{name}", *["int64"] * n] for name, n in WORDS.items()],
]


def built(root, folder, *arguments):
    """Let the package in `root` build its libraries."""
    command = [sys.executable, "-m", "matchwood.machine.kernels", "build", str(folder)]
    subprocess.run([*command, *arguments], env=environment(root), check=True, timeout=600)


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A copy of the package with a kernel, the helper that it calls, and a library of both."""
    root = tmp_path_factory.mktemp("library") / "copy"
    shutil.copytree(SOURCES / "matchwood", root / "matchwood")
    probe = root / "matchwood" / "probe"
    probe.mkdir()
    (probe / "__init__.py").write_text("")
    (probe / "cpu_helper.py").write_text(HELPER)
    (probe / "cpu_caller.py").write_text(CALLER)
    (root / "matchwood" / "machine" / "kernels.json").write_text(json.dumps(LIST))
    built(root, root / library.FOLDER)
    return root


def result(package, before="", **extra):
    """What a process with an empty cache finds: answer, origin of the code, whether Numba is in."""
    shutil.rmtree(package.parent / "cache", ignore_errors=True)
    extra.setdefault("MATCHWOOD_CACHE_DIR", str(package.parent / "cache"))
    text = SCRIPT.replace("{before}", before)
    return run_script(package.parent, text, sources=package, **extra)


@contextlib.contextmanager
def changed(path, content):
    before = path.read_bytes()
    path.write_bytes(content)
    try:
        yield
    finally:
        path.write_bytes(before)


def library_of(package):
    (level, *_) = library.levels()
    return package / library.FOLDER / f"{level}.so"


@pytest.mark.slow
def test_every_level_that_this_processor_has(package):
    levels = list(library.levels())
    for k, level in enumerate(levels):
        worse = f"from matchwood.engines.cpu import library\nfound = library.levels()\n\
library.levels = lambda: dict(list(found.items())[{k}:])"
        assert result(package, worse) == USED, level


@pytest.mark.slow
def test_calls_go_straight_to_their_addresses(package):
    """The code that LLVM makes for JIT loads them first; on x86-64 in sections of other names."""
    assert b".ltext" not in library_of(package).read_bytes()


@pytest.mark.slow
def test_two_builds_have_the_same_bytes(package, tmp_path):
    built(package, tmp_path / "again", "--workers", "1")
    for path in (package / library.FOLDER).iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes()


@pytest.mark.slow
def test_the_level_of_this_processor_alone(package, tmp_path):
    built(package, tmp_path / "own", "--level", "own")
    assert {path.name for path in (tmp_path / "own").glob("*.so")} == {library_of(package).name}
    assert (tmp_path / "own" / library_of(package).name).read_bytes() == library_of(
        package
    ).read_bytes()


@pytest.mark.slow
def test_a_wheel_has_all_of_it_and_the_same_bytes(package, tmp_path):
    script = f"""
    from pathlib import Path
    from matchwood.machine import kernels
    for name in "ab":
        print(kernels.wheel(Path({str(tmp_path)!r}, name), Path({str(package / library.FOLDER)!r})))
    """
    one, other = run_script(tmp_path, script, sources=package).split()
    assert Path(one).read_bytes() == Path(other).read_bytes()
    target = tmp_path / "target"
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target"]
    subprocess.run([*install, str(target), one], check=True, timeout=120)
    for path in (package / library.FOLDER).iterdir():
        assert path.read_bytes() == (target / library.FOLDER / path.name).read_bytes()


@pytest.mark.slow
def test_a_constant_two_imports_away(package):
    """The answer follows, and other kernels still come from the library."""
    helper = package / "matchwood/probe/cpu_helper.py"
    with changed(helper, HELPER.replace("FACTOR = 1", "FACTOR = 2").encode()):
        assert result(package) == "2000 compiled True"
    assert result(package) == USED


@pytest.mark.slow
def test_a_library_that_is_not_what_the_index_says(package):
    path = library_of(package)
    content = path.read_bytes()
    half = len(content) // 2
    for other in (
        content[:half],
        b"",
        content[:half] + bytes([content[half] ^ 1]) + content[half + 1 :],
        *{p.read_bytes() for p in path.parent.glob("*.so")} - {content},
    ):
        with changed(path, other):
            assert result(package) == COMPILED


@pytest.mark.slow
def test_an_index_that_is_not_right(package):
    path = package / library.FOLDER / library.INDEX
    index = json.loads(path.read_bytes())
    hashes = dict.fromkeys(index["sources"], "0" * 64)
    for wrong in (
        json.dumps({**index, "version": "99"}).encode(),
        json.dumps({**index, "sources": hashes}).encode(),  # a newer library, older sources
        json.dumps({**index, "levels": {}}).encode(),
        json.dumps({**index, "levels": 3}).encode(),
        b"[]",
        b"{",
        b"",
    ):
        with changed(path, wrong):
            assert result(package) == COMPILED


@pytest.mark.slow
@pytest.mark.parametrize("name", ["MATCHWOOD_KERNELS", "NUMBA_OPT", "NUMBA_BOUNDSCHECK"])
def test_what_turns_it_off(package, name):
    value = {"MATCHWOOD_KERNELS": "off"}.get(name, "1")
    assert result(package, **{name: value}) == COMPILED


@pytest.mark.slow
def test_settings_of_numba_for_a_folder(package):
    script = "import os, pathlib\nos.chdir(sys.argv[0].rpartition('/')[0])\n"
    settings = package.parent / library.CONFIG_FILE
    settings.write_text("opt: 2\n")
    try:
        assert result(package, script) == COMPILED
    finally:
        settings.unlink()


@pytest.mark.slow
def test_nothing_else_names_a_library(package, tmp_path):
    """Neither the current folder nor the path of imports: only where the package is installed."""
    away = tmp_path / library.FOLDER
    shutil.move(package / library.FOLDER, away)
    try:
        script = f"import os\nos.chdir({str(tmp_path)!r})\nsys.path.insert(0, {str(tmp_path)!r})"
        assert result(package, script, PYTHONPATH=f"{package}:{tmp_path}") == COMPILED
    finally:
        shutil.move(away, package / library.FOLDER)


@pytest.mark.slow
@pytest.mark.parametrize(
    "before",
    [
        "import platform; platform.machine = lambda: 'riscv64'",
        "import types\nfrom matchwood.engines.cpu import library\n"
        "library.sys = types.SimpleNamespace(platform='plan9', byteorder='little')",
        "import ctypes\nfrom matchwood.engines.cpu import library\n"
        "library._abilities = set\nlibrary.LEVELS[library.platform.machine()].popitem()",
        "from matchwood.engines.cpu import library\nclass Refused:\n"
        "    def CDLL(self, path):\n        raise OSError('failed to map segment')\n"
        "library.ctypes = Refused()\nlibrary._abilities = lambda: set('lse')",
    ],
    ids=["another machine", "another system", "a processor below all levels", "noexec"],
)
def test_where_no_library_can_be_used(package, before):
    if "noexec" in before or "Refused" in before:
        before = before.replace("set('lse')", f"set({sorted(library._abilities())!r})")
    assert result(package, before).split()[:2] == ["1000", "compiled"]


@pytest.mark.slow
def test_forks_before_and_after_it_is_loaded(package):
    script = """
    import os
    from matchwood.probe.cpu_caller import run
    from matchwood.engines.cpu import library
    def child():
        pid = os.fork()
        if pid == 0:
            os._exit(0 if run()[0] == 1000 and library.opened()[0] is not None else 1)
        return os.waitpid(pid, 0)[1]
    print(child(), run()[0], child())
    """
    assert run_script(package.parent, script, sources=package) == "0 1000 0"


@pytest.mark.slow
def test_a_signature_that_is_not_in_it_is_compiled(package):
    script = """
    import numpy as np
    from matchwood.engines.cpu import code, crew
    from matchwood.probe.cpu_caller import add_up
    out = np.zeros(1, np.uint64)
    crew(2, work=10**9).run(add_up, 1000, out)
    print(out[0], [o.split()[1] for o in code.origins if "add_up" in o])
    """
    extra = {"MATCHWOOD_CACHE_DIR": str(package.parent / "another")}
    assert run_script(package.parent, script, sources=package, **extra) == "1000 ['compiled']"


@pytest.mark.slow
def test_config_says_where_kernels_come_from(package):
    script = "import matchwood\nprint(matchwood.show_config('dicts')['kernels'])"
    found = eval(run_script(package.parent, script, sources=package))
    assert found["library"] == str(library_of(package))
    assert found["changed"] == []
    helper = package / "matchwood/probe/cpu_helper.py"
    with changed(helper, HELPER.replace("FACTOR = 1", "FACTOR = 2").encode()):
        found = eval(run_script(package.parent, script, sources=package))
        assert found["changed"] == ["probe/cpu_caller.py"]
    script = script.replace("['kernels']", "['kernels']['reason']")
    off = run_script(package.parent, script, sources=package, MATCHWOOD_KERNELS="off")
    assert off == "MATCHWOOD_KERNELS is off"


@pytest.mark.slow
def test_a_build_refuses_symbols_from_elsewhere(package, tmp_path):
    """A library that asked for Python's functions would run with one version of it."""
    script = f"""
    from pathlib import Path
    from matchwood.machine import kernels
    kernels.OUTSIDE = set()
    kernels.build(Path({str(tmp_path)!r}), ["{library_of(package).stem}"])
    """
    with pytest.raises(AssertionError, match=r"asks for .*'syscall'"):
        run_script(tmp_path, script, sources=package)


def test_a_build_refuses_sources_that_change_meanwhile(tmp_path, monkeypatch):
    def edited(*_, **__):
        monkeypatch.setattr(kernels, "source_hash", lambda file: "another")

    signature = json.dumps(LIST[-1], separators=(",", ":"))
    monkeypatch.setattr(kernels, "listed", lambda: {signature})
    monkeypatch.setattr(kernels, "compiled", edited)
    with pytest.raises(RuntimeError, match="changed while"):
        kernels.build(tmp_path, [next(iter(library.levels()))])


def test_what_a_processor_must_have():
    for machine, levels in library.LEVELS.items():
        needs = [level.needs for level in levels.values()]
        assert all(more > less for more, less in itertools.pairwise(needs)), machine
    if platform.machine() == "aarch64":
        assert ctypes.CDLL(None).getauxval(library._CAPABILITIES) > 0


ANSWERS = """
import hashlib
import pickle
import sys
from matchwood.engines.cpu import library
found = library.levels()
library.levels = lambda: {name: level for name, level in found.items() if name == sys.argv[1]}
import matchwood as mw
for A in (mw.generators.rmat(10, weights="uniform", rng=1), abs(mw.generators.aniso(2, (30, 40)))):
    for threads in (1, 3):
        G = mw.graph(A)
        on = {"threads": threads}
        answers = [
            mw.bfs(G, 0, **on).parent, mw.connected_components(G, **on).labels,
            mw.strongly_connected_components(G, **on).labels, mw.weighted_matching(G, **on).mate,
            mw.minimum_spanning_forest(G, **on).edges, mw.degree_factor(G, 2, **on).neighbours,
            mw.linear_forest(G, **on).perm, mw.reverse_cuthill_mckee(G, **on),
            mw.rabbit_order(G, **on), mw.louvain(G, **on).labels, mw.pagerank(G, **on).scores,
            mw.tridiagonal.solve(*(A.data[k * 500 : (k + 1) * 500] for k in range(4)), **on),
        ]
        print(hashlib.sha256(pickle.dumps(answers)).hexdigest())
print(library.opened()[1] or sys.argv[1], file=sys.stderr)
"""


@pytest.mark.slow
@pytest.mark.skipif(library.opened()[0] is None, reason="matchwood-kernels is not installed")
def test_answers_are_the_same_at_every_level(tmp_path):
    assert library.opened()[0].changed() == []
    answers = {
        run_script(tmp_path, ANSWERS, level) for level in (*library.levels(), "none of them")
    }
    assert len(answers) == 1
