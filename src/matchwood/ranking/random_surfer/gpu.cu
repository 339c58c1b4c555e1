// PageRank on the GPU.  Host side: gpu.py; the rule: __init__.py.
//
// An iteration is one launch.  A block has a piece: rows that follow each other, with at most MOST_ENTRIES
// entries.  Its threads first read all entries of the piece side by side, whatever rows they are of, and
// put what comes into shared memory: so many independent reads hide how long each takes.  Then each row
// is added up from there, and becomes a score.  A row of more than LONG entries is cut into pieces of its
// own; each of them leaves its sum in hub_sums.
//
// The block that comes last adds up the long rows and the sums of all blocks, in one order, and says
// whether it is done.  Pieces depend on the graph alone: the same bits on any device.
//
// Races: what vertices give lies in two arrays that take turns.  A row writes its own words alone, and a
// block its own sums; the last block reads them after a fence.  After the last iteration, launches that
// are under way return at once.
#include "matchwood/atomics.cuh"
#include "matchwood/threads.cuh"

constexpr int BLOCK = 256;                          // threads
[[maybe_unused]] constexpr int SPAN = 1024;         // entries and rows of a piece, but for its last row
constexpr int LONG = 1024;                          // entries; longer rows are cut
constexpr int MOST_ENTRIES = SPAN + LONG;           // of a piece
constexpr int EACH = MOST_ENTRIES / BLOCK;          // entries for a thread

// Words of a call, as doubles.
constexpr int LOST = 0, ERROR = 1, ITERATIONS = 2, DONE = 3;
[[maybe_unused]] constexpr int WORDS = 4;

// The rows that a block adds up, or a part of a long row where `row` is the only one.
template <typename I>
struct Pieces {
    I count, hub_pieces, hubs;
    const I* first;      // rows of piece p: first[p] .. last[p] - 1
    const I* last;
    const I* hub;        // rows of more than LONG entries
    const I* hub_begin;  // pieces of hub h: hub_begin[h] .. hub_begin[h + 1] - 1
    const I* hub_of;     // the hub of a piece
};

// What a vertex has when it pulled so much; adds to what the block has changed, and holds without arcs.
template <typename W>
struct Scores {
    const W* share;
    const W* jump;      // null: the same everywhere
    const W* dangling;  // null: as jump
    W* scores;
    W* given;
    double damping, even, mass;

    __device__ __forceinline__ void take(long long v, double pulled, double& change, double& lost) const
    {
        double to = jump == nullptr ? even : (double)jump[v];
        double after = dangling == nullptr ? to : (double)dangling[v];
        W part = share[v];
        W score = (W)(damping * pulled + (mass * after + (1.0 - damping) * to));
        change += fabs((double)score - (double)scores[v]);
        if (part == W(0)) lost += (double)score;
        scores[v] = score;
        given[v] = score * part;
    }
};

// The sums of a block, for all blocks: [0] changes, [1] what vertices without arcs hold.
struct Sums {
    double* change;
    double* lost;
    double* hub;  // sum of each piece of a long row
    unsigned int* arrived;

    // Leave the sums of this block.  True in all threads of the block that comes last.
    __device__ bool leave(double changed, double held) const
    {
        __shared__ bool is_last;
        changed = block_reduce(changed, 0.0, Plus());
        held = block_reduce(held, 0.0, Plus());
        if (threadIdx.x == 0) {
            change[blockIdx.x] = changed;
            lost[blockIdx.x] = held;
            __threadfence();
            is_last = atomicAdd(arrived, 1u) == gridDim.x - 1;
            if (is_last) *arrived = 0;
            __threadfence();
        }
        __syncthreads();
        return is_last;
    }
};

// One thread to a vertex: what it gives at first, and what those without arcs hold, by blocks.
template <typename W>
__global__ void begin(long long n, const W* share, const W* scores, W* given, double* lost_parts)
{
    double lost = 0;
    for (long long v = global_thread(); v < n; v += all_threads()) {
        given[v] = scores[v] * share[v];
        if (share[v] == W(0)) lost += (double)scores[v];
    }
    lost = block_reduce(lost, 0.0, Plus());
    if (threadIdx.x == 0) lost_parts[blockIdx.x] = lost;
}

// One block: what vertices without arcs hold at first.
__global__ void begin_words(int parts, const double* lost_parts, double* words)
{
    double lost = 0;
    for (int k = threadIdx.x; k < parts; k += blockDim.x) lost += lost_parts[k];
    lost = block_reduce(lost, 0.0, Plus());
    if (threadIdx.x == 0) words[LOST] = lost;
}

// What the entries from `from` on bring to this thread: entry from + thread, then every BLOCK-th.
template <typename I, typename W>
__device__ __forceinline__ void gather(long long from, int count, const I* __restrict__ indices,
                                       const W* __restrict__ weights, const W* __restrict__ given, W (&came)[EACH])
{
    I who[EACH];
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        int at = threadIdx.x + k * BLOCK;
        who[k] = at < count ? indices[from + at] : I(-1);
    }
