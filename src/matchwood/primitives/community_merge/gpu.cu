// A round of joins on the GPU.  Host side: gpu.py; the rule: __init__.py.
//
// WIDTH lanes have a row.  Each keeps the best of the neighbours it sees, then they compare: first gains,
// and hashes only where two gain the same.  Rows of more than LONG_ROW entries are cut into pieces, so that
// many blocks share a hub; what the pieces found is compared in a launch of its own:
//   join_rows      short rows; lists the long ones and their pieces
//   join_pieces    a block to a piece
//   join_long      a warp to a long row
#include "matchwood/atomics.cuh"
#include "matchwood/hashing.cuh"
#include "matchwood/threads.cuh"

constexpr int BLOCK = 256;      // threads
constexpr int LONG_ROW = 1024;  // entries; longer rows are cut into pieces
constexpr int PIECE = 4096;     // entries
constexpr int PIECES = 0, LONG_ROWS = 1;  // words: how many are listed

// What does not change in a round.
template <typename I>
struct Communities {
    const I* indptr;
    const I* indices;
    const long long* weights;  // null: all weigh 1
    const long long* volume;
    const I* names;
    double total, resolution;

    __device__ __forceinline__ unsigned long long mixed(I r) const { return mix64((unsigned long long)names[r]); }

    // In the same order of operations on all engines; rounded after each, so no fused multiplication.
    __device__ __forceinline__ double gain(I entry, double scaled, I u) const
    {
        long long w = weights == nullptr ? 1 : weights[entry];
        return __dsub_rn((double)w, __ddiv_rn(__dmul_rn(scaled, (double)volume[u]), total));
    }

    // `pick` where it is above r, else r.
    __device__ __forceinline__ I joined(I r, I pick) const
    {
        if (pick < 0) return r;
        long long mine = volume[r], its = volume[pick];
        return (mine != its ? mine < its : mixed(r) < mixed(pick)) ? pick : r;
    }
};

template <typename I>
struct Pick {
    double gain;
    I who;  // -1: none gains
};

// The larger gain, of equal ones the larger hash.
template <typename I>
__device__ __forceinline__ Pick<I> larger(const Communities<I>& all, const Pick<I>& a, const Pick<I>& b)
{
    if (b.who < 0 || a.who < 0) return a.who < 0 ? b : a;
    if (a.gain != b.gain) return a.gain > b.gain ? a : b;
    return all.mixed(a.who) > all.mixed(b.who) ? a : b;
}

// The best of entries first, first + step, ... below `end` of row r.
template <typename I>
__device__ __forceinline__ Pick<I> best_of_entries(const Communities<I>& all, I r, long long first, long long end,
                                                   int step)
{
    Pick<I> best{0.0, I(-1)};
    double scaled = __dmul_rn(all.resolution, (double)all.volume[r]);
    for (long long e = first; e < end; e += step) {
        I u = all.indices[e];
        double gain = u == r ? 0.0 : all.gain((I)e, scaled, u);
        if (gain > 0) best = larger(all, best, Pick<I>{gain, u});
    }
    return best;
}

// The best of WIDTH lanes, in each of them.  All lanes of the warp call.
template <int WIDTH, typename I>
__device__ __forceinline__ Pick<I> best_of_lanes(const Communities<I>& all, const Pick<I>& mine)
{
    double most = warp_reduce<WIDTH>(mine.gain, Most());
    bool is_best = mine.who >= 0 && mine.gain == most;
    unsigned group = (0xffffffffu >> (WARP - WIDTH)) << (lane() & ~(WIDTH - 1));
    unsigned best = __ballot_sync(ALL, is_best) & group;
    if (__any_sync(ALL, __popc(best) > 1)) {
        unsigned long long hash = is_best ? all.mixed(mine.who) : 0;
        is_best = warp_reduce<WIDTH>(hash, Most()) == hash && is_best;  // mix64 is one to one: no ties
        best = __ballot_sync(ALL, is_best) & group;
    }
    return Pick<I>{most, __shfl_sync(ALL, mine.who, best == 0 ? lane() : __ffs(best) - 1)};
}

// What long rows are cut into.  Row k of the list has the pieces first[k] ..., piece_row their places in it.
template <typename I>
struct Pieces {
    I* row;
    I* first;
    I* piece_row;
    double* gain;
    I* who;
    unsigned long long* words;

    __device__ __forceinline__ static long long count(long long length) { return (length + PIECE - 1) / PIECE; }

    __device__ __forceinline__ void list(I r, long long length) const
    {
        long long pieces = count(length);
        I at = (I)take(&words[PIECES], (unsigned long long)pieces), k = (I)take(&words[LONG_ROWS], 1ull);
        row[k] = r;
        first[k] = at;
        for (long long p = 0; p < pieces; ++p) piece_row[at + p] = k;
    }
};

