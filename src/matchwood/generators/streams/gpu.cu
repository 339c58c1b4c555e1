// Weights from the hash of an edge.  Host side: gpu.py.  The rule: reference.py.
#include "matchwood/hashing.cuh"
#include "matchwood/threads.cuh"

typedef unsigned long long u64;

// One warp per row writes the row's values.  fraction_bits = 0 asks for integers 1 .. `integers`;
// otherwise unit is 2^-fraction_bits.  All numbers are exact in a double, and in W.
template <typename I, typename W>
__global__ void weigh_rows(long long n, bool directed, unsigned long long key, int fraction_bits,
                           unsigned long long integers, double unit, const I* __restrict__ indptr,
                           const I* __restrict__ indices, W* __restrict__ data)
{
    long long row = global_thread() / WARP;
    if (row >= n) return;  // the whole warp leaves together
    long long end = indptr[row + 1];
    for (long long k = indptr[row] + lane(); k < end; k += WARP) {
        u64 u = row, v = indices[k];
        u64 counter = directed || u < v ? u * n + v : v * n + u;
        u64 drawn = mix64(key + counter * GOLDEN);  // number `counter` of the stream
        u64 number =
            fraction_bits == 0 ? (drawn >> 32) * integers >> 32 : drawn >> (64 - fraction_bits);
        data[k] = (W)((double)(number + 1) * unit);
    }
}
