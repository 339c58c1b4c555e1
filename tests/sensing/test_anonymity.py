"""Anonymous addresses: test vectors, the definition, and keys that stay hidden."""

from __future__ import annotations

import copy
import ipaddress
import itertools
import os
import pickle
import random
import re
import traceback
from pathlib import Path

import numpy as np
import pytest

from matchwood.applications.sensing.anonymity import anonymizer, reference
from matchwood.applications.sensing.anonymity import anonymizer as keys
from matchwood.applications.sensing.anonymity.check import check_anonymized
from matchwood.errors import CheckFailed
from matchwood.report.traffic import traffic_page
from matchwood.sensing import Anonymizer, anonymize, new_key, sense
from support import THREADS, same

KEY = bytes(range(32))
VECTORS = {
    KEY: {
        "192.0.2.1": "2.90.93.17",
        "10.0.0.1": "246.35.191.210",
        "10.0.0.2": "246.35.191.208",
        "10.0.0.3": "246.35.191.209",
        "0.0.0.0": "254.152.65.220",
        "255.255.255.255": "56.0.15.254",
        "128.11.68.132": "125.228.34.36",
    },
    b"32-char-str-for-AES-key-and-pad.": {"192.0.2.1": "192.0.125.244"},
}


def number(text: str) -> int:
    return int(ipaddress.ip_address(text))


def addresses(n: int, rng: int = 0, near: bool = False):
    rng = np.random.default_rng(rng)
    if near:
        return (np.uint32(0x0A000000) + rng.integers(0, 300, n)).astype(np.uint32)
    return rng.integers(0, 2**32, n, dtype=np.uint32)


def test_aes_of_the_reference():
    """The example of FIPS 197, appendix B, and C.1."""
    key = bytes.fromhex("2b7e151628aed2a6abf7158809cf4f3c")
    block = bytes.fromhex("3243f6a8885a308d313198a2e0370734")
    assert reference.aes(key, block).hex() == "3925841d02dc09fbdc118597196a0b32"
    block = bytes.fromhex("00112233445566778899aabbccddeeff")
    assert reference.aes(bytes(range(16)), block).hex() == "69c4e0d86a7b0430d8cdb78070b4c55a"


@pytest.mark.parametrize("key", VECTORS, ids=["numbers", "text"])
def test_published_vectors(key):
    pytest.importorskip("cryptography")
    before = np.array([number(a) for a in VECTORS[key]], np.uint32)
    found = anonymize(before, "cryptopan", key)
    assert [str(ipaddress.ip_address(int(a))) for a in found] == list(VECTORS[key].values())
    assert [reference.cryptopan(int(a), key) for a in before] == found.tolist()
    check_anonymized(before, found, "cryptopan", key=key)


@pytest.mark.parametrize("near", [False, True])
def test_cryptopan_equals_the_definition(near, monkeypatch):
    pytest.importorskip("cryptography")
    before = addresses(60, 3, near)
    wanted = [reference.cryptopan(int(a), KEY) for a in before]
    assert anonymize(before, "cryptopan", KEY).tolist() == wanted
    assert anonymize(np.sort(before), "cryptopan", KEY).tolist() == [
        wanted[k] for k in np.argsort(before, kind="stable")
    ]
    for blocks, at_once in ((16, 7), (17, 1), (40, 60), (1000, 13)):
        monkeypatch.setattr(anonymizer, "BLOCKS_AT_ONCE", blocks)
        monkeypatch.setattr(anonymizer, "AT_ONCE", at_once)
        assert anonymize(before, "cryptopan", KEY).tolist() == wanted


def test_cryptopan_equals_its_peer():
    pytest.importorskip("cryptography")
    peer = pytest.importorskip("yacryptopan").CryptoPAn(KEY)
    before = np.concatenate((addresses(200, 5), addresses(100, 6, True)))
    wanted = [number(peer.anonymize(str(ipaddress.ip_address(int(a))))) for a in before]
    assert anonymize(before, "cryptopan", KEY).tolist() == wanted


