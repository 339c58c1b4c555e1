"""`matchwood sense`: numbers of the example, keys, archives, the page."""

from __future__ import annotations

import gzip
import io
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

import matchwood
from matchwood.cli import app, traffic
from matchwood.sensing import Packets, read_archive, traffic_matrix, write_capture
from sensing import frames
from support import environment, run_verb, run_verb_json


@pytest.fixture
def capture(tmp_path):
    path = tmp_path / "example.pcap"
    path.write_bytes(frames.pcap(frames.example()))
    return str(path)


def test_the_worked_example(capture):
    found = run_verb_json("sense", capture, "--window", "3")
    told = found["statistics"]
    assert [told[name] for name in list(told)[:9]] == [8, 5, 3, 4, 3, 2, 3, 5, 3]
    assert found["windows"]["valid_packets"] == [3, 3, 2]
    assert found["capture"]["packets"] == 8
    assert found["histograms"]["link_packets"]["values"] == [1, 2, 3]
    dropped = run_verb_json("sense", capture, "--window", "3", "--compat")
    assert dropped["windows"]["valid_packets"] == [3, 3]


def test_tables_for_people(capture):
    text = run_verb("sense", capture, "--window", "2").stdout
    for word in ("valid packets", "max source", "window", "skipped"):
        assert word in text


def test_an_archive_can_be_sensed_again(capture, tmp_path):
    folder = f"{tmp_path}/out/"
    first = run_verb_json("sense", capture, "--window", "4", "--archive", folder)
    assert len(first["archives"]) == 1
    matrices = list(read_archive(first["archives"][0]))
    assert [matrix.packets for matrix in matrices] == [4, 4]
    again = run_verb_json("sense", first["archives"][0])
    assert again["statistics"] == first["statistics"]


@pytest.mark.slow
def test_keys_come_from_private_files(capture, tmp_path):
    key = tmp_path / "key"
    run_verb("sense", "--new-key", str(key))
    if os.name == "posix":
        assert key.stat().st_mode & 0o777 == 0o600
    words = ("sense", capture, "--anonymize", "permutation", "--key-file", str(key), "--json")
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == 0
    assert key.read_text().strip() not in result.output
    plain = run_verb_json("sense", capture)
    hidden = run_verb_json(*words[:-1])
    assert hidden["statistics"] == plain["statistics"]
    assert hidden["anonymized"] == "permutation"
    if os.name == "posix":
        key.chmod(0o644)
        refused = CliRunner().invoke(app, list(words))
        assert refused.exit_code == 2
        assert "chmod 600" in refused.output
        assert key.read_text().strip() not in refused.output


