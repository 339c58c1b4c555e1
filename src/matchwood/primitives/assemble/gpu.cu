// Edge lists into CSR, beside CuPy's sort.  Host: gpu.py.
//
// An entry is one number, row << shift | column, so that sorting numbers sorts entries.
#include "matchwood/exact.cuh"
#include "matchwood/threads.cuh"

using Key = unsigned long long;
constexpr Key DROPPED = ~Key(0);  // sorts behind all entries

// One thread per entry of the list, and one per mirrored entry where symmetric.
template <typename I>
__global__ void pack(long long m, const I* __restrict__ rows, const I* __restrict__ cols,
                     int shift, bool symmetric, bool loops, Key* __restrict__ keys)
{
    long long k = global_thread();
    if (k >= (symmetric ? 2 * m : m)) return;
    I row = k < m ? rows[k] : cols[k - m];
    I col = k < m ? cols[k] : rows[k - m];
    keys[k] = !loops && row == col ? DROPPED : (Key)row << shift | (Key)col;
}

// One thread per sorted key: is it the first of its kind?
__global__ void mark_first(long long m, const Key* __restrict__ keys, bool* __restrict__ first)
{
    long long k = global_thread();
    if (k < m) first[k] = keys[k] != DROPPED && (k == 0 || keys[k] != keys[k - 1]);
}

// One thread per distinct key: its column.
template <typename I>
__global__ void columns(long long m, const Key* __restrict__ keys, int shift, I* __restrict__ indices)
{
    long long k = global_thread();
    if (k < m) indices[k] = (I)(keys[k] & ((Key(1) << shift) - 1));
}

// Mirrored entries follow the list and have the values of those they mirror.
__device__ __forceinline__ long long source(long long k, long long half) { return k < half ? k : k - half; }

// One thread per distinct key: add up its values in the order of the list, as the CPU does.
// heads[k] is the place of the first key of its kind among all m sorted keys; the list has `half`.
template <typename W, typename H>
__global__ void add_values(long long distinct, const H* __restrict__ heads, long long m,
                           const Key* __restrict__ keys, const long long* __restrict__ order,
                           const W* __restrict__ data, long long half, bool add, W* __restrict__ out)
{
    long long k = global_thread();
    if (k >= distinct) return;
    long long at = heads[k];
    Key key = keys[at];
    W sum = data[source(order[at], half)];
    if (add)
        for (++at; at < m && keys[at] == key; ++at) sum = exact_sum(sum, data[source(order[at], half)]);
    out[k] = sum;
}
