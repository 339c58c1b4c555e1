// [0,n]-factors on the GPU: one kernel for all rounds.  Host: gpu.py.  The rule and the paper:
// __init__.py.
//
//   begin     all vertices have room; their charges for the first round
//   propose   one pass over the matrix (matchwood/proposal_tiles.cuh): each vertex with room writes
//             those it prefers into its free places
//   confirm   one thread per vertex: which proposals were answered, who has room left, and the
//             charges of the next round
//   settle    one thread per vertex: unanswered places become -1, the preferred neighbour first
//
// A round is `propose` and `confirm`; after each all blocks wait for each other.  `begin` is left out
// where the first round has no charges: there all vertices have room, and no state is read.
//
// A bit of `confirmed` says whether a place is confirmed or free; free places hold the proposals of
// this round, or old ones that are not read.  `state` has a word for 32 vertices
// (matchwood/rooms.cuh), of which `propose` loads half a word for each entry; for millions of
// vertices they lie in the L2 cache.  Charges are hashed once per vertex and round, where the word is
// made.  Hashing them for every entry would cost some 170 instructions per entry (counted, not
// timed), more than all other work.  `common` has the weight that all entries of a tile share, or 0: in later
// rounds such a tile needs no weights, and its rows are read up to the first vertices with room.
//
// Races: `propose` reads `state` and `confirmed`, and each row writes its own places.  `confirm`
// reads all places and writes none; each vertex has its own byte of `confirmed`, each warp its own
// word of `state`.  Flags are set to 1 by relaxed stores, in any order.
#include "matchwood/atomics.cuh"
#include "matchwood/edge_order.cuh"
#include "matchwood/grid_barrier.cuh"
#include "matchwood/hashing.cuh"
#include "matchwood/proposal_tiles.cuh"

// Words of `flags`: three that the host reads; whether any vertex proposed, and was answered, in an even and in an
// odd round; two of the barrier.
constexpr int STOP = 0, ROUNDS = 1, IDLE = 2, PROPOSED = 3, ANSWERED = 5, BARRIER = 7;
[[maybe_unused]] constexpr int WORDS = 9;
// What a launch does.
constexpr int BEGIN = 1, PROPOSE = 2, CONFIRM = 4, SETTLE = 8;

// Blocks of a multiprocessor; more would have too few registers.
template <typename W, int N, bool HASH> constexpr int BLOCKS = HASH ? 1 : N <= 2 && sizeof(W) == 4 ? 10 : 6;

struct Charges {
    long long period, uncharged;  // on in all rounds k but those with k % period == uncharged
    unsigned long long barrier, seed;
    unsigned int r;  // number of the round
    bool on;

    __device__ __forceinline__ bool on_in(int k) const { return k % period != uncharged; }
    __device__ __forceinline__ void set_round(int k)
    {
        on = on_in(k);
        r = (unsigned)(hash2(0, k, seed) >> 32) | 1;
    }
    __device__ __forceinline__ bool of(long long v) const { return on && random_bit((unsigned)v, r, barrier); }
};

__device__ __forceinline__ long long whole_warps(long long rows) { return (rows + WARP - 1) / WARP * WARP; }

// ---- begin ----

// One thread per vertex, whole warps.
template <typename I, typename W>
__device__ __forceinline__ void begin(const Problem<I, W>& p, I rows, I tiles, const Charges& charges)
{
    for (long long t = global_thread(); t < tiles; t += all_threads()) p.common[t] = 0;
    for (long long v = global_thread(); v < whole_warps(rows); v += all_threads()) {
        bool room = v < rows;
        if (room) p.confirmed[v] = 0;
        write_state(&p.state[v / 32], room, room && charges.of(v));
    }
}

// ---- confirm ----

// The places of v that are confirmed now; *any becomes true when v has proposed.
template <typename I, int N>
__device__ __forceinline__ unsigned answered(const I* neighbours, int n, I v, unsigned taken, bool* any)
{
    unsigned now = taken;
    if (N == 2 && n == 2) {
        const Two<I>* pairs = reinterpret_cast<const Two<I>*>(neighbours);
        Two<I> mine = pairs[v], none = {I(-1), I(-1)};
        bool first = !(taken & 1) && mine.first >= 0, second = !(taken & 2) && mine.second >= 0;
        Two<I> one = first ? pairs[mine.first] : none, other = second ? pairs[mine.second] : none;
        *any = first || second;
        if (one.first == v || one.second == v) now |= 1;
        if (other.first == v || other.second == v) now |= 2;
        return now;
    }
#pragma unroll
    for (int s = 0; s < N; ++s) {
        if (s >= n || (taken >> s & 1)) continue;
        I w = neighbours[(long long)v * n + s];
        if (w < 0) continue;
        *any = true;
        bool mutual = false;
#pragma unroll
        for (int t = 0; t < N; ++t)
            if (t < n) mutual |= neighbours[(long long)w * n + t] == v;
        if (mutual) now |= 1u << s;
    }
    return now;
}