template <typename I, int WIDTH>
__global__ void __launch_bounds__(BLOCK)
    join_rows(I n, const I* __restrict__ indptr, const I* __restrict__ indices, const long long* __restrict__ weights,
              const long long* __restrict__ volume, const I* __restrict__ names, double total, double resolution,
              I* target, I* long_row, I* long_first, I* piece_row, double* piece_gain, I* piece_who,
              unsigned long long* words)
{
    Communities<I> all{indptr, indices, weights, volume, names, total, resolution};
    long long r = global_thread() / WIDTH;
    int mine = lane() & (WIDTH - 1);
    long long begin = r < n ? indptr[r] : 0, end = r < n ? indptr[r + 1] : 0;
    bool is_short = r < n && end - begin <= LONG_ROW;
    Pick<I> best{0.0, I(-1)};
    if (is_short) best = best_of_entries(all, (I)r, begin + mine, end, WIDTH);
    best = best_of_lanes<WIDTH>(all, best);
    if (r >= n || mine != 0) return;
    if (is_short)
        target[r] = all.joined((I)r, best.who);
    else
        Pieces<I>{long_row, long_first, piece_row, piece_gain, piece_who, words}.list((I)r, end - begin);
}

template <typename I>
__global__ void __launch_bounds__(BLOCK)
    join_pieces(const I* __restrict__ indptr, const I* __restrict__ indices, const long long* __restrict__ weights,
                const long long* __restrict__ volume, const I* __restrict__ names, double total, double resolution,
                const I* long_row, const I* long_first, const I* piece_row, double* piece_gain, I* piece_who,
                const unsigned long long* words)
{
    __shared__ Pick<I> found[BLOCK / WARP];
    Communities<I> all{indptr, indices, weights, volume, names, total, resolution};
    for (long long p = blockIdx.x; p < (long long)words[PIECES]; p += gridDim.x) {
        I k = piece_row[p], r = long_row[k];
        long long begin = indptr[r] + (p - long_first[k]) * PIECE, end = indptr[r + 1];
        if (end > begin + PIECE) end = begin + PIECE;
        Pick<I> best = best_of_lanes<WARP>(all, best_of_entries(all, r, begin + threadIdx.x, end, BLOCK));
        if (lane() == 0) found[warp()] = best;
        __syncthreads();
        if (threadIdx.x == 0) {
            for (int w = 1; w < BLOCK / WARP; ++w) best = larger(all, best, found[w]);
            piece_gain[p] = best.gain;
            piece_who[p] = best.who;
        }
        __syncthreads();
    }
}

template <typename I>
__global__ void __launch_bounds__(BLOCK)
    join_long(const I* __restrict__ indptr, const long long* __restrict__ volume, const I* __restrict__ names,
              const I* long_row, const I* long_first, const double* piece_gain, const I* piece_who,
              const unsigned long long* words, I* target)
{
    Communities<I> all{indptr, nullptr, nullptr, volume, names, 0.0, 0.0};
    for (long long k = global_thread() / WARP; k < (long long)words[LONG_ROWS]; k += all_threads() / WARP) {
        I r = long_row[k];
        long long pieces = Pieces<I>::count(indptr[r + 1] - indptr[r]);
        Pick<I> best{0.0, I(-1)};
        for (long long p = lane(); p < pieces; p += WARP)
            best = larger(all, best, Pick<I>{piece_gain[long_first[k] + p], piece_who[long_first[k] + p]});
        best = best_of_lanes<WARP>(all, best);
        if (lane() == 0) target[r] = all.joined(r, best.who);
    }
}

constexpr int STEPS = 32;  // up a tree, in one launch
constexpr int UNFINISHED = 0, TREES = 1;  // words of a climb

// One thread per community: its ancestor STEPS further up, or the root, which is its own parent.
template <typename I>
__global__ void climb(I n, const I* __restrict__ parent, I* __restrict__ ancestor, int* __restrict__ is_root,
                      long long* words)
{
    long long v = global_thread();
    if (v >= n) return;
    I at = parent[v];
    is_root[v] = at == v;
    I above = parent[at];
    for (int step = 0; step < STEPS && above != at; ++step) {
        at = above;
        above = parent[at];
    }
    ancestor[v] = at;
    if (above != at) words[UNFINISHED] = 1;
}

// One thread per community: the number of its tree.  starts: the roots before each community, and all.
template <typename I>
__global__ void number_trees(I n, const I* __restrict__ root, const I* __restrict__ starts, I* __restrict__ label,
                             I* __restrict__ roots, long long* words)
{
    long long v = global_thread();
    if (v >= n) return;
    I r = root[v];
    label[v] = starts[r];
    if (r == v) roots[starts[v]] = (I)v;
    if (v == 0) words[TREES] = starts[n];
}
