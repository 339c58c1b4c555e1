// 2x2 blocks of a matrix along a linear forest of pairs; and pairs of vertices of paths that lie side by side.
// Host side: gpu.py; the rules: __init__.py.

#include "matchwood/atomics.cuh"
#include "matchwood/exact.cuh"
#include "matchwood/sorted_row.cuh"
#include "matchwood/threads.cuh"

// One thread per vertex: the smaller one of a pair writes both, at the pair's place in the order.
template <typename I>
__global__ void list_members(I n, const I* __restrict__ map, const I* __restrict__ mate,
                             const I* __restrict__ place, I* __restrict__ members)
{
    long long v = global_thread();
    if (v >= n) return;
    I other = mate[v];
    if (other >= 0 && other < v) return;
    long long k = place[map[v]];
    members[2 * k] = (I)v;
    members[2 * k + 1] = other;
}

// One thread per pair: it reads the rows of its two vertices and writes its own blocks only.  `place`:
// of a vertex, the place of its pair in the order.  `position`: of a pair, its place in its path, from 1.
template <typename I, typename W>
__global__ void collect(I pairs, const I* __restrict__ indptr, const I* __restrict__ indices,
                        const W* __restrict__ data, const I* __restrict__ place,
                        const I* __restrict__ position, const I* __restrict__ members, W* __restrict__ dl,
                        W* __restrict__ d, W* __restrict__ du)
{
    long long k = global_thread();
    if (k >= pairs) return;
    W lower[4] = {}, diagonal[4] = {}, upper[4] = {};
    bool before = position[k] > 1;
    bool after = k + 1 < pairs && position[k + 1] > 1;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        I v = members[2 * k + i];
        if (v < 0) {
            diagonal[3 * i] = W(1);
            continue;
        }
        for (I e = indptr[v]; e < indptr[v + 1]; ++e) {
            I w = indices[e];
            long long there = place[w];
            if (there < k - 1 || there > k + 1) continue;
            bool second = members[2 * there + 1] == w;
            W value = data[e];
#pragma unroll
            for (int c = 0; c < 2; ++c) {
                if (second != (c == 1)) continue;
                if (there == k) diagonal[2 * i + c] = value;
                if (there == k - 1 && before) lower[2 * i + c] = value;
                if (there == k + 1 && after) upper[2 * i + c] = value;
            }
        }
    }
#pragma unroll
    for (int c = 0; c < 4; ++c) {
        dl[4 * k + c] = lower[c];
        d[4 * k + c] = diagonal[c];
        du[4 * k + c] = upper[c];
    }
}

