// Luby's sampling on the GPU.  Host side: gpu.py.  The rule: __init__.py.
//
// One cooperative kernel runs the rounds, the phases of which are those of cpu_sampling.py, with a
// barrier of the grid after each.  Tiles of up to 32 vertices are distributed to the warps in turn; each
// warp keeps those of its vertices that are left in a list of its own.
//
// Rows: one thread per row of up to SHORT entries, the warp for a longer one.  When a vertex with more
// than LONG entries leaves, all warps share them, after one more barrier.  A vertex whose neighbours
// have all gone joins without reading them.  Races: as there.
#include "matchwood/atomics.cuh"
#include "matchwood/grid_barrier.cuh"
#include "matchwood/hashing.cuh"
#include "matchwood/threads.cuh"

constexpr int BLOCK = 512;  // threads
constexpr int SHORT = 16;  // entries of a row that one thread reads
constexpr int LONG = 16384;  // entries; longer rows are shared by all warps
constexpr int BATCH = 8;   // entries whose loads a lane has in flight at once
constexpr unsigned char OUT = 0, JOINED = 1, FREE = 2, DRAWN = 3, WINNER = 4, LEAVING = 5;
constexpr long long MOST = (1ll << 31) - 1;  // neighbours that count; more would make 2 d x overflow
constexpr unsigned long long NO_DRAW = ~0ull;  // larger than any draw

// Words of a round: how many were drawn, the least draw and its vertex (both inverted, so that they
// begin as 0 and grow), how many vertices are left after it, and how many hubs have gone in it.
constexpr int DRAWN_COUNT = 0, LEAST = 1, NEAREST = 2, LEFT = 3, GONE = 4, ROUND_WORDS = 5;

// `each(owner, w, e)` for the entries of the rows of lanes that want it, until it returns true,
// which ends the row (all lanes that hold an entry of it at the same time are asked).  The result:
// whether it did so for the lane's own row.  All lanes of the warp call.
template <typename I, typename Each>
__device__ __forceinline__ bool any_entry(bool wanted, I v, const I* indptr, const I* indices, Each each)
{
    I begin = wanted ? indptr[v] : I(0), end = wanted ? indptr[v + 1] : I(0);
    bool found = false;
    if (end - begin <= SHORT)
        for (I e = begin; e < end && !found; ++e) found = each(v, indices[e]);
    for (unsigned todo = __ballot_sync(ALL, end - begin > SHORT); todo; todo &= todo - 1) {
        int owner = __ffs(todo) - 1;
        I its_v = __shfl_sync(ALL, v, owner);
        I its_begin = __shfl_sync(ALL, begin, owner), its_end = __shfl_sync(ALL, end, owner);
        bool its = false;
        for (I e = its_begin; e < its_end && !its; e += BATCH * WARP) {
            I w[BATCH];
            bool mine = false;
#pragma unroll
            for (int j = 0; j < BATCH; ++j) {
                int t = j * WARP + lane();
                w[j] = its_end - e > t ? indices[e + t] : I(-1);
            }
#pragma unroll
            for (int j = 0; j < BATCH; ++j) mine |= w[j] >= 0 && each(its_v, w[j]);
            its = __any_sync(ALL, mine);
            if (its_end - e <= BATCH * WARP) break;  // e might pass the largest number
        }
        if (lane() == owner) found = its;
    }
    return found;
}

template <typename I>
__device__ __forceinline__ unsigned long long draw(I v, I degree, unsigned long long round, unsigned long long seed)
{
    unsigned long long d = degree < MOST ? (unsigned long long)degree : (unsigned long long)MOST;
    return (hash2((long long)round, v, seed) >> 32) * (2 * d);
}

