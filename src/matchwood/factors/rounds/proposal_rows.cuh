// The proposals of one row, by a thread, by a warp, or by several blocks.  What is done with an entry:
// proposals.cuh; how entries come into shared memory: proposal_tiles.cuh.
#pragma once
#include "matchwood/proposals.cuh"

constexpr int PROPOSAL_BLOCK = 128;  // threads; a tile of a 27-point mesh has 73 rows, so that more had no work
constexpr int UNROLL = 4;   // entries that a lane loads before it uses the first; 2 is slower on R-MAT

// An entry in shared memory.
template <typename I, typename W>
struct alignas(2 * (sizeof(I) > sizeof(W) ? sizeof(I) : sizeof(W))) Entry {
    I col;
    W value;
};

// The entries of a tile in shared memory.
template <typename I, typename W>
struct Entries {
    const W* values;               // in the first round, or else
    const Entry<I, W>* staged;     // with the columns
    const I* indices;              // of the tile, in the matrix
    typename WeightKey<W>::Key common;  // key of all entries; 0: they have different ones
};

// ---- the best of a row, by ties="index" ----

// An entry is stored as its place in the tile, which within a row grows with the column.
template <typename W, int N>
struct Best {
    typename WeightKey<W>::Key key[N];
    int at[N];
    __device__ __forceinline__ Best()
    {
#pragma unroll
        for (int s = 0; s < N; ++s) key[s] = 0, at[s] = -1;
    }
    // Add an entry whose place is after all others so far.
    __device__ __forceinline__ void add(typename WeightKey<W>::Key next, int k)
    {
        if (N > 2 && next <= key[N - 1]) return;
        bool better[N];
#pragma unroll
        for (int s = 0; s < N; ++s) better[s] = next > key[s];
#pragma unroll
        for (int s = N - 1; s > 0; --s) {
            key[s] = better[s - 1] ? key[s - 1] : better[s] ? next : key[s];
            at[s] = better[s - 1] ? at[s - 1] : better[s] ? k : at[s];
        }
        key[0] = better[0] ? next : key[0];
        at[0] = better[0] ? k : at[0];
    }
};

// `best` becomes the best of all lanes; in all of them, or for 8-byte keys only in lane 0.
template <int N>
__device__ __forceinline__ void merge_warp(Best<float, N>& best)
{
    Best<float, N> all;
#pragma unroll
    for (int s = 0; s < N; ++s) {
        int most = __reduce_max_sync(ALL, best.key[0]);
        unsigned first = __reduce_min_sync(ALL, best.key[0] == most ? (unsigned)best.at[0] : ALL);
        all.key[s] = most;
        all.at[s] = (int)first;
        if (best.key[0] == most && best.at[0] == (int)first) {
#pragma unroll
            for (int t = 0; t < N - 1; ++t) best.key[t] = best.key[t + 1], best.at[t] = best.at[t + 1];
            best.key[N - 1] = 0, best.at[N - 1] = -1;
        }
    }
    best = all;
}
template <int N>
__device__ __forceinline__ void merge_warp(Best<double, N>& best)
{
    for (int step = WARP / 2; step > 0; step /= 2) {
        Candidate<int, double, false> mine[N], other[N];
#pragma unroll
        for (int s = 0; s < N; ++s) {
            mine[s].key = best.key[s], mine[s].col = best.at[s];
            other[s] = shuffle_down(mine[s], step);
        }
        merge_sorted<N>(mine, other);
#pragma unroll
        for (int s = 0; s < N; ++s) best.key[s] = mine[s].key, best.at[s] = mine[s].col;
    }
}

// Improve `best` by every STEP-th entry of a row, from k on.
template <int STEP, typename I, typename W, int N, bool FIRST>
__device__ __forceinline__ void find_best(const Entries<I, W>& from, int k, int end,
                                            const Propose<I, W, N, false, FIRST>& op,
                                            const typename Propose<I, W, N, false, FIRST>::Accumulator& sum,
                                            Best<W, N>& best, typename WeightKey<W>::Key& differ)
{
    using Key = typename WeightKey<W>::Key;
    for (; k < end; k += UNROLL * STEP) {
        Key key[UNROLL];
        I col[UNROLL];
        unsigned word[UNROLL];
#pragma unroll
        for (int a = 0; a < UNROLL; ++a) {
            if (FIRST) {  // may load entries after the row, which are not used
                key[a] = WeightKey<W>::of(from.values[product_place(k + a * STEP)]);
            } else {
                Entry<I, W> entry = from.staged[product_place(min(k + a * STEP, end - 1))];
                col[a] = entry.col;
                key[a] = from.common == 0 ? WeightKey<W>::of(entry.value) : from.common;
            }
        }
        if (!FIRST) {
#pragma unroll
            for (int a = 0; a < UNROLL; ++a) word[a] = sum.open[2 * (long long)(col[a] >> 5)];
        }
#pragma unroll
        for (int a = 0; a < UNROLL; ++a) {
            bool mine = a == 0 || k + a * STEP < end;
            if (FIRST && mine) differ |= key[a] ^ from.common;
            if (!mine || (!FIRST && !op.admits(sum, col[a], word[a]))) key[a] = 0;
            best.add(key[a], k + a * STEP);
        }
        if (!FIRST && from.common != 0 && best.key[N - 1] != 0) break;  // the rest is not better
    }
}

