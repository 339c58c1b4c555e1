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

// How entries that are given more than once are joined; the same numbers as in cpu.py.  Of equal
// values the first is kept.
constexpr int SUM = 0, FIRST = 1, LEAST = 2, GREATEST = 3, HEAVIEST = 4;

template <typename W>
__device__ __forceinline__ W joined(int how, W x, W y)
{
    switch (how) {
        case SUM: return exact_sum(x, y);
        case LEAST: return exactly_less(y, x) ? y : x;
        case GREATEST: return exactly_less(x, y) ? y : x;
        case HEAVIEST: return exactly_less(magnitude(x), magnitude(y)) ? y : x;
    }
    return x;
}

// One thread per distinct key: join its values in the order of the list, as the CPU does.
// heads[k] is the place of the first key of its kind among all m sorted keys; the list has `half`.
template <typename W, typename H>
__global__ void join_values(long long distinct, const H* __restrict__ heads, long long m,
                            const Key* __restrict__ keys, const long long* __restrict__ order,
                            const W* __restrict__ data, long long half, int how, W* __restrict__ out)
{
    long long k = global_thread();
    if (k >= distinct) return;
    long long at = heads[k];
    Key key = keys[at];
    W value = data[source(order[at], half)];
    if (how != FIRST)
        for (++at; at < m && keys[at] == key; ++at)
            value = joined(how, value, data[source(order[at], half)]);
    out[k] = value;
}
