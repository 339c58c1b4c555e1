// Hashes with the same bits as primitives/hashing/reference.py; its page says what they are.
#pragma once

constexpr unsigned long long GOLDEN = 0x9E3779B97F4A7C15ull;

__device__ __forceinline__ unsigned long long mix64(unsigned long long x)
{
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ x >> 27) * 0x94D049BB133111EBull;
    return x ^ x >> 31;
}

// The same for 32 bits: the finaliser of MurmurHash3.
__device__ __forceinline__ unsigned int mix32(unsigned int x)
{
    x = (x ^ x >> 16) * 0x85ebca6bu;
    x = (x ^ x >> 13) * 0xc2b2ae35u;
    return x ^ x >> 16;
}

// Signed numbers are sign-extended, so int32 and int64 vertices hash alike.
__device__ __forceinline__ unsigned long long hash2(long long u, long long v, unsigned long long seed)
{
    return mix64(mix64(mix64(seed + GOLDEN) ^ (unsigned long long)u) ^ (unsigned long long)v);
}

// 32 bits from a vertex (modulo 2^32) and the odd number r of a round.  Unrolled, so that the
// constants of MD5 (floor(2^32 |sin(i + 1)|)) are immediate operands.
__device__ __forceinline__ unsigned int quarter_md5(unsigned int v, unsigned int r)
{
    constexpr unsigned int K[16] = {
        0xd76aa478u, 0xe8c7b756u, 0x242070dbu, 0xc1bdceeeu, 0xf57c0fafu, 0x4787c62au,
        0xa8304613u, 0xfd469501u, 0x698098d8u, 0x8b44f7afu, 0xffff5bb1u, 0x895cd7beu,
        0x6b901122u, 0xfd987193u, 0xa679438eu, 0x49b40821u};
    constexpr unsigned int R[4] = {7, 12, 17, 22};
    unsigned int a0 = 0x67452301u, a1 = 0xefcdab89u, a2 = 0x98badcfeu, a3 = 0x10325476u;
    unsigned int total = a0 + a1 + a2 + a3;
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        unsigned int turned = a0 + ((a1 & a2) | (~a1 & a3)) + K[i] + v;
        turned = __funnelshift_l(turned, turned, R[i % 4]);
        a0 = a3, a3 = a2, a2 = a1, a1 += turned;
        total += a0 + a1 + a2 + a3;
        v *= r;
    }
    return total;
}

// barrier: bit_barrier(p) of the host, 0 to 2^32.
__device__ __forceinline__ bool random_bit(unsigned int v, unsigned int r, unsigned long long barrier)
{
    return quarter_md5(v, r) < barrier;
}