def test_many_addresses_keep_their_prefixes():
    pytest.importorskip("cryptography")
    for near in (False, True):
        before = addresses(200_000, 1, near)
        check_anonymized(before, anonymize(before, "cryptopan", KEY), "cryptopan", key=KEY)


def test_permutation_equals_the_definition():
    before = addresses(30)
    found = anonymize(before, "permutation", KEY)
    assert found.tolist() == [reference.permutation(int(a), KEY) for a in before]
    before = addresses(100_000)
    found = anonymize(before, "permutation", KEY)
    check_anonymized(before, found, "permutation", key=KEY)
    for threads in THREADS:
        assert same(anonymize(before, "permutation", KEY, threads=threads), found)
    other = anonymize(before, "permutation", bytes(32))
    assert (other == found).mean() < 0.001


@pytest.mark.gpu
def test_permutation_on_the_gpu():
    cupy = pytest.importorskip("cupy")
    before = addresses(100_000)
    for method, options in (("permutation", {"key": KEY}), ("truncate", {"bits": 12}), (None, {})):
        found = anonymize(cupy.asarray(before), method, **options)
        assert same(found.get(), anonymize(before, method, **options))


def test_every_word_of_16_bits_is_permuted():
    """Addresses 0 .. 2^16 - 1 and their multiples become as many different ones."""
    for shift in (0, 8, 16):
        before = np.arange(2**16, dtype=np.uint32) << np.uint32(shift)
        assert np.unique(anonymize(before, "permutation", KEY)).size == 2**16


def halves(values):
    return np.array([[value >> 64, value & (1 << 64) - 1] for value in values], np.uint64)


def test_addresses_of_ipv6():
    rng = random.Random(3)
    some = [0x20010DB8 << 96 | 1, 0, (1 << 128) - 1, *(rng.getrandbits(128) for _ in range(20))]
    wide = halves(some)
    found = anonymize(wide, "cryptopan", bytes(range(32)))
    assert ipaddress.IPv6Address(found[0].astype(">u8").tobytes()).compressed == (
        "dd92:2c44:3fc0:ff1e:7ff9:c7f0:8180:7e00"
    )
    right = [reference.cryptopan(value, bytes(range(32)), 128) for value in some]
    assert np.array_equal(found, halves(right))
    for bits in (0, 1, 48, 64, 65, 128):
        right = [reference.truncate(value, bits, 128) for value in some]
        assert np.array_equal(anonymize(wide, "truncate", bits=bits), halves(right))
    assert np.array_equal(anonymize(wide, None), wide)
    with pytest.raises(ValueError, match="the method 'permutation' is for IPv4"):
        anonymize(wide, "permutation", bytes(range(32)))
    with pytest.raises(ValueError, match="bits must be at most 128"):
        anonymize(wide, "truncate", bits=129)
    with pytest.raises(TypeError, match="must be a uint64 array of two a row"):
        Anonymizer(None, version=6)(wide.astype(np.int64))
    with pytest.raises(ValueError, match="anonymize: threads must be at least 1, got -5"):
        anonymize(wide, None, threads=-5)
    with pytest.raises(TypeError, match="addresses must be an array without a mask"):
        anonymize(np.ma.masked_array(wide, True), None)
    frame = pytest.importorskip("pandas").DataFrame({"a": [1], "b": [2]})
    with pytest.raises(ValueError, match="addresses must be one-dimensional"):
        anonymize(frame, "truncate", bits=8)


@pytest.mark.parametrize("bits", [0, 1, 8, 21, 24, 31, 32])
def test_truncation(bits):
    before = addresses(100)
    found = anonymize(before, "truncate", bits=bits)
    assert found.tolist() == [reference.truncate(int(a), bits) for a in before]
    check_anonymized(before, found, "truncate", bits=bits)


def test_no_method_copies():
    before = addresses(5)
    found = anonymize(before, None)
    assert same(found, before)
    assert not np.shares_memory(found, before)
    check_anonymized(before, found, None)