template <typename I, typename W, int N, bool FIRST>
__device__ __forceinline__ void finish_row(const Entries<I, W>& from, I row, const Best<W, N>& best,
                                           typename Propose<I, W, N, false, FIRST>::Accumulator& sum,
                                           Propose<I, W, N, false, FIRST>& op)
{
#pragma unroll
    for (int s = 0; s < N; ++s) {
        int k = best.at[s];
        sum.best[s].key = best.key[s];
        sum.best[s].col = best.key[s] == 0 ? I(-1) : FIRST ? from.indices[k] : from.staged[product_place(k)].col;
    }
    op.finish(row, sum);
}

template <typename I, typename W, int N, bool FIRST>
__device__ __forceinline__ void propose_short(const Entries<I, W>& from, I row, int begin, int end,
                                              Propose<I, W, N, false, FIRST>& op, typename WeightKey<W>::Key& differ)
{
    auto sum = op.start(row);
    Best<W, N> best;
    find_best<1>(from, begin, end, op, sum, best, differ);
    finish_row(from, row, best, sum, op);
}

template <typename I, typename W, int N, bool FIRST>
__device__ __forceinline__ void propose_long(const Entries<I, W>& from, I row, int begin, int end,
                                             Propose<I, W, N, false, FIRST>& op, typename WeightKey<W>::Key& differ)
{
    auto sum = op.start(row);
    Best<W, N> best;
    find_best<WARP>(from, begin + lane(), end, op, sum, best, differ);
    merge_warp(best);
    if (lane() == 0) finish_row(from, row, best, sum, op);
}

// ---- the same by hash ----

template <typename I, typename W, int N>
__device__ __forceinline__ void propose_short(const Entries<I, W>& from, I row, int begin, int end,
                                              Propose<I, W, N, true, false>& op, typename WeightKey<W>::Key&)
{
    auto sum = op.start(row);
    for (int k = begin; k < end; ++k) {
        Entry<I, W> entry = from.staged[product_place(k)];
        op.add(sum, WeightKey<W>::of(entry.value), entry.col);
    }
    op.finish(row, sum);
}

template <typename I, typename W, int N>
__device__ __forceinline__ void propose_long(const Entries<I, W>& from, I row, int begin, int end,
                                             Propose<I, W, N, true, false>& op, typename WeightKey<W>::Key&)
{
    auto sum = op.start(row);
    for (int k = begin + lane(); k < end; k += WARP) {
        Entry<I, W> entry = from.staged[product_place(k)];
        op.add(sum, WeightKey<W>::of(entry.value), entry.col);
    }
    op.merge_lanes(sum, WARP);
    if (lane() == 0) op.finish(row, sum);
}

// ---- a chunk of a long row ----

// The last block to finish a chunk merges them all.
// Races: partial results are written before, and read after, a fence around the count of chunks.
template <typename I, typename W, int N, bool HASH, bool FIRST>
__device__ __noinline__ bool propose_chunk(Problem<I, W> p, bool charged, I tile, I row, I entry, int entries,
                                           unsigned char* storage)
{
    using Op = Propose<I, W, N, HASH, FIRST>;
    struct Part {
        typename Op::Entry best[N];
    };
    Op op{p, charged, false};
    Part* parts = reinterpret_cast<Part*>(storage);
    typename Op::Accumulator sum = op.start(row);
    if (sum.taken < 0) return false;
    for (int first = threadIdx.x; first < entries; first += CHUNK_AHEAD * PROPOSAL_BLOCK) {
        typename Op::Key key[CHUNK_AHEAD];
        I col[CHUNK_AHEAD];
#pragma unroll
        for (int a = 0; a < CHUNK_AHEAD; ++a) {
            I k = entry + min(first + a * PROPOSAL_BLOCK, entries - 1);
            key[a] = WeightKey<W>::of(p.data[k]);
            col[a] = p.indices[k];
        }
#pragma unroll
        for (int a = 0; a < CHUNK_AHEAD; ++a)
            if (first + a * PROPOSAL_BLOCK < entries) op.add(sum, key[a], col[a]);
    }
#pragma unroll
    for (int s = 0; s < N; ++s) parts[threadIdx.x].best[s] = sum.best[s];
    __syncthreads();
    if (warp() != 0) return false;
    for (int t = lane() + WARP; t < PROPOSAL_BLOCK; t += WARP) op.merge(sum, parts[t].best);
    op.merge_lanes(sum, WARP);
    I row_start = p.indptr[row];
    unsigned int chunks = (unsigned int)((p.indptr[row + 1] - row_start + ROW_CHUNK - 1) / ROW_CHUNK);
    if (chunks > 1) {
        I first_tile = tile - (I)((entry - row_start) / ROW_CHUNK);
        Part* partial = reinterpret_cast<Part*>(p.partials) + first_tile;
        bool last = false;
        if (lane() == 0) {
#pragma unroll
            for (int s = 0; s < N; ++s) partial[tile - first_tile].best[s] = sum.best[s];
            __threadfence();
            last = atomicAdd(&p.chunks_done[first_tile], 1u) == chunks - 1;
            if (last) p.chunks_done[first_tile] = 0;
            __threadfence();
        }
        if (!__shfl_sync(ALL, last, 0)) return false;
        sum = op.start(row);
        for (unsigned int c = lane(); c < chunks; c += WARP) op.merge(sum, partial[c].best);
        op.merge_lanes(sum, WARP);
    }
    if (lane() == 0) op.finish(row, sum);
    return op.proposed;
}