@pytest.mark.slow
def test_a_traceback_shows_no_key(capture, tmp_path):
    """With MATCHWOOD_DEBUG=1 errors show where they came from, but no variables."""
    key = tmp_path / "key"
    secret = "5eC2e7" * 20
    key.write_text(secret)
    key.chmod(0o600)
    words = ["sense", capture, "--anonymize", "permutation", "--key-file", str(key)]
    done = subprocess.run(
        [sys.executable, "-m", "matchwood.cli", *words],
        env=environment(MATCHWOOD_DEBUG="1", COLUMNS="400"), capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode != 0
    assert "read_key" in done.stderr
    assert secret[:12] not in done.stderr + done.stdout


def test_the_live_table():
    """What is drawn while packets are read."""
    rng = np.random.default_rng(1)
    src, dst = rng.integers(0, 50, (2, 2000), dtype=np.uint32)
    told = []
    matchwood.sense((src, dst), window=100, on_chunk=told.append)
    screen = traffic.Live(["x.pcap"])
    console = Console(file=io.StringIO(), width=200)
    console.print(screen._table(told[-1], 2.0))
    text = console.file.getvalue()
    assert "2,000 packets" in text
    assert "0.001 M packets/s" in text
    assert text.count("100 ") >= traffic.ROWS
    screen.close()
    with traffic.live(["x.pcap"]) as nobody:
        assert nobody is None  # stderr is no terminal here


ADDRESS = re.compile(r"\b\d{1,3}(\.\d{1,3}){3}\b")


def test_no_address_leaves_the_process(tmp_path):
    """Neither as numbers nor with dots: not on the page, not in JSON, not in archives."""
    rng = np.random.default_rng(2)
    src = rng.integers(2**30, 2**32, 400, dtype=np.uint32)
    dst = rng.integers(2**30, 2**32, 400, dtype=np.uint32)
    time = np.arange(400) * 1000
    packets = Packets(src, dst, time, src * 0 + 60, np.full(400, 17, np.uint8))
    path, page, key = tmp_path / "x.pcap", tmp_path / "x.html", tmp_path / "key"
    write_capture(path, packets)
    (tmp_path / "private.txt").write_text("10.0.0.0/8\n# more\n192.168.0.0/16\n")
    run_verb("sense", "--new-key", str(key))
    result = run_verb(
        "sense", str(path), "--window", "100", "--anonymize", "permutation", "--key-file", str(key),
        "--ranges", str(tmp_path / "private.txt"), "--archive", f"{tmp_path}/out/",
        "--html", str(page), "--json",
    )  # fmt: skip
    text = page.read_text() + result.stdout
    assert not ADDRESS.search(text)
    numbers = {int(word) for word in re.findall(r"\d{9,10}", text.replace(",", ""))}
    assert not numbers & set(src.tolist() + dst.tolist())
    total = sum(matrix.packets for matrix in read_archive(tmp_path / "out"))
    seen = {
        int(address)
        for matrix in read_archive(tmp_path / "out")
        for part in (matrix.sources, matrix.destinations)
        for address in part
    }
    assert total == 400
    assert not seen & set(src.tolist() + dst.tolist())
    assert len(seen) == len(set(src.tolist() + dst.tolist()))


def test_the_page_shows_everything(capture, tmp_path):
    (tmp_path / "lan.txt").write_text("10.0.0.0/30\n")
    page = tmp_path / "report.html"
    words = ("sense", capture, "--window", "2", "--html", str(page))
    run_verb(*words, "--ranges", str(tmp_path / "lan.txt"))
    text = page.read_text()
    assert text.count("<svg") == 9 + 5
    for word in ("Between ranges", "lan", "skipped: IPv6", "attained by", "Histograms", "alpha"):
        assert word in text
    assert "<script" not in text


def test_truncation_keeps_bits(capture, tmp_path):
    found = run_verb_json("sense", capture, "--anonymize", "truncate", "--bits", "8",
                          "--archive", str(tmp_path / "x.tar"))  # fmt: skip
    assert found["statistics"]["unique_links"] == 1
    (matrix,) = read_archive(tmp_path / "x.tar")
    assert matrix == traffic_matrix([10 << 24] * 8, [10 << 24] * 8)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "a capture is needed"),
        (("/nowhere/x.pcap",), "No such file"),
        (("CAPTURE", "--anonymize", "rot13"), "method must be one of"),
        (("CAPTURE", "--anonymize", "permutation"), "permutation needs a --key-file"),
        (("CAPTURE", "--bits", "8"), "need --anonymize"),
        (("CAPTURE", "--anonymize", "truncate"), "truncate needs --bits"),
        (("CAPTURE", "--window", "soon"), "window"),
        (("CAPTURE", "--ranges", "/nowhere"), "No such file"),
        (("CAPTURE", "--html", "/nowhere/x.html"), "--html /nowhere"),
        (("CAPTURE", "--html", "x.pcap"), "must end in .html"),
        (("CAPTURE", "--archive", "CAPTURE"), "that is an input, which would be lost"),
        (("CAPTURE", "--new-key", "/nowhere/key"), "only writes a key"),
        (("CAPTURE", "--ip", "5"), "--ip must be 4 or 6"),
        (("CAPTURE", "--partial", "half"), "partial must be one of"),
    ],
)
def test_errors_are_one_line(words, message, capture):
    words = [capture if word == "CAPTURE" else word for word in words]
    result = CliRunner().invoke(app, ["sense", *words])
    assert result.exit_code == 2
    assert message in result.output
    assert len(result.output.strip().splitlines()) == 1


def test_batches_and_devices(capture):
    whole = run_verb_json("sense", capture)
    parts = run_verb_json("sense", capture, "--batches", "3")
    assert parts["statistics"] == whole["statistics"]
    for option, message in (("0", "for the GPU engine"), ("a,b", "must be numbers such as 0,1")):
        result = CliRunner().invoke(app, ["sense", capture, "--devices", option])
        assert result.exit_code == 2
        assert message in " ".join(result.stderr.split())


def test_who_sent_most_and_packets_of_ipv6(capture, tmp_path):
    found = run_verb_json("sense", capture, "--top", "2")
    assert found["top"] == [
        {"address": "10.0.0.1", "packets": 3, "fan_out": 2},
        {"address": "10.0.0.4", "packets": 3, "fan_out": 1},
    ]
    assert run_verb_json("sense", capture)["top"] == []
    assert "10.0.0.1" in run_verb("sense", capture, "--top", "1").stdout
    path = tmp_path / "six.pcap"
    head = b"`" + bytes(5) + b"\x11@"
    path.write_bytes(frames.pcap([head + bytes(15) + b"\1" + bytes(15) + b"\2"] * 3))
    found = run_verb_json("sense", str(path), "--ip", "6", "--top", "5")
    assert found["top"] == [{"address": "::1", "packets": 3, "fan_out": 1}]
    result = CliRunner().invoke(
        app, ["sense", str(path), "--ip", "6", "--archive", str(tmp_path / "a.tar")]
    )
    assert result.exit_code == 2
    assert "addresses of IPv4" in result.stderr


def test_a_warning_is_one_line(tmp_path):
    """Without the place in our sources, which a user has nothing to do with."""
    path = tmp_path / "cut.pcap.gz"
    path.write_bytes(gzip.compress(frames.pcap(frames.example() * 50))[:-60])
    done = subprocess.run(
        [sys.executable, "-m", "matchwood.cli", "sense", str(path), "--json"],
        capture_output=True, text=True, env=environment(), check=True,
    )  # fmt: skip
    assert done.stderr.startswith("matchwood: warning: ")
    assert done.stderr.count("\n") == 1
    assert "the file is cut off" in done.stderr