def test_an_anonymizer_serves_many_blocks():
    pytest.importorskip("cryptography")
    before = addresses(1000)
    for method in ("cryptopan", "permutation"):
        made = Anonymizer(method, KEY)
        whole = made(before)
        parts = np.concatenate([made(part) for part in np.array_split(before, 7)])
        assert same(whole, parts)
        assert made(before[:0]).size == 0
        assert same(made(before[::3]), whole[::3])


SECRET = bytes(range(100, 132))


def hidden(text: str) -> bool:
    forms = (SECRET.hex(), repr(SECRET), repr(SECRET)[2:-1], repr(list(SECRET))[1:-1])
    return not any(form in text for form in forms)


def test_keys_stay_hidden():
    pytest.importorskip("cryptography")
    for method in ("cryptopan", "permutation"):
        made = Anonymizer(method, SECRET)
        assert hidden(repr(made) + str(made))
        assert repr(made) == f"Anonymizer({method!r})"
        for leak in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="holds a key"):
                leak(made)
        assert not hasattr(made, "__dict__")
        words = [getattr(made, name, None) for name in type(made).__slots__]
        assert not any(isinstance(word, bytes) and SECRET[:16] in word for word in words)
    for wrong in (SECRET[:31], SECRET + b"x", list(SECRET), SECRET.hex().encode()):
        with pytest.raises((TypeError, ValueError)) as caught:
            anonymize(addresses(3), "permutation", wrong)
        text = "".join(traceback.format_exception_only(caught.value))
        assert hidden(text)
    with pytest.raises(TypeError) as caught:
        anonymize([0.5], "permutation", SECRET)
    assert hidden(str(caught.value))


@pytest.mark.parametrize("wrong", [SECRET.hex(), "a passphrase of mine", "nul\0nul", "x" * 5000])
def test_a_key_in_the_place_of_a_path_is_not_shown(wrong):
    """Who gives a key as text gives a path: the error must not tell it."""
    src = addresses(5)
    for call in (
        lambda: anonymize(src, "permutation", wrong),
        lambda: Anonymizer("permutation", wrong),
        lambda: sense((src, src), anonymize="permutation", key=wrong),
        lambda: check_anonymized(src, src, "permutation", key=wrong),
    ):
        with pytest.raises((OSError, ValueError), match="key file") as caught:
            call()
        error = caught.value
        text = "".join(traceback.format_exception_only(error)) + repr(error) + repr(vars(error))
        assert wrong not in text + repr(pickle.dumps(error))
        assert error.__cause__ is None
        assert error.__context__ is None


def test_nothing_that_comes_back_holds_the_key(tmp_path, caplog, capsys):
    """Neither results nor what is told on the way: not shown, not pickled, not logged."""
    pytest.importorskip("cryptography")
    caplog.set_level(0)
    src, dst = addresses(500), addresses(500, 1)
    path = tmp_path / "key"
    path.write_bytes(SECRET)
    path.chmod(0o600)
    for method, key in itertools.product(("cryptopan", "permutation"), (SECRET, path)):
        told = []
        found = sense((src, dst), window=100, anonymize=method, key=key, on_chunk=told.append,
                      ranges=[["10.0.0.0/8"]])  # fmt: skip
        for part in (found, found.matrix, found.windows, found.histograms, told):
            assert hidden(repr(part))
            content = pickle.dumps(part)
            assert SECRET not in content
            assert SECRET[:16] not in content
            assert SECRET[16:] not in content
        assert hidden(traffic_page(found, ["x.pcap"], method))
    assert hidden(caplog.text + "".join(capsys.readouterr()))


def test_no_option_of_the_command_line_takes_a_key():
    """What stands in argv can be read by every user of the machine."""
    from typer.testing import CliRunner

    from matchwood.cli import app

    result = CliRunner().invoke(app, ["sense", "x.pcap", "--anonymize", "permutation", "--key",
                                      SECRET.hex()])  # fmt: skip
    assert result.exit_code == 2
    assert "No such option" in result.output
    named = CliRunner().invoke(app, ["sense", "x.pcap", "--anonymize", "permutation", "--key-file",
                                     SECRET.hex()])  # fmt: skip
    assert named.exit_code == 2
    assert hidden(named.output)


