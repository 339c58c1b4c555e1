"""Whatever goes wrong: one line on stderr, exit code 2, no traceback; Ctrl-C is 130."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

import matchwood
from matchwood.cli import app, errors


def runner() -> CliRunner:
    """One that keeps stderr apart; old versions must be asked to."""
    try:
        return CliRunner(mix_stderr=False)
    except TypeError:
        return CliRunner()


WRONG_USE = {
    "unknown verb": ["juggle"],
    "unknown option": ["info", "path:5", "--colour"],
    "missing argument": ["bfs"],
    "threads no number": ["bfs", "path:5", "--threads", "many"],
    "threads zero": ["bfs", "path:5", "--threads", "0"],
    "no such file": ["info", "no/such/file.mtx"],
    "no such generator": ["components", "butterfly:5"],
    "generator without arguments": ["components", "rmat:"],
    "generator argument unknown": ["components", "path:5,color=3"],
    "generator argument out of range": ["components", "path:-5"],
    "fraction without refine": ["order", "path:5", "--method", "degree", "--fraction", "0.1"],
    "unknown engine": ["components", "path:5", "--engine", "steam"],
    "unknown method": ["components", "path:5", "--method", "guess"],
    "source out of range": ["bfs", "path:5", "-s", "7"],
    "source no number": ["bfs", "path:5", "-s", "first"],
    "negative limit": ["bfs", "path:5", "--depth-limit", "-1"],
    "result suffix": ["bfs", "path:5", "-o", "levels.doc"],
    "result folder": ["components", "path:5", "-o", "no/such/folder/x.npy"],
    "generate unknown": ["generate", "butterfly", "5"],
    "generate option without value": ["generate", "path", "--n"],
    "generate folder": ["generate", "path", "5", "-o", "no/such/folder/x.mtx"],
    "generate format": ["generate", "path", "5", "-o", "x.doc"],
    "convert format": ["convert", "path:5", "x.doc"],
    "bench unknown": ["bench", "sorting"],
    "bench folder": ["bench", "-g", "path:5", "-o", "no/such/folder/x.json"],
    "reading option unknown": ["info", "x.txt", "--read", "colour=red"],
    "reading option without value": ["info", "x.txt", "--read", "symmetric"],
    "demo size": ["demo", "--size", "huge"],
    "demo folder": ["demo", "-o", "no/such/folder/demo.html"],
}


def test_a_result_never_takes_the_place_of_its_input(tmp_path: Path) -> None:
    path = tmp_path / "edges.txt"
    path.write_text("0 1\n1 2\n")
    for words in (
        ("communities", path, "-o", path),
        ("order", path, "--permuted", path),
        ("coarsen", path, "--coarsest", path),
        ("solve", "path:3", path, "-o", path),
    ):
        result = runner().invoke(app, list(map(str, words)))
        assert result.exit_code == errors.ERROR
        assert "that is an input, which would be lost" in result.stderr
        assert path.read_text() == "0 1\n1 2\n"


@pytest.mark.parametrize("case", WRONG_USE, ids=lambda case: case.replace(" ", "-"))
def test_one_line_and_exit_code_2(case: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = runner().invoke(app, WRONG_USE[case])
    assert result.exit_code == errors.ERROR
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("matchwood: ")
    assert len(lines[0]) > len("matchwood: ") + 8
    assert list(tmp_path.iterdir()) == []


def test_a_bad_file_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.mtx"
    path.write_text("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 oops 1.0\n")
    result = runner().invoke(app, ["info", str(path)])
    assert result.exit_code == errors.ERROR
    assert "bad.mtx" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_rectangular_matrix_has_no_components(tmp_path: Path) -> None:
    path = tmp_path / "r.mtx"
    path.write_text("%%MatrixMarket matrix coordinate real general\n2 3 1\n1 3 1.0\n")
    result = runner().invoke(app, ["components", str(path)])
    assert result.exit_code == errors.ERROR
    assert "square" in result.stderr


def test_a_failed_check_is_an_error(monkeypatch) -> None:
    def refuse(*_args, **_options):
        raise matchwood.CheckFailed("vertex 3 has label 1\nbut should not")

    monkeypatch.setattr(matchwood.check, "check_connected_components", refuse)
    result = runner().invoke(app, ["components", "path:5", "--check"])
    assert result.exit_code == errors.ERROR
    assert result.stderr == "matchwood: vertex 3 has label 1 but should not\n"


def test_a_fault_of_ours_is_one_line_too(monkeypatch) -> None:
    def broken(*_args, **_options):
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(matchwood, "bfs", broken)
    result = runner().invoke(app, ["bfs", "path:5"])
    assert result.exit_code == errors.ERROR
    assert result.stderr == "matchwood: ZeroDivisionError: oh (MATCHWOOD_DEBUG=1 shows where)\n"
    monkeypatch.setenv("MATCHWOOD_DEBUG", "1")
    assert isinstance(runner().invoke(app, ["bfs", "path:5"]).exception, ZeroDivisionError)


def test_ctrl_c_is_one_line_and_130(monkeypatch) -> None:
    def interrupted(*_args, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(matchwood, "bfs", interrupted)
    result = runner().invoke(app, ["bfs", "path:5"])
    assert result.exit_code == errors.INTERRUPTED
    assert result.stderr.strip() == "matchwood: interrupted"


@pytest.mark.skipif(os.name == "nt", reason="signals differ on Windows")
def test_ctrl_c_for_real() -> None:
    """A process that is busy hears SIGINT."""
    source = (
        "import sys, time, matchwood.cli as cli\n"
        "from matchwood.cli import files\n"
        "def slow(*a, **o):\n"
        "    print('ready', flush=True)\n"
        "    time.sleep(60)\n"
        "files.load = slow\n"
        "sys.argv = ['matchwood', 'info', 'path:5']\n"
        "cli.main()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", source], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == errors.INTERRUPTED
    assert stderr.strip() == "matchwood: interrupted"


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts processes of a group")
def test_ctrl_c_ends_both_processes_of_a_demo(tmp_path: Path) -> None:
    """With an empty cache, so that there are two: interrupted when the first answer is there."""
    process = subprocess.Popen(
        [sys.executable, "-m", "matchwood.cli", "demo", "--size", "tiny", "-o", "demo.html"],
        env={**os.environ, "MATCHWOOD_CACHE_DIR": str(tmp_path / "cache")},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert "right: " in process.stdout.readline()
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == errors.INTERRUPTED
    assert stderr.strip() == "matchwood: interrupted"
    assert len(children) == (len(os.sched_getaffinity(0)) > 1)
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


def test_no_gpu_is_told() -> None:
    from matchwood import engines

    if engines.gpu_available():
        pytest.skip("there is a GPU")
    result = runner().invoke(app, ["components", "path:5", "--engine", "gpu"])
    assert result.exit_code == errors.ERROR
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="pipes differ on Windows")
def test_a_closed_pipe_is_quiet() -> None:
    command = f"{sys.executable} -m matchwood.cli bfs path:3000 --json | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=120)
    assert done.stderr == ""
    assert done.stdout == "{\n"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("a\n  b"), "a b"),
        (FileNotFoundError(2, "No such file", "x.mtx"), "x.mtx: No such file"),
        (matchwood.EngineUnavailable("no GPU"), "no GPU"),
        (matchwood.OutOfMemory("needs 3 bytes"), "needs 3 bytes"),
        (MemoryError(), "MemoryError"),
        (KeyError("x"), "KeyError: 'x' (MATCHWOOD_DEBUG=1 shows where)"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_a_line_says(error: BaseException, line: str) -> None:
    assert errors.one_line(error) == line


SHORT = {
    "solve": ["solve", "aniso:1,20x20", "--maxiter", "2"],
    "solve as JSON": ["solve", "aniso:1,20x20", "--maxiter", "2", "--json"],
    "pagerank": ["pagerank", "path:50", "--max-iterations", "1", "--tol", "1e-12"],
    "dist pagerank": ["dist", "pagerank", "path:50", "--max-iterations", "1", "--tol", "1e-12"],
}


@pytest.mark.parametrize("case", SHORT)
def test_an_answer_that_falls_short_is_shown_and_told(case: str) -> None:
    result = runner().invoke(app, SHORT[case])
    assert result.exit_code == errors.FELL_SHORT
    assert result.stdout
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"matchwood: {case.removesuffix(' as JSON')}: no")


IN_WORDS = {
    "match: --ties must be one of": ["match", "path:5", "--ties", "x"],
    "match: --rng must lie in": ["match", "path:5", "--rng", str(2**64)],
    "mst: --method must be one of": ["mst", "path:5", "--method", "x"],
    "bfs: --depth-limit must not be negative": ["bfs", "path:5", "--depth-limit", "-1"],
    "dist match: --ties must be one of": ["dist", "match", "path:5", "--ties", "x"],
    "info: --read base must be": ["info", "x.txt", "--read", "base=-1"],
    "precondition: --ties must be one of": ["precondition", "path:5", "--ties", "x"],
    "path: n must be": ["components", "path:-5"],
}


@pytest.mark.parametrize("line", IN_WORDS)
def test_errors_speak_of_the_verb_and_its_options(line: str) -> None:
    result = runner().invoke(app, IN_WORDS[line])
    assert result.exit_code == errors.ERROR
    assert result.stderr.startswith(f"matchwood: {line}"), result.stderr
