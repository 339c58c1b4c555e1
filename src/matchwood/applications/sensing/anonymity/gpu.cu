// The permutation of addresses: ten Feistel rounds.  Host side: gpu.py.  The rule: reference.py.
#include "matchwood/threads.cuh"

constexpr int ROUNDS = 10;
constexpr int TABLE = 1 << 16;  // words of a round's function

// One thread per address.  All tables together are 1.3 MB, which stay in the L2 cache.
__global__ void permute_addresses(long long n, const unsigned* __restrict__ addresses,
                                  const unsigned short* __restrict__ tables,
                                  unsigned* __restrict__ out)
{
    long long k = global_thread();
    if (k >= n) return;
    unsigned left = addresses[k] >> 16, right = addresses[k] & 0xFFFF;
    for (int r = 0; r < ROUNDS; r++) {
        unsigned next = left ^ tables[r * TABLE + right];
        left = right;
        right = next;
    }
    out[k] = left << 16 | right;
}