def test_key_files(tmp_path):
    path = tmp_path / "key"
    new_key(path)
    assert len(keys.read_key(path)) == 32
    if os.name == "posix":
        assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        new_key(path)
    (tmp_path / "raw").write_bytes(KEY)
    (tmp_path / "hex").write_text(KEY.hex() + "\n")
    (tmp_path / "raw").chmod(0o600)
    (tmp_path / "hex").chmod(0o400)
    before = addresses(10)
    wanted = anonymize(before, "permutation", KEY)
    for name in ("raw", "hex"):
        assert same(anonymize(before, "permutation", tmp_path / name), wanted)
    assert same(anonymize(before, "permutation", str(tmp_path / "raw")), wanted)


@pytest.mark.skipif(os.name != "posix", reason="no such rights here")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o610, 0o602])
def test_key_files_that_others_may_use_are_refused(mode, tmp_path):
    path = tmp_path / "key"
    path.write_text(SECRET.hex())
    path.chmod(mode)
    with pytest.raises(PermissionError, match="chmod 600") as caught:
        anonymize(addresses(3), "permutation", path)
    assert hidden(str(caught.value))


@pytest.mark.parametrize(
    "content", [b"", SECRET[:5], SECRET * 2, SECRET.hex().encode()[:-1] + b"z"]
)
def test_key_files_that_hold_no_key(content, tmp_path):
    path = tmp_path / "key"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(ValueError, match="must hold 32 bytes") as caught:
        anonymize(addresses(3), "permutation", path)
    text = "".join(traceback.format_exception(caught.value))
    assert hidden(text)
    assert SECRET.hex()[:16] not in text


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_key_files_that_are_no_files(tmp_path):
    """Neither a pipe without a writer nor an endless device is waited for."""
    os.mkfifo(tmp_path / "pipe", 0o600)
    (tmp_path / "folder").mkdir(0o700)
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    made = [tmp_path / name for name in ("pipe", "folder", "link")]
    for path in (*made, "/dev/zero", "/dev/tty"):
        with pytest.raises((ValueError, OSError), match="anonymize: the key file"):
            anonymize(addresses(3), "permutation", path)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(OSError, match="anonymize: the key file cannot be opened"):
        anonymize(addresses(3), "permutation", tmp_path / "loop")


def test_keys_of_other_kinds():
    before = addresses(10)
    wanted = anonymize(before, "permutation", KEY)
    for key in (bytearray(KEY), memoryview(KEY), memoryview(KEY).cast("Q")):
        assert same(anonymize(before, "permutation", key), wanted)

    class Lying(bytes):
        """Tells another key than it is."""

        def __bytes__(self):
            return b""

        def __len__(self):
            return 32

    assert same(anonymize(before, "permutation", Lying(KEY)), wanted)
    for key in (Lying(KEY[:5]), KEY + b"x", memoryview(KEY * 2)[::3]):
        with pytest.raises(ValueError, match="anonymize: key must"):
            anonymize(before, "permutation", key)
    with pytest.raises(TypeError, match="new_key: path must be the name of a file, got "):
        new_key(3)


def test_an_anonymizer_does_not_change():
    hides = Anonymizer("truncate", bits=8)
    for name, value in (("method", "cryptopan"), ("bits", 10**30)):
        with pytest.raises(AttributeError, match=f"Anonymizer: {name} cannot be changed"):
            setattr(hides, name, value)


