"""The hashes: vectors worked out by hand, the same bits on every engine, and no visible bias."""

from __future__ import annotations

import hashlib
import struct
from decimal import Decimal, getcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchwood.engines.cpu import crew, kernel, share
from matchwood.errors import CheckFailed
from matchwood.primitives.hashing import (
    bit_barrier,
    cpu,
    hash2,
    mix64,
    quarter_md5,
    random_bit,
    reference,
    round_number,
)
from matchwood.primitives.hashing.check import (
    check_hash2,
    check_mix64,
    check_quarter_md5,
    check_random_bit,
)
from support import THREADS, looped

TWO32 = 2**32

# The 16 steps of quarter_md5, worked out from Algorithm 4 of Fagginger Auer and Bisseling.  A row:
#
#     v          the word of this step: v, r v, r^2 v, ...
#     K          floor(2^32 |sin(i + 1)|)
#     f          (a1 and a2) or (not a1 and a3): bit by bit, a2 where a1 has a one, else a3
#     s          a0 + f + K + v
#     t          s turned left by 7, 12, 17, 22, 7, ...
#     a1         the new a1: old a1 + t;  then a0, a2, a3 = old a3, old a1, old a2
#     h          h0 + h1 + h2 + h3 after a0, a1, a2, a3 were added to them
#
# The first row by hand, for v = 0, from a = (67452301, efcdab89, 98badcfe, 10325476):
#     a1 and a2      = efcdab89 and 98badcfe             = 88888888
#     not a1 and a3  = 10325476 and 10325476             = 10325476       so f = 98badcfe
#     s = 67452301 + 98badcfe + d76aa478 + 0: the first two make ffffffff, so s = d76aa477
#     t: s << 7 is 6b b5523b80; the seven bits 6b come in on the right:   t = b5523beb
#     a1 = efcdab89 + b5523beb = (1) a51fe774
#     a  = (10325476, a51fe774, efcdab89, 98badcfe)
#     h  = (77777777, 94ed92fd, 88888887, a8ed3174), their sum 3ddac46f
# The word of v = 0 is 0 in every step, whatever r is.  With v = 1 all that changes in the first
# row is s = d76aa478, t = b5523c6b, a1 = a51fe7f4; its words with r = 3 are 1, 3, 9, 1b, 51, ...
STEPS = {
    (0, 5): [
        (0x00000000, 0xD76AA478, 0x98BADCFE, 0xD76AA477, 0xB5523BEB, 0xA51FE774, 0x3DDAC46F),
        (0x00000000, 0xE8C7B756, 0xBDADBB8A, 0xB6A7C756, 0x7C756B6A, 0x219552DE, 0x8D188748),
        (0x00000000, 0x242070DB, 0xEF5DEB55, 0xAC39392E, 0x725D5872, 0x93F2AB50, 0xD78E1873),
        (0x00000000, 0xC1BDCEEE, 0x259D4674, 0xD728C0EB, 0x3AF5CA30, 0xCEE87580, 0x011E7395),
        (0x00000000, 0xF57C0FAF, 0xA3F5235E, 0x3E911A81, 0x488D409F, 0x1775B61F, 0x9D049D62),
        (0x00000000, 0x4787C62A, 0x86E23D40, 0xEFFF5648, 0xF5648EFF, 0x0CDA451E, 0x242FB96F),
        (0x00000000, 0xA8304613, 0xC670349E, 0x02932601, 0x4C020526, 0x58DC4A44, 0x70447470),
        (0x00000000, 0xFD469501, 0x0FF9F41F, 0xDC28FEA0, 0xA8370A3F, 0x01135483, 0xEE840E74),
        (0x00000000, 0x698098D8, 0x0CD8411C, 0x8DCE9013, 0xE74809C6, 0xE85B5E49, 0x3DA950A2),
        (0x00000000, 0x8B44F7AF, 0x10975405, 0xA8B690D2, 0x690D2A8B, 0x516888D4, 0xD15CD686),
        (0x00000000, 0xFFFF5BB1, 0x405B5C43, 0x99370238, 0x0471326E, 0x55D9BB42, 0x620DCD68),
        (0x00000000, 0x895CD7BE, 0xF94ACC49, 0x83BAF88A, 0x22A0EEBE, 0x787AAA00, 0x6A2619C7),
        (0x00000000, 0x6B901122, 0x5158AAD4, 0xA5441A3F, 0xA20D1FD2, 0x1A87C9D2, 0xA46AD1AF),
        (0x00000000, 0xFD987193, 0x5D5ABA00, 0xAC5BB467, 0xBB467AC5, 0xD5CE4497, 0x6315455A),
        (0x00000000, 0xA679438E, 0x38B6EA92, 0x3509E962, 0xD2C46A13, 0xA892AEAA, 0x7478AC6D),
        (0x00000000, 0x49B40821, 0x928745D2, 0x54B5F7F3, 0xFCD52D7D, 0xA567DC27, 0xB2C945A7),
    ],
    (1, 3): [
        (0x00000001, 0xD76AA478, 0x98BADCFE, 0xD76AA478, 0xB5523C6B, 0xA51FE7F4, 0x3DDAC4EF),
        (0x00000003, 0xE8C7B756, 0xBDADBB8A, 0xB6A7C759, 0x7C759B6A, 0x2195835E, 0x8D18B8C8),
        (0x00000009, 0x242070DB, 0xEF5DABD5, 0xAC38F9B7, 0xF36F5871, 0x1504DBCF, 0x58A0AB72),
        (0x0000001B, 0xC1BDCEEE, 0xA11FA77E, 0x52AB2210, 0x8414AAC8, 0x99198697, 0xCD74792A),
        (0x00000051, 0xF57C0FAF, 0x318483CF, 0xCC207BC3, 0x103DE1E6, 0xA957687D, 0x467FC76B),
        (0x000000F3, 0x4787C62A, 0x9D119397, 0x062EDE12, 0xEDE12062, 0x973888DF, 0x352E1B2D),
        (0x000002D9, 0xA8304613, 0x89110E5D, 0x46463318, 0x66308C8C, 0xFD69156B, 0x0C40A88B),
        (0x0000088B, 0xFD469501, 0x953E685F, 0x2B9E8C82, 0x208AE7A3, 0x1DF3FD0E, 0x682DAC60),
        (0x000019A1, 0x698098D8, 0x9F6915DB, 0xB24130D1, 0x209868D9, 0x3E8C65E7, 0x594FAD9F),
        (0x00004CE3, 0x8B44F7AF, 0xDDE1750E, 0x005F427F, 0xF427F005, 0x32B455EC, 0xE5ED7BEB),
        (0x0000E6A9, 0xFFFF5BB1, 0x3FC7EDE6, 0x3D3145AB, 0x8B567A62, 0xBE0AD04E, 0x332D051A),
        (0x0002B3FB, 0x895CD7BE, 0x328475ED, 0xD9D7FEB4, 0xAD3675FF, 0x6B41464D, 0xCDB9D788),
        (0x00081BF1, 0x6B901122, 0x3AB451EC, 0xE4D8E4E6, 0x6C727372, 0xD7B3B9BF, 0x016DFDCE),
        (0x001853D3, 0xFD987193, 0x6B09404D, 0x9B6E5B9F, 0xE5B9F9B6, 0xBD6DB375, 0xBFDB819D),
        (0x0048FB79, 0xA679438E, 0xD721F53D, 0x3BEF0492, 0x092477DE, 0xC6922B53, 0x86D06071),
        (0x00DAF26B, 0x49B40821, 0x9521B3FD, 0x4AF1F4D6, 0x3592BC7D, 0xFC24E7D0, 0xDEA8E0C8),
    ],
}