#pragma unroll
    for (int k = 0; k < EACH; ++k) came[k] = who[k] >= 0 ? given[who[k]] : W(0);
    if (weights == nullptr) return;
#pragma unroll
    for (int k = 0; k < EACH; ++k)
        if (who[k] >= 0) came[k] *= weights[from + (threadIdx.x + k * BLOCK)];
}

// The rows of a piece, from the values of all its entries; `from` is the first entry.
template <typename I, typename W>
__device__ __forceinline__ void add_rows(I first, I last, long long from, const I* __restrict__ indptr, const W* values,
                                         const Scores<W>& all, double& change, double& lost)
{
    int rows = (int)(last - first), lanes = 1;
    while (lanes < WARP && 2 * lanes * rows <= BLOCK) lanes *= 2;
    int steps = (rows * lanes + BLOCK - 1) / BLOCK;
    for (int step = 0; step < steps; ++step) {
        int slot = (step * BLOCK + (int)threadIdx.x) / lanes, mine = threadIdx.x & (lanes - 1);
        long long v = (long long)first + slot;
        W sum = 0;
        if (slot < rows) {
            int end = (int)(indptr[v + 1] - from);
            for (int at = (int)(indptr[v] - from) + mine; at < end; at += lanes) sum += values[at];
        }
        for (int step = lanes / 2; step > 0; step /= 2) sum += __shfl_xor_sync(ALL, sum, step);
        if (slot < rows && mine == 0) all.take(v, (double)sum, change, lost);
    }
}

// The last block: long rows from the sums of their pieces, a thread to a row.
template <typename I, typename W>
__device__ __forceinline__ void add_hubs(const Pieces<I>& pieces, const double* hub_sums, const Scores<W>& all,
                                         double& change, double& lost)
{
    for (I h = threadIdx.x; h < pieces.hubs; h += BLOCK) {
        double sum = 0;
        for (I p = pieces.hub_begin[h]; p < pieces.hub_begin[h + 1]; ++p) sum += load_relaxed(&hub_sums[p]);
        all.take(pieces.hub[h], sum, change, lost);
    }
}

// Blocks 0 .. hub_pieces - 1 have the parts of long rows, since those are the largest; then the others.
template <typename I, typename W>
__global__ void __launch_bounds__(BLOCK)
    pull(I count, I hub_pieces, I hubs, const I* first, const I* last, const I* hub, const I* hub_begin, const I* hub_of,
         const I* __restrict__ indptr, const I* __restrict__ indices, const W* __restrict__ weights,
         const W* __restrict__ given, const W* share, const W* jump, const W* dangling, double damping, double even,
         double limit, W* scores, W* next_given, double* change_sums, double* lost_sums, double* hub_sums,
         unsigned int* arrived, double* words)
{
    if (words[DONE] != 0) return;
    __shared__ W values[MOST_ENTRIES];
    Pieces<I> pieces{count, hub_pieces, hubs, first, last, hub, hub_begin, hub_of};
    Scores<W> all{share, jump, dangling, scores, next_given, damping, even, damping * words[LOST]};
    Sums sums{change_sums, lost_sums, hub_sums, arrived};
    double change = 0, lost = 0;
    W came[EACH];
    if (blockIdx.x < (unsigned)hub_pieces) {
        I h = hub_of[blockIdx.x], v = hub[h];
        long long from = indptr[v] + (long long)((I)blockIdx.x - hub_begin[h]) * MOST_ENTRIES;
        long long left = indptr[v + 1] - from;
        gather(from, left < MOST_ENTRIES ? (int)left : MOST_ENTRIES, indices, weights, given, came);
        double sum = 0;
#pragma unroll
        for (int k = 0; k < EACH; ++k) sum += (double)came[k];
        sum = block_reduce(sum, 0.0, Plus());
        if (threadIdx.x == 0) store_relaxed(&hub_sums[blockIdx.x], sum);
    } else {
        I p = (I)blockIdx.x - hub_pieces, from_row = first[p], to_row = last[p];
        long long from = indptr[from_row];
        gather(from, (int)(indptr[to_row] - from), indices, weights, given, came);
#pragma unroll
        for (int k = 0; k < EACH; ++k) values[threadIdx.x + k * BLOCK] = came[k];
        __syncthreads();
        add_rows(from_row, to_row, from, indptr, values, all, change, lost);
    }
    if (!sums.leave(change, lost)) return;

    change = lost = 0;
    add_hubs(pieces, hub_sums, all, change, lost);
#pragma unroll 8
    for (unsigned k = threadIdx.x; k < gridDim.x; k += BLOCK) {
        change += load_relaxed(&change_sums[k]);
        lost += load_relaxed(&lost_sums[k]);
    }
    change = block_reduce(change, 0.0, Plus());
    lost = block_reduce(lost, 0.0, Plus());
    if (threadIdx.x != 0) return;
    words[LOST] = lost;
    words[ERROR] = change;
    words[ITERATIONS] += 1;
    if (change < limit) words[DONE] = 1;
}