// One thread per vertex, whole warps.  A vertex that found no neighbour in a round without charges
// never will, and its neighbours are full: it counts as full too.  Not so where the matrix is not
// symmetric (`directed`); there it also matters whether anything was confirmed.
// `begun`: there are states to read.
template <typename I, typename W, int N>
__device__ __forceinline__ void confirm(const Problem<I, W>& p, I rows, bool begun, bool charged,
                                        const Charges& next, bool directed, int* news_flag)
{
    unsigned all = (1u << p.n) - 1;
    for (long long v = global_thread(); v < whole_warps(rows); v += all_threads()) {
        bool room = v < rows, news = false;
        if (begun) {
            unsigned long long word = p.state[v / 32];
            if (word == 0) continue;
            room = room && has_room(word, (unsigned)v);
        }
        if (room) {
            unsigned taken = begun ? p.confirmed[v] : 0;
            bool any = false;
            unsigned now = answered<I, N>(p.neighbours, p.n, (I)v, taken, &any);
            news = now != taken;
            if (news || !begun) p.confirmed[v] = (unsigned char)now;
            room = now != all && (charged || any || directed);
        }
        write_state(&p.state[v / 32], room, room && next.of(v));
        if (directed && __any_sync(ALL, news) && lane() == 0) store_relaxed(news_flag, 1);
    }
}

// ---- settle ----

// One thread per vertex.  Most neighbours are in place already, and nothing is written for them.
template <typename I, typename W>
__device__ __forceinline__ void settle(const Problem<I, W>& p, I rows, bool by_hash)
{
    int n = p.n;
    for (long long v = global_thread(); v < rows; v += all_threads()) {
        unsigned taken = p.confirmed[v];
        I* list = p.neighbours + v * n;
        W* weight = p.weights + v * n;
        int kept = 0;
        for (int s = 0; s < n; ++s) {
            if (!(taken >> s & 1)) continue;
            I w = list[s];
            W heavy = weight[s];
            int place = kept++;
            for (; place > 0 && prefers(heavy, (I)v, w, weight[place - 1], (I)v, list[place - 1], p.seed, by_hash); --place) {
                list[place] = list[place - 1];
                weight[place] = weight[place - 1];
            }
            if (place == s) continue;
            list[place] = w;
            weight[place] = heavy;
        }
        for (; kept < n; ++kept) {
            list[kept] = I(-1);
            weight[kept] = W(0);
        }
    }
}

// ---- all of it ----

// The `steps` of the rounds k to last - 1, on a grid of resident blocks.  Stops when the factor is
// maximal, or after `most_idle` rounds in a row that confirm nothing (of which `idle` were before).
// Settles then, or after the last round where SETTLE says so.  Launches after one that stopped are
// not allowed.
template <typename I, typename W, int N, bool HASH, int TILE>
__global__ void __launch_bounds__(PROPOSAL_BLOCK, BLOCKS<W, N, HASH>)
rounds(I rows, I tiles, const I* __restrict__ indptr, const I* __restrict__ indices, const W* __restrict__ data,
       const I* __restrict__ tile_row, const I* __restrict__ tile_entry, unsigned char* partials,
       unsigned int* chunks_done, unsigned long long* state, unsigned char* confirmed, W* common, I* neighbours,
       W* weights, int n, long long period, long long uncharged, unsigned long long barrier, unsigned long long seed,
       bool directed, bool fresh, int steps, int k, int last, long long idle, long long most_idle, int* flags)
{
    __shared__ TileSpace<I, W, N, HASH, TILE> space;
    Problem<I, W> p{indptr, indices, data, tile_row, tile_entry, partials, chunks_done,
                    state, confirmed, common, neighbours, weights, seed, n};
    Charges charges{period, uncharged, barrier, seed, 0, false};
    GridBarrier grid(reinterpret_cast<unsigned int*>(flags) + BARRIER);
    if (steps & BEGIN) {
        charges.set_round(k);
        begin(p, rows, tiles, charges);
        grid.wait();
    }
    bool done = steps & SETTLE;
    for (; k < last; ++k) {
        bool first = k == 0 && fresh, charged = charges.on_in(k);
        int* proposed = &flags[PROPOSED + k % 2];
        int* news = &flags[ANSWERED + k % 2];
        if (steps & PROPOSE) {
            bool any = false;
            for (I tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
                if (!HASH && first)
                    any |= propose_tile<I, W, N, HASH, !HASH, TILE>(indptr, p, false, tile, space);
                else
                    any |= propose_tile<I, W, N, HASH, false, TILE>(indptr, p, charged, tile, space);
                __syncthreads();
            }
            if (__any_sync(ALL, any) && lane() == 0 && load_relaxed(proposed) == 0) store_relaxed(proposed, 1);
            if (!(steps & CONFIRM)) continue;
            grid.wait();
        }
        bool stop = !charged && load_relaxed(proposed) == 0;  // line 23: maximal
        if (global_thread() == 0) {  // not read before the next round
            store_relaxed(&flags[PROPOSED + (k + 1) % 2], 0);
            store_relaxed(&flags[ANSWERED + (k + 1) % 2], 0);
        }
        charges.set_round(k + 1);
        if (!stop || first) confirm<I, W, N>(p, rows, !first, charged, charges, directed, news);
        grid.wait();
        if (directed) idle = load_relaxed(news) ? 0 : idle + 1;
        if (global_thread() == 0) flags[STOP] = stop, flags[ROUNDS] = k + 1, flags[IDLE] = (int)idle;
        if (stop || idle == most_idle) {
            done = true;
            break;
        }
    }
    if (done) settle(p, rows, HASH);
}