def bits_of(word: int) -> str:
    return format(word, "032b")


@looped(("v", "r"), STEPS)
def test_the_steps_follow_from_one_another(v, r):
    """Each row of the table from the row before, on strings of bits instead of machine words."""
    a = [0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476]
    h = list(a)
    word = v
    for i, (v_i, k, f, s, t, new, total) in enumerate(STEPS[v, r]):
        assert v_i == word
        assert f == int(
            "".join(y if x == "1" else z for x, y, z in zip(*map(bits_of, a[1:]), strict=True)), 2
        )
        assert s == (a[0] + f + k + word) % TWO32
        left = (7, 12, 17, 22)[i % 4]
        assert bits_of(t) == bits_of(s)[left:] + bits_of(s)[:left]
        assert new == (a[1] + t) % TWO32
        a = [a[3], new, a[1], a[2]]
        h = [(x + y) % TWO32 for x, y in zip(h, a, strict=True)]
        assert total == sum(h) % TWO32
        word = word * r % TWO32


def test_the_constants_are_sines():
    """K(i) = floor(2^32 |sin(i + 1)|) from the series of the sine, to 50 digits."""
    getcontext().prec = 50
    for i, row in enumerate(STEPS[0, 5]):
        x = Decimal(i + 1)
        total = term = x
        for k in range(1, 60):
            term = -term * x * x / ((2 * k) * (2 * k + 1))
            total += term
        assert int(abs(total) * TWO32) == row[1] == reference.MD5_K[i]