def test_the_check_sees_what_is_wrong():
    before = np.unique(addresses(1000))
    good = anonymize(before, "permutation", KEY)
    wrong = good.copy()
    wrong[5] = wrong[6]
    with pytest.raises(CheckFailed, match="became"):
        check_anonymized(before, wrong, "permutation")
    twice = np.concatenate((before, before[:3]))
    with pytest.raises(CheckFailed, match="two anonymous"):
        check_anonymized(twice, np.concatenate((good, good[:3] + 1)), "permutation")
    with pytest.raises(CheckFailed, match="this key"):
        check_anonymized(before, good, "permutation", key=bytes(32))
    with pytest.raises(CheckFailed, match="prefix"):
        check_anonymized(before, good, "cryptopan")
    with pytest.raises(CheckFailed, match="keep 8 bits"):
        check_anonymized(before, before, "truncate", bits=8)
    with pytest.raises(CheckFailed, match="elements"):
        check_anonymized(before, good[:-1], "permutation")
    with pytest.raises(CheckFailed, match="no address"):
        check_anonymized(before, good.astype(np.int64) + 2**32, "permutation")
    with pytest.raises(TypeError, match="integers"):
        check_anonymized(before, good * 1.0, "permutation")


def test_every_flipped_bit_of_cryptopan_is_seen():
    pytest.importorskip("cryptography")
    before = np.unique(np.concatenate((addresses(50), addresses(50, 2, True))))
    good = anonymize(before, "cryptopan", KEY)
    for place, bit in ((3, 0), (20, 9), (40, 31), (60, 17)):
        wrong = good.copy()
        wrong[place] ^= np.uint32(1 << bit)
        with pytest.raises(CheckFailed):
            check_anonymized(before, wrong, "cryptopan", key=KEY)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda a: anonymize(a, "rot13", KEY), ValueError, "anonymize: method must be one of"),
        (lambda a: anonymize(a, "permutation"), TypeError, "anonymize: key must be 32 bytes"),
        (lambda a: anonymize(a, "truncate"), ValueError, "anonymize: the method 'truncate' needs"),
        (lambda a: anonymize(a, "truncate", bits=33), ValueError, "anonymize: bits must be at mo"),
        (lambda a: anonymize(a, "truncate", bits=-1), ValueError, "anonymize: bits must be at le"),
        (lambda a: anonymize(a, "truncate", KEY, bits=8), ValueError, "anonymize: the method 'tr"),
        (lambda a: anonymize(a, None, KEY), ValueError, "anonymize: the method None takes no key"),
        (lambda a: anonymize(a, None, bits=3), ValueError, "anonymize: the method None takes no b"),
        (lambda a: anonymize(a.astype(np.int64), None), TypeError, "anonymize: addresses must be"),
        (lambda a: anonymize(a.reshape(2, 2), None), ValueError, "anonymize: addresses must be o"),
        (lambda a: Anonymizer("rot13"), ValueError, "Anonymizer: method must be one of"),
        (lambda a: Anonymizer(None)(a * 1.0), TypeError, "Anonymizer: addresses must be uint32"),
    ],
)  # fmt: skip
def test_errors(call, error, message):
    with pytest.raises(error) as caught:
        call(addresses(4))
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("method", "given", "message"),
    [
        ("permutation", {"bits": 8}, "takes no bits"), (None, {"bits": 8}, "takes no bits"),
        ("truncate", {}, "needs bits="), (None, {"key": bytes(32)}, "takes no key"),
    ],
)  # fmt: skip
def test_a_check_takes_what_the_method_takes(method, given, message):
    addresses = np.zeros(3, np.uint32)
    with pytest.raises(ValueError, match=f"check_anonymized: the method {method!r} {message}"):
        check_anonymized(addresses, addresses, method, **given)


def test_no_page_shows_a_key_that_anyone_can_guess():
    """Who copies an example gets a key of his own: from new_key, or drawn at random."""
    root = Path(__file__).resolve().parents[2]
    folders = [*(root / "docs").glob("*.rst"), *(root / "docs" / "problems").glob("*.rst")]
    folders += [
        *(root / "examples").rglob("*.py"),
        *(root / "src").rglob("*.py"),
        root / "README.md",
    ]
    constant = re.compile(r"(?<!token_)bytes\((?:32|range\(32\))\)|b(['\"]).\1 \* 32")
    assert [path.name for path in folders if constant.search(path.read_text())] == []
    assert constant.search("key=bytes(32)")
    assert not constant.search("secrets.token_bytes(32)")
    assert "--new-key" in (root / "docs" / "problems" / "sensing.rst").read_text()
