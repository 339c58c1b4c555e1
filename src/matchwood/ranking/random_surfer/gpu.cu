// PageRank on the GPU.  Host side: gpu.py; the rule: __init__.py.
//
// An iteration is two or three launches:
//   pull          WIDTH lanes to a row; rows that follow each other have about the same length (gpu.py)
//   pull_hubs     a block to a row of more than LONG entries, where there are such
//   end_iteration one block: adds up the parts of all blocks, and says whether it is done
//
// What vertices give lies in two arrays that take turns.  A row writes its own words alone, and a block
// its own parts; parts are added up in one order.  So there are no races, and the same device gives the
// same bits again.  After the last iteration launches that are under way return at once.
#include "matchwood/atomics.cuh"
#include "matchwood/threads.cuh"

constexpr int BLOCK = 256;
[[maybe_unused]] constexpr int LONG = 4096;  // entries; longer rows get a block of their own

// Words of a call, as doubles.
constexpr int LOST = 0, ERROR = 1, ITERATIONS = 2, DONE = 3;
[[maybe_unused]] constexpr int WORDS = 4;

// What a vertex has when it pulled so much; adds to what the block has changed, and holds without arcs.
template <typename W>
struct Scores {
    const W* share;
    const W* jump;      // null: the same everywhere
    const W* dangling;  // null: as jump
    W* scores;
    W* given;
    double damping, even, mass;

    __device__ __forceinline__ void take(long long v, W pulled, double& change, double& lost) const
    {
        double to = jump == nullptr ? even : (double)jump[v];
        double after = dangling == nullptr ? to : (double)dangling[v];
        W score = (W)(damping * (double)pulled + (mass * after + (1.0 - damping) * to));
        change += fabs((double)score - (double)scores[v]);
        if (share[v] == W(0)) lost += (double)score;
        scores[v] = score;
        given[v] = score * share[v];
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

template <typename I, typename W>
__device__ __forceinline__ W value_at(I k, const I* indices, const W* weights, const W* given)
{
    W came = given[indices[k]];
    return weights == nullptr ? came : came * weights[k];
}

template <typename I, typename W, int WIDTH>
__global__ void __launch_bounds__(BLOCK)
    pull(I n, const I* order, const I* indptr, const I* indices, const W* weights, const W* given, const W* share,
         const W* jump, const W* dangling, double damping, double even, const double* words, W* scores, W* next_given,
         double* change_parts, double* lost_parts)
{
    if (words[DONE] != 0) return;
    Scores<W> all{share, jump, dangling, scores, next_given, damping, even, damping * words[LOST]};
    constexpr int ROWS = BLOCK / WIDTH;
    double change = 0, lost = 0;
    for (long long first = (long long)blockIdx.x * ROWS; first < n; first += (long long)gridDim.x * ROWS) {
        long long slot = first + threadIdx.x / WIDTH;
        bool is_row = slot < n;
        I v = is_row ? order[slot] : I(0);
        I k = is_row ? indptr[v] : I(0), end = is_row ? indptr[v + 1] : I(0);
        is_row = is_row && end - k <= LONG;
        W sum = 0;
        if (is_row) {
#pragma unroll 4
            for (long long e = k + (long long)(threadIdx.x % WIDTH); e < end; e += WIDTH)
                sum += value_at((I)e, indices, weights, given);
        }
        sum = warp_reduce<WIDTH>(sum, Plus());
        if (is_row && threadIdx.x % WIDTH == 0) all.take(v, sum, change, lost);
    }
    change = block_reduce(change, 0.0, Plus());
    lost = block_reduce(lost, 0.0, Plus());
    if (threadIdx.x == 0) {
        change_parts[blockIdx.x] = change;
        lost_parts[blockIdx.x] = lost;
    }
}

// Blocks take the hubs in turn.
template <typename I, typename W>
__global__ void __launch_bounds__(BLOCK)
    pull_hubs(I hubs, const I* hub, const I* indptr, const I* indices, const W* weights, const W* given, const W* share,
              const W* jump, const W* dangling, double damping, double even, const double* words, W* scores,
              W* next_given, double* change_parts, double* lost_parts)
{
    if (words[DONE] != 0) return;
    Scores<W> all{share, jump, dangling, scores, next_given, damping, even, damping * words[LOST]};
    double change = 0, lost = 0;
    for (long long h = blockIdx.x; h < hubs; h += gridDim.x) {
        I v = hub[h];
        long long end = indptr[v + 1];
        W sum = 0;
        for (long long e = indptr[v] + (long long)threadIdx.x; e < end; e += BLOCK)
            sum += value_at((I)e, indices, weights, given);
        sum = block_reduce(sum, W(0), Plus());
        if (threadIdx.x == 0) all.take(v, sum, change, lost);
    }
    if (threadIdx.x == 0) {
        change_parts[blockIdx.x] = change;
        lost_parts[blockIdx.x] = lost;
    }
}

// One block.  `counts`: an iteration has ended, and not only the first sum been made.
__global__ void end_iteration(int parts, const double* change_parts, const double* lost_parts, double limit, bool counts,
                              double* words)
{
    if (words[DONE] != 0) return;
    double change = 0, lost = 0;
    for (int k = threadIdx.x; k < parts; k += blockDim.x) {
        if (counts) change += change_parts[k];
        lost += lost_parts[k];
    }
    change = block_reduce(change, 0.0, Plus());
    lost = block_reduce(lost, 0.0, Plus());
    if (threadIdx.x != 0) return;
    words[LOST] = lost;
    if (!counts) return;
    words[ERROR] = change;
    words[ITERATIONS] += 1;
    if (change < limit) words[DONE] = 1;
}