def test_the_steps_are_those_of_md5():
    """With our f, K and turns for the first quarter, the rest of RFC 1321 gives hashlib's MD5."""
    message = b"matchwood"
    block = message + b"\x80" + bytes(55 - len(message)) + struct.pack("<Q", 8 * len(message))
    words = struct.unpack("<16I", block)
    a, b, c, d = start = reference.MD5_START
    for i in range(64):
        if i < 16:
            f, k, g = (b & c) | (~b & d), reference.MD5_K[i], i
            turn = reference.MD5_R[i]
        else:
            k = int(abs(np.sin(i + 1)) * TWO32)
            turn = ((5, 9, 14, 20), (4, 11, 16, 23), (6, 10, 15, 21))[i // 16 - 1][i % 4]
            if i < 32:
                f, g = (d & b) | (~d & c), (5 * i + 1) % 16
            elif i < 48:
                f, g = b ^ c ^ d, (3 * i + 5) % 16
            else:
                f, g = c ^ (b | ~d), 7 * i % 16
        s = (a + f + k + words[g]) % TWO32
        a, b, c, d = d, (b + (s << turn | s >> (32 - turn))) % TWO32, b, c
    digest = struct.pack(
        "<4I", *((x + y) % TWO32 for x, y in zip(start, (a, b, c, d), strict=True))
    )
    assert digest == hashlib.md5(message).digest()


@looped("kind", [np.int32, np.int64])
def test_the_vectors_on_every_engine(engine, kind):
    for (v, r), rows in STEPS.items():
        words = quarter_md5(np.array([v], dtype=kind), r, engine=engine)
        assert words.dtype == np.uint32
        assert words.tolist() == [rows[-1][-1]]


VERTICES = np.array([0, 1, 2, 1000, 2**31 - 1, 12345678], dtype=np.int64)


def test_engines_equal_the_definition(engine):
    for r in (1, 3, round_number(0, 0), 2**32 - 1, 0):
        check_quarter_md5(VERTICES, r, quarter_md5(VERTICES, r, engine=engine))
        check_random_bit(VERTICES, r, 0.3, random_bit(VERTICES, r, 0.3, engine=engine))
    x = np.array([0, 1, 2**63, 2**64 - 1, 0x9E3779B97F4A7C15], dtype=np.uint64)
    check_mix64(x, mix64(x, engine=engine))
    for seed in (0, 1, 2**64 - 1, -1):
        check_hash2(VERTICES, -VERTICES, seed, hash2(VERTICES, -VERTICES, seed, engine=engine))


def test_int32_and_int64_hash_alike(engine):
    narrow = np.arange(-50, 50, dtype=np.int32)
    wide = narrow.astype(np.int64)
    assert (hash2(narrow, wide, 5, engine=engine) == hash2(wide, narrow, 5, engine=engine)).all()
    assert (quarter_md5(narrow, 7, engine=engine) == quarter_md5(wide, 7, engine=engine)).all()


def test_vertices_count_modulo_two_to_the_32(engine):
    v = np.array([5, 5 + 2**32, 5 - 2**32])
    assert np.unique(quarter_md5(v, 9, engine=engine)).size == 1


def test_splitmix64_of_the_literature(engine):
    """The first outputs of splitmix64 seeded with 0 are mix64 of the multiples of GOLDEN."""
    golden = np.uint64(0x9E3779B97F4A7C15)
    outputs = mix64(golden * np.arange(1, 4, dtype=np.uint64), engine=engine)
    assert outputs.tolist() == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


@looped("size", [0, 1, 100_001])
def test_threads_do_not_matter(size):
    v = np.arange(size, dtype=np.int32)
    x = v.astype(np.uint64)
    words, bits = (
        reference.quarter_md5_array(v, 77),
        reference.random_bit_array(v, 77, bit_barrier(0.6)),
    )
    hashed, mixed = reference.hash2_array(v, v, 3), reference.mix64_array(x)
    for threads in THREADS:
        np.testing.assert_array_equal(quarter_md5(v, 77, threads=threads), words)
        np.testing.assert_array_equal(random_bit(v, 77, 0.6, threads=threads), bits)
        np.testing.assert_array_equal(hash2(v, v, 3, threads=threads), hashed)
        np.testing.assert_array_equal(mix64(x, threads=threads), mixed)


@given(st.integers(0, 2**31 - 1), st.integers(0, 2**32 - 1))
def test_quarter_md5_of_any_vertex(v, r):
    expected = reference.quarter_md5_number(v, r)
    assert quarter_md5(np.array([v]), r).tolist() == [expected]
    assert reference.quarter_md5_array(np.array([v]), r).tolist() == [expected]


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**63))
def test_hash2_of_any_pair(u, v, seed):
    expected = reference.hash2_number(u, v, seed)
    assert hash2(np.array([u]), np.array([v]), seed).tolist() == [expected]