// live: `room` words for each warp.  hub: a word for each row longer than LONG.  `done` rounds have been made
// by launches before; this one makes at most `rounds`, each with its ROUND_WORDS words, 0 at launch.
template <typename I>
__global__ void __launch_bounds__(BLOCK) sample(
    I n, const I* indptr, const I* indices, unsigned long long seed, long long done, int rounds, int tile, I room,
    unsigned char* state, I* degree, I* hub, I* live, I* sizes, unsigned long long* words, unsigned int* gate)
{
    GridBarrier grid(gate);
    long long warps = all_threads() / WARP, me = global_thread() / WARP;
    I* mine = live + me * room;
    I size = 0;
    if (done > 0) {
        size = sizes[me];
    } else {
        for (long long first = me * tile; first < n; first += warps * tile) {
            long long at = first + lane();
            if (lane() < tile && at < n) {
                store_relaxed(&degree[at], I(indptr[at + 1] - indptr[at]));
                store_relaxed(&state[at], FREE);
                mine[size + lane()] = (I)at;
            }
            size += n - first < tile ? (I)(n - first) : I(tile);
        }
        __syncwarp();
        grid.wait();
    }
    for (int number = 0; number < rounds; ++number, words += ROUND_WORDS) {
        unsigned long long round = (unsigned long long)(done + number);
        // draw
        int drawn = 0;
        unsigned long long least = NO_DRAW;
        for (I i = lane(); i < size; i += WARP) {
            I v = mine[i];
            unsigned long long x = draw(v, load_relaxed(&degree[v]), round, seed);
            if (x >> 32 == 0) {
                store_relaxed(&state[v], DRAWN);
                ++drawn;
            } else if (x < least) {
                least = x;
            }
        }
        drawn = warp_reduce(drawn, Plus());
        least = warp_reduce(least, Least());
        if (lane() == 0 && size > 0) {
            if (drawn) atomicAdd(&words[DRAWN_COUNT], (unsigned long long)drawn);
            if (~least > load_relaxed(&words[LEAST])) atomicMax(&words[LEAST], ~least);
        }
        grid.wait();
        if (load_relaxed(&words[DRAWN_COUNT]) == 0) {
            least = ~load_relaxed(&words[LEAST]);
            for (I i = lane(); i < size; i += WARP) {
                I v = mine[i];
                if (draw(v, load_relaxed(&degree[v]), round, seed) == least)
                    atomicMax(&words[NEAREST], ~(unsigned long long)v);
            }
            grid.wait();
            I nearest = (I)~load_relaxed(&words[NEAREST]);
            for (I i = lane(); i < size; i += WARP)
                if (mine[i] == nearest) store_relaxed(&state[nearest], WINNER);
        } else {
            // resolve
            for (I first = 0; first < size; first += WARP) {
                I i = first + lane();
                I v = i < size ? mine[i] : I(0);
                bool asks = i < size && load_relaxed(&state[v]) == DRAWN;
                bool alone = asks && load_relaxed(&degree[v]) == 0;
                bool loses = any_entry(asks && !alone, v, indptr, indices, [&](I u, I w) {
                    unsigned char other = load_relaxed(&state[w]);
                    if (other != DRAWN && other != WINNER) return false;
                    I its = load_relaxed(&degree[w]), own = load_relaxed(&degree[u]);
                    return its > own || (its == own && w > u);
                });
                if (asks && !loses) store_relaxed(&state[v], WINNER);
            }
        }
        grid.wait();
        // join
        for (I first = 0; first < size; first += WARP) {
            I i = first + lane();
            I v = i < size ? mine[i] : I(0);
            bool joins = i < size && load_relaxed(&state[v]) == WINNER;
            any_entry(joins && load_relaxed(&degree[v]) > 0, v, indptr, indices, [&](I, I w) {
                unsigned char other = load_relaxed(&state[w]);
                if (other == FREE || other == DRAWN) store_relaxed(&state[w], LEAVING);
                return false;
            });
            if (joins) store_relaxed(&state[v], JOINED);
        }
        grid.wait();
        // leave
        I kept = 0;
        for (I first = 0; first < size; first += WARP) {
            I i = first + lane();
            I v = i < size ? mine[i] : I(0);
            unsigned char now = i < size ? load_relaxed(&state[v]) : OUT;
            bool leaves = now == LEAVING, stays = now == FREE || now == DRAWN;
            bool large = leaves && indptr[v + 1] - indptr[v] > LONG;
            if (large) hub[atomicAdd(&words[GONE], 1ull)] = v;
            any_entry(leaves && !large, v, indptr, indices, [&](I, I w) {
                unsigned char other = load_relaxed(&state[w]);
                if (other == FREE || other == DRAWN) take(&degree[w], I(-1));
                return false;
            });
            if (leaves) store_relaxed(&state[v], OUT);
            if (now == DRAWN) store_relaxed(&state[v], FREE);
            unsigned votes = __ballot_sync(ALL, stays);  // all have read theirs
            if (stays) mine[kept + __popc(votes & lanes_below())] = v;
            kept += __popc(votes);
            __syncwarp();
        }
        size = kept;
        if (lane() == 0 && size > 0) atomicAdd(&words[LEFT], (unsigned long long)size);
        grid.wait();
        if (load_relaxed(&words[LEFT]) == 0) return;
        I gone = (I)load_relaxed(&words[GONE]);
        if (gone == 0) continue;
        for (I i = 0; i < gone; ++i) {
            I v = load_relaxed(&hub[i]);
            for (long long e = indptr[v] + global_thread(); e < indptr[v + 1]; e += all_threads())
                if (load_relaxed(&state[indices[e]]) == FREE) take(&degree[indices[e]], I(-1));
        }
        grid.wait();
    }
    if (lane() == 0) sizes[me] = size;
}