// sums[block] = the sum of |numbers[k]| over the k of this block for which bit k % 4 of `wanted` is set, that
// is, over certain places of 2x2 blocks.  The grid is always the same, so the order of additions is, and the
// result is the same to the last bit.
template <typename W>
__global__ void add_magnitudes(long long m, const W* __restrict__ numbers, unsigned int wanted,
                               double* __restrict__ sums)
{
    double sum = 0;
    for (long long k = global_thread(); k < m; k += all_threads())
        if (wanted >> (k & 3) & 1) sum += magnitude(widened(numbers[k]));
    sum = block_reduce(sum, 0.0, Plus());
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// The same for the diagonal of a matrix with sorted rows.
template <typename I, typename W>
__global__ void add_diagonal(I n, const I* __restrict__ indptr, const I* __restrict__ indices,
                             const W* __restrict__ data, double* __restrict__ sums)
{
    double sum = 0;
    for (long long v = global_thread(); v < n; v += all_threads()) {
        I end = indptr[v + 1], at = first_not_below(indices, indptr[v], end, (I)v);
        if (at < end && indices[at] == v) sum += magnitude(widened(data[at]));
    }
    sum = block_reduce(sum, 0.0, Plus());
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// Paths side by side
//
// Kernels over entries have one thread per entry, so that the lengths of rows do not matter; `rows` holds the
// row of each entry.  Kept elements of a list go to the place that a prefix sum over their flags gives, so
// lists keep their order.

constexpr int SHORT_RUN = 32;  // weights; one thread adds up as many or fewer

// marks[e] += 1 where a row other than the first starts; their prefix sum is the row of each entry.
// Atomic, since an empty row starts at the same entry as the next row.  Caller: marks zero.
template <typename I>
__global__ void mark_starts(I n, I nnz, const I* __restrict__ indptr, I* marks)
{
    long long v = global_thread() + 1;
    if (v < n && indptr[v] < nnz) take(&marks[indptr[v]], I(1));
}

__device__ __forceinline__ double quarter(double a) { return 0.25 * a; }
__device__ __forceinline__ float quarter(float a)
{
    float part;
    asm("mul.rn.f32 %0, %1, 0f3E800000;" : "=f"(part) : "f"(a));  // 0.25; subnormal numbers are kept
    return part;
}

template <typename I, typename W>
__global__ void mark_strong(I nnz, const I* __restrict__ rows, const I* __restrict__ indices,
                            const W* __restrict__ data, const W* __restrict__ heaviest, I* __restrict__ flags)
{
    long long e = global_thread();
    if (e >= nnz) return;
    W one = heaviest[rows[e]], other = heaviest[indices[e]];
    flags[e] = !exactly_less(data[e], quarter(exactly_less(one, other) ? other : one));
}

// The matrix of the entries with a flag; `place` is the prefix sum over the flags.  One thread per entry of
// the old matrix, and one per row.
template <typename I, typename W>
__global__ void keep_strong(I n, I nnz, const I* __restrict__ indptr, const I* __restrict__ indices,
                            const W* __restrict__ data, const I* __restrict__ place, I* __restrict__ out_indptr,
                            I* __restrict__ out_indices, W* __restrict__ out_data)
{
    long long e = global_thread();
    if (e <= n) out_indptr[e] = place[indptr[e]];
    if (e >= nnz || place[e] == place[e + 1]) return;
    out_indices[place[e]] = indices[e];
    out_data[place[e]] = data[e];
}

// length[path] = the number of its vertices, written by the thread of the last one.
template <typename I>
__global__ void measure_paths(I n, const I* __restrict__ perm, const I* __restrict__ path,
                              const I* __restrict__ position, I* __restrict__ length)
{
    long long i = global_thread();
    if (i >= n) return;
    I v = perm[i];
    if (i + 1 == n || position[perm[i + 1]] == 1) length[path[v]] = position[v];
}

// Flags for the edges between two paths, each edge once.
template <typename I>
__global__ void mark_between(I nnz, const I* __restrict__ rows, const I* __restrict__ indices,
                             const I* __restrict__ path, I* __restrict__ flags)
{
    long long e = global_thread();
    if (e < nnz) flags[e] = rows[e] < indices[e] && path[rows[e]] != path[indices[e]];
}

// Lists each edge between two paths: both paths as one key, the lower path in the upper bits; the positions
// of its ends in them; its weight.
template <typename I, typename W>
__global__ void list_between(I nnz, const I* __restrict__ rows, const I* __restrict__ indices,
                             const W* __restrict__ data, const I* __restrict__ path,
                             const I* __restrict__ position, const I* __restrict__ place, int shift,
                             unsigned long long* __restrict__ keys, I* __restrict__ here, I* __restrict__ there,
                             double* __restrict__ weights)
{
    long long e = global_thread();
    if (e >= nnz || place[e] == place[e + 1]) return;
    I u = rows[e], v = indices[e], k = place[e];
    bool swap = path[u] > path[v];
    I low = swap ? v : u, high = swap ? u : v;
    keys[k] = (unsigned long long)path[low] << shift | (unsigned long long)path[high];
    here[k] = position[low];
    there[k] = position[high];
    weights[k] = widened(data[e]);
}

// One thread per place in the sorted order: the key there, and whether it differs from the key before.
template <typename K>
__global__ void sort_keys(long long m, const K* __restrict__ keys, const long long* __restrict__ order,
                          K* __restrict__ sorted, bool* __restrict__ first)
{
    long long k = global_thread();
    if (k >= m) return;
    K key = keys[order[k]];
    sorted[k] = key;
    if (first != nullptr) first[k] = k == 0 || keys[order[k - 1]] != key;
}

// Sums over runs of equal keys in a sorted order, from the first weight on, as on the CPU.  Run r begins at
// starts[r], and ends where the next one begins, or at m.  Weight k is weights[order[k]], or
// weights[order[k] - size] where the list of `size` weights is used twice.
struct Run {
    const long long* __restrict__ order;
    const double* __restrict__ weights;
    long long size;

    __device__ __forceinline__ double operator[](long long k) const
    {
        long long at = order[k];
        return weights[at < size ? at : at - size];
    }
};

// One thread per run; runs of more than SHORT_RUN weights are listed.
template <typename H>
__global__ void add_runs(long long runs, const H* __restrict__ starts, long long m,
                         const long long* __restrict__ order, const double* __restrict__ weights, long long size,
                         double* __restrict__ sums, long long* __restrict__ listed, unsigned long long* count)
{
    long long r = global_thread();
    if (r >= runs) return;
    long long begin = starts[r], end = r + 1 < runs ? (long long)starts[r + 1] : m;
    if (end - begin > SHORT_RUN) {
        listed[take(count, 1ull)] = r;
        return;
    }
    Run run{order, weights, size};
    double sum = 0;
    for (long long k = begin; k < end; ++k) sum += run[k];
    sums[r] = sum;
}

// One warp per listed run.  Each lane loads one weight, and all lanes add all of them in the same order.
template <typename H>
__global__ void add_long_runs(long long runs, const H* __restrict__ starts, long long m,
                              const long long* __restrict__ order, const double* __restrict__ weights,
                              long long size, double* __restrict__ sums, const long long* __restrict__ listed,
                              const unsigned long long* __restrict__ count)
{
    Run run{order, weights, size};
    long long warps = all_threads() / WARP;
    for (long long k = global_thread() / WARP; k < (long long)*count; k += warps) {
        long long r = listed[k];
        long long begin = starts[r], end = r + 1 < runs ? (long long)starts[r + 1] : m;
        double sum = 0, mine = begin + lane() < end ? run[begin + lane()] : 0;
        for (long long first = begin; first < end; first += WARP) {
            long long ahead = first + WARP + lane();
            double next = ahead < end ? run[ahead] : 0;
#pragma unroll
            for (int j = 0; j < WARP; ++j) sum += __shfl_sync(ALL, mine, j);  // a zero changes nothing
            mine = next;
        }
        if (lane() == 0) sums[r] = sum;
    }
}

// One thread per pair of joined paths: the two paths from the first key of its run.
template <typename I, typename H>
__global__ void unpack(long long pairs, const H* __restrict__ heads, const unsigned long long* __restrict__ sorted,
                       int shift, I* __restrict__ lower, I* __restrict__ upper)
{
    long long k = global_thread();
    if (k >= pairs) return;
    unsigned long long key = sorted[heads[k]];
    lower[k] = (I)(key >> shift);
    upper[k] = (I)(key & ((1ull << shift) - 1));
}

template <typename I>
__global__ void mark_coupled(long long m, const unsigned long long* __restrict__ keys, int shift,
                             const I* __restrict__ couple, bool* __restrict__ kept)
{
    long long k = global_thread();
    if (k < m) kept[k] = couple[keys[k] >> shift] == (I)(keys[k] & ((1ull << shift) - 1));
}

// Two coupled paths, of P and Q vertices, lie beside each other in one of 2 (P + Q) ways, numbered from 0.
// Numbers below P + Q: here - there + Q, same direction.  The others: P + Q + here + there - 1, opposite one.
// Each number has a bin.  The first P + Q bins of a couple take the places of its vertices in the order of
// the forest, first the Q of the upper path, then the P of the lower one; the others lie n further on.
template <typename I>
struct Couple {
    I lower, upper;
    long long p, q, lower_start, upper_start;

    __device__ __forceinline__ Couple(I one, I other, const I* length, const I* place)
        : lower(min(one, other)), upper(max(one, other)), p(length[lower]), q(length[upper]),
          lower_start(place[lower]), upper_start(place[upper])
    {
    }
    __device__ __forceinline__ long long bin(long long t) const
    {
        return t < q ? upper_start + t : lower_start + (t - q);
    }
};

// One thread per edge between coupled paths: the bins of its two numbers, and its weight.
template <typename I, typename K>
__global__ void list_bins(long long kept, I n, const long long* __restrict__ edges,
                          const unsigned long long* __restrict__ keys, int shift, const I* __restrict__ here,
                          const I* __restrict__ there, const double* __restrict__ weights,
                          const I* __restrict__ length, const I* __restrict__ place, K* __restrict__ bins,
                          double* __restrict__ out_weights)
{
    long long k = global_thread();
    if (k >= kept) return;
    long long e = edges[k];
    Couple<I> couple((I)(keys[e] >> shift), (I)(keys[e] & ((1ull << shift) - 1)), length, place);
    bins[k] = (K)couple.bin(here[e] - there[e] + couple.q);
    bins[kept + k] = (K)(n + couple.bin((long long)here[e] + there[e] - 1));
    out_weights[k] = weights[e];
}

// One thread per bin: the sum of its weight and those of its two neighbours, added in the CPU's order.  With
// CHOOSE false it raises `most` of its couple to that sum.  With CHOOSE true it lowers `number` to its own
// number if its sum is the most.  Numbers past the last bin need no thread: the number before has the same sum.
template <typename I, bool CHOOSE>
__global__ void compare_bins(I n, const I* __restrict__ perm, const I* __restrict__ path,
                             const I* __restrict__ position, const I* __restrict__ couple,
                             const I* __restrict__ length, const I* __restrict__ place,
                             const double* __restrict__ sums, unsigned long long* most,
                             unsigned long long* number)
{
    long long b = global_thread();
    if (b >= 2 * (long long)n) return;
    long long kind = b >= n ? 1 : 0;
    I v = perm[b - kind * n], mine = path[v], other = couple[mine];
    if (other < 0) return;
    Couple<I> two(mine, other, length, place);
    long long t = position[v] - 1 + (mine == two.lower ? two.q : 0);
    const double* of_kind = sums + kind * n;
    double after = t + 1 < two.p + two.q ? of_kind[two.bin(t + 1)] : 0;
    double before = t > 0 ? of_kind[two.bin(t - 1)] : 0;
    unsigned long long sum = value_bits(after + of_kind[two.bin(t)] + before);  // positive: bits keep the order
    unsigned long long best = load_relaxed(&most[two.lower]);
    if (!CHOOSE && sum > best) raise_to(&most[two.lower], sum);
    if (CHOOSE && sum == best) lower_to(&number[two.lower], (unsigned long long)(kind * (two.p + two.q) + t));
}

// One thread per vertex: its mate.
template <typename I>
__global__ void pair_up(I n, const I* __restrict__ perm, const I* __restrict__ path,
                        const I* __restrict__ position, const I* __restrict__ couple,
                        const I* __restrict__ length, const I* __restrict__ place,
                        const unsigned long long* __restrict__ number, I* __restrict__ mate)
{
    long long v = global_thread();
    if (v >= n) return;
    I mine = path[v], other = couple[mine];
    long long at = position[v], partner;
    if (other < 0) {  // a path without a couple: positions 1 with 2, 3 with 4
        other = mine;
        partner = ((at - 1) ^ 1) + 1;
    } else {
        Couple<I> two(mine, other, length, place);
        long long t = (long long)number[two.lower], all = two.p + two.q;
        if (t >= all)
            partner = t - all + 1 - at;
        else
            partner = mine == two.lower ? at - (t - two.q) : at + (t - two.q);
    }
    mate[v] = partner >= 1 && partner <= length[other] ? perm[place[other] + partner - 1] : I(-1);
}