@kernel
def _in_a_kernel(team, v, seed, r, barrier, mixed, hashed, words, bits):
    lo, hi = share(team, v.size)
    for i in range(lo, hi):
        mixed[i] = cpu.mix64(np.uint64(v[i]))
        hashed[i] = cpu.hash2(v[i], i, seed)
        words[i] = cpu.quarter_md5(v[i], r)
        bits[i] = cpu.random_bit(v[i], r, barrier)


@pytest.mark.slow
def test_device_functions():
    v = np.arange(1000, dtype=np.int32)
    mixed, hashed = np.empty((2, 1000), dtype=np.uint64)
    words, bits = np.empty(1000, dtype=np.uint32), np.empty(1000, dtype=np.bool_)
    barrier = np.uint64(bit_barrier(0.5))
    crew(2, work=1000).run(
        _in_a_kernel, v, np.uint64(9), np.uint64(31), barrier, mixed, hashed, words, bits
    )
    check_mix64(v.astype(np.uint64), mixed)
    check_hash2(v, v, 9, hashed)
    check_quarter_md5(v, 31, words)
    check_random_bit(v, 31, 0.5, bits)


def test_mix64_is_one_to_one_and_every_bit_is_fair():
    x = np.arange(100_000, dtype=np.uint64)
    mixed = mix64(x)
    assert np.unique(mixed).size == x.size
    ones = [(mixed >> np.uint64(bit) & np.uint64(1)).mean() for bit in range(64)]
    assert max(abs(share - 0.5) for share in ones) < 0.01


def test_one_changed_bit_changes_half_of_them():
    x = np.random.default_rng(0).integers(0, 2**64, 2000, dtype=np.uint64)
    for bit in range(64):
        changed = mix64(x) ^ mix64(x ^ np.uint64(1 << bit))
        assert abs(np.unpackbits(changed.view(np.uint8)).sum() / x.size - 32) < 1


@looped("p", [0.0, 0.1, 0.5, 0.53, 1.0])
def test_bits_have_their_probability_in_every_round(p):
    v = np.arange(40_000, dtype=np.int32)
    rounds = [random_bit(v, round_number(1, k), p) for k in range(5)]
    for bits in rounds:
        assert abs(bits.mean() - p) < 0.015
    if 0 < p < 1:  # rounds do not repeat one another: two agree as often as chance says
        agree = (rounds[0] == rounds[1]).mean()
        assert abs(agree - (p * p + (1 - p) ** 2)) < 0.02


def test_round_numbers_are_odd_and_differ():
    numbers = {round_number(seed, k) for seed in range(10) for k in range(100)}
    assert len(numbers) == 1000
    assert all(r % 2 == 1 and 0 < r < TWO32 for r in numbers)


@given(st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_the_barrier_is_exact(p, word):
    assert (word < bit_barrier(p)) == (word < p * 2**32)


def test_bad_input():
    v = np.arange(3)
    with pytest.raises(TypeError, match="x must be uint64, got int64"):
        mix64(v)
    with pytest.raises(TypeError, match="u must be int32 or int64, got float64"):
        hash2(v / 2, v)
    with pytest.raises(ValueError, match="size of u, got 2 and 3"):
        hash2(v, v[:2])
    with pytest.raises(TypeError, match="seed must be an integer"):
        hash2(v, v, 0.5)
    with pytest.raises(ValueError, match="r must be at least 0"):
        quarter_md5(v, -1)
    with pytest.raises(ValueError, match=r"r must be below 2\*\*32"):
        quarter_md5(v, 2**32)
    for p in (-0.1, 1.1, np.nan, "half", True):
        with pytest.raises((TypeError, ValueError), match=r"random_bit: p must be "):
            random_bit(v, 1, p)


def test_the_checks_see_what_is_broken():
    v, x = np.arange(4), np.arange(4, dtype=np.uint64)
    cases = [
        (lambda a: check_mix64(x, a), mix64(x)),
        (lambda a: check_hash2(v, v, 1, a), hash2(v, v, 1)),
        (lambda a: check_quarter_md5(v, 3, a), quarter_md5(v, 3)),
        (lambda a: check_random_bit(v, 3, 0.5, a), random_bit(v, 3)),
    ]
    for check, right in cases:
        check(right)
        broken = right.copy()
        broken[2] ^= 1
        with pytest.raises(CheckFailed, match="value 2 is"):
            check(broken)
        with pytest.raises(CheckFailed, match="4 values expected"):
            check(right[:3])
