// Maximal independent sets on the GPU.  Host side: gpu.py.  The order: order.py.  Luby's sampling is the last part.
//
// ---- The greedy set.
//
// One kernel, all of whose warps are resident.  Tiles of up to 32 vertices, fewer where there are not
// enough for all warps, are distributed to the warps in turn; each warp goes through its undecided
// vertices again and again until none is left, and waits for no other warp: there are no rounds.
//
//   begin     the byte of each vertex, then a barrier of the grid, the only one
//   look      on from the place in the row where a vertex had to wait before: the row is read once
//   join      a vertex that joins puts all its neighbours out, whose rows then need not be read
//
// Rows: one thread reads the next SHORT entries, then the warp reads the rest.  Rows longer than LONG are
// those of hubs, cut into pieces that all warps share; the warp that is done with the last piece of a
// hub decides.
//
// status[v] is OUT, JOINED, or while undecided its place in the order, the larger the earlier.
//
// Links, in the order of indices, where a vertex may wait for a chain as long as the graph.  A vertex
// v that waits for w alone joins just when w does not.  That is noted, link[v] = (w, 1), and where w
// has a link (x, p) as well, link[v] becomes (x, 1 - p), and so on: twice as far at each step.
//
// Races.  A byte goes from undecided to OUT or JOINED once.  v joins when it has seen all neighbours
// before it OUT, which is final, so no neighbour can join as well; and the vertex that puts v out
// has seen, or is, a member among its neighbours.  The greedy set is unique, so schedules do not matter.
// A link stays true, and is written by the owner of v alone.  Nothing else is shared between
// warps, so relaxed accesses will do.
//
// It ends: the first of all undecided vertices has no other to wait for, and its warp is running.
#include "matchwood/atomics.cuh"
#include "matchwood/grid_barrier.cuh"
#include "matchwood/hashing.cuh"
#include "matchwood/threads.cuh"

constexpr int BLOCK = 512;  // threads
constexpr int SHORT = 32;  // entries of a row that a thread reads alone at a time
constexpr int BATCH = 4;   // entries whose loads a lane has in flight at once
constexpr int LONG = 16384;  // entries; a longer row is cut into pieces, which several warps read
constexpr int PIECE = 4096;  // entries of such a piece
constexpr int PASSES_TO_FULL = 8;  // by index, one pass in this number goes over the whole list
constexpr unsigned char OUT = 0, JOINED = 1, FIRST = 2;  // FIRST and above: undecided
constexpr int TOP_CLASS = 62, TOP = 254;                 // as in order.py

constexpr int LINKED = -1;  // place of a vertex that has a link

enum Verdict : int { JOINS, WAITS, LEAVES };

template <typename I>
struct Unsigned;
template <>
struct Unsigned<int> {
    using type = unsigned int;
};
template <>
struct Unsigned<long long> {
    using type = unsigned long long;
};

__device__ __forceinline__ unsigned long long hash_of(unsigned long long start, long long v)
{
    return mix64(start ^ (unsigned long long)v);
}

__device__ __forceinline__ unsigned char place_of(long long v, long long degree, unsigned long long start)
{
    unsigned long long below = (unsigned long long)(degree - 1);
    int bits = 64 - __clzll((long long)below), b = bits > 2 ? bits - 2 : 0;
    int level = 2 * b + (int)(below >> b);
    if (level > TOP_CLASS) level = TOP_CLASS;
    return (unsigned char)(TOP - 4 * level - (int)(hash_of(start, v) >> 62));
}

// Of equal bytes: does w come before v?
template <bool BY_INDEX, typename I>
__device__ __forceinline__ bool precedes(I w, I v, unsigned long long start)
{
    return BY_INDEX ? w < v : hash_of(start, w) < hash_of(start, v);
}

// Read entries from k on, up to `stop`, in a row that goes up to `end`; k is where to go on later.
template <bool BY_INDEX, typename I>
__device__ __forceinline__ Verdict look_alone(I v, unsigned char mine, I& k, I stop, I end, const I* indices,
                                              const unsigned char* status, unsigned long long start)
{
    while (k < stop) {
        I w[BATCH];
        unsigned char other[BATCH];
#pragma unroll
        for (int j = 0; j < BATCH; ++j) w[j] = stop - k > j ? indices[k + j] : I(-1);
#pragma unroll
        for (int j = 0; j < BATCH; ++j) other[j] = w[j] >= 0 ? load_relaxed(&status[w[j]]) : OUT;
#pragma unroll
        for (int j = 0; j < BATCH; ++j)
            if (other[j] == JOINED) return LEAVES;
#pragma unroll
        for (int j = 0; j < BATCH; ++j)
            if (other[j] > mine || (other[j] == mine && precedes<BY_INDEX>(w[j], v, start))) {
                k += j;
                return WAITS;
            }
        k = stop - k > BATCH ? k + BATCH : stop;
        if (BY_INDEX && w[BATCH - 1] > v) k = end;  // rows are sorted: no other is before v
    }
    return JOINS;
}

// v waits for entry k.  Is that the only one?  LEAVES if another has joined.
template <typename I>
__device__ __forceinline__ Verdict look_further(I v, I& k, I end, const I* indices, const unsigned char* status)
{
    for (I e = k + 1; e < end; ++e) {
        I w = indices[e];
        if (w > v) break;
        unsigned char other = e - k < SHORT ? load_relaxed(&status[w]) : FIRST;
        if (other == JOINED) return LEAVES;
        if (other >= FIRST) return WAITS;
    }
    k = LINKED;
    return WAITS;
}

// v has a link: is its end decided?  If not, link further.
template <typename I, typename U>
__device__ __forceinline__ Verdict follow(I v, const unsigned char* status, U* link)
{
    U mine = load_relaxed(&link[v]);
    unsigned char other = load_relaxed(&status[mine >> 1]);
    if (other < FIRST) return (other == JOINED) != (bool)(mine & 1) ? JOINS : LEAVES;
    U further = load_relaxed(&link[mine >> 1]);
    if (further != ~U(0)) store_relaxed(&link[v], U(further ^ (mine & 1)));
    return WAITS;
}

// The same by all lanes, with the same arguments in each.
template <bool BY_INDEX, typename I>
__device__ __forceinline__ Verdict look_together(
    I v, unsigned char mine, I& k, I end, const I* indices, const unsigned char* status, unsigned long long start)
{
    while (k < end) {
        I w[BATCH];
        unsigned char other[BATCH];
        bool joined = false;
#pragma unroll
        for (int j = 0; j < BATCH; ++j) {
            int t = j * WARP + lane();
            w[j] = end - k > t ? indices[k + t] : I(-1);
        }
#pragma unroll
        for (int j = 0; j < BATCH; ++j) other[j] = w[j] >= 0 ? load_relaxed(&status[w[j]]) : OUT;
#pragma unroll
        for (int j = 0; j < BATCH; ++j) joined |= other[j] == JOINED;
        if (__any_sync(ALL, joined)) return LEAVES;
#pragma unroll
        for (int j = 0; j < BATCH; ++j) {
            bool before = other[j] > mine || (other[j] == mine && precedes<BY_INDEX>(w[j], v, start));
            unsigned votes = __ballot_sync(ALL, before);
            if (votes) {
                k += j * WARP + __ffs(votes) - 1;
                return WAITS;
            }
        }
        k = end - k > BATCH * WARP ? k + BATCH * WARP : end;
    }
    return JOINS;
}

// A vertex that joins puts its neighbours out.  Reads first: of a hub's many neighbours only one needs
// to write.  Measured: bench/independent/maximal_gpu.py, H200, R-MAT 22: 0.32 against 0.97 ms.
template <int STRIDE, typename I>
__device__ __forceinline__ void put_out(I e, I end, const I* indices, unsigned char* status)
{
    for (; e < end; e += BATCH * STRIDE) {
        I w[BATCH];
        unsigned char other[BATCH];
#pragma unroll
        for (int j = 0; j < BATCH; ++j) w[j] = end - e > j * STRIDE ? indices[e + j * STRIDE] : I(-1);
#pragma unroll
        for (int j = 0; j < BATCH; ++j) other[j] = w[j] >= 0 ? load_relaxed(&status[w[j]]) : OUT;
#pragma unroll
        for (int j = 0; j < BATCH; ++j)
            if (other[j] != OUT) store_relaxed(&status[w[j]], OUT);
        if (end - e <= BATCH * STRIDE) break;  // e might pass the largest number
    }
}

// What the kernels share of a call.
template <typename I>
struct Call {
    using U = typename Unsigned<I>::type;
    const I *indptr, *indices;
    unsigned long long start;
    unsigned char* status;
    U* link;
    I *hub, *pieces;  // the vertices with long rows, and how many pieces of each are not done
};

// One vertex v for each lane that is `open`, or a piece of one; read from entry k on.  `at` is
// v itself, or ~i for a piece of hub i.  True: still undecided.
template <bool BY_INDEX, typename I>
__device__ __forceinline__ bool decide(bool open, I at, I& k, const Call<I>& call)
{
    using U = typename Unsigned<I>::type;
    const I* indices = call.indices;
    unsigned char* status = call.status;
    bool piece = at < 0;
    I v = piece ? call.hub[~at] : at;
    unsigned char mine = open ? load_relaxed(&status[v]) : OUT;
    open = mine >= FIRST;
    Verdict verdict = WAITS;
    I begin = 0, end = 0;
    if (open) {
        begin = call.indptr[v];
        end = call.indptr[v + 1];
        if (piece) {
            I last = begin + (k - begin) / PIECE * PIECE;
            end = end - last > PIECE ? last + PIECE : end;
        }
        if (BY_INDEX && k == LINKED) {
            verdict = follow(v, status, call.link);
            if (verdict == JOINS) k = end;
        } else {
            I stop = end - k > SHORT ? k + SHORT : end;
            verdict = look_alone<BY_INDEX>(v, mine, k, stop, end, indices, status, call.start);
            if (BY_INDEX && verdict == WAITS && !piece) {
                I w = indices[k];
                verdict = look_further(v, k, end, indices, status);
                if (k == LINKED) store_relaxed(&call.link[v], U(U(w) << 1 | 1));
            }
        }
    }
    unsigned todo = __ballot_sync(ALL, open && verdict == JOINS && k < end);
    for (; todo; todo &= todo - 1) {
        int owner = __ffs(todo) - 1;
        I its_k = __shfl_sync(ALL, k, owner), its_end = __shfl_sync(ALL, end, owner);
        I its_v = __shfl_sync(ALL, v, owner);
        unsigned char its = (unsigned char)__shfl_sync(ALL, (int)mine, owner);
        Verdict found = look_together<BY_INDEX>(its_v, its, its_k, its_end, indices, status, call.start);
        if (lane() == owner) {
            verdict = found;
            k = its_k;
        }
    }
    bool joins = open && verdict == JOINS, large = false;
    if (joins && piece) {
        // the last piece decides for all; a hub's neighbours read its state themselves
        if (take(&call.pieces[~at], I(-1)) == 1) store_relaxed(&status[v], JOINED);
    } else if (joins) {
        store_relaxed(&status[v], JOINED);
        large = end - begin > SHORT;
        if (!large) put_out<1>(begin, end, indices, status);
    } else if (open && verdict == LEAVES) {
        store_relaxed(&status[v], OUT);
    }
    for (todo = __ballot_sync(ALL, large); todo; todo &= todo - 1) {
        int owner = __ffs(todo) - 1;
        I its_begin = __shfl_sync(ALL, begin, owner), its_end = __shfl_sync(ALL, end, owner);
        if (its_end - its_begin > lane()) put_out<WARP>(I(its_begin + lane()), its_end, indices, status);
        __syncwarp();
    }
    return open && verdict == WAITS;
}

// A warp's undecided vertices and pieces, from `head` to `size`, and where each looks next.
template <typename I>
struct List {
    I *at, *place;
    I head, size;

    // All lanes call; those that are `open` append.
    __device__ __forceinline__ void append(bool open, I item, I k)
    {
        unsigned votes = __ballot_sync(ALL, open);
        if (open) put(size + __popc(votes & lanes_below()), item, k);
        size += __popc(votes);
    }

    __device__ __forceinline__ void put(I slot, I item, I k)
    {
        at[slot] = item;
        place[slot] = k;
    }
};

// The pieces of hubs, numbered through, are distributed to the warps in turn.
template <typename I>
__device__ __forceinline__ void take_pieces(I hubs, long long me, long long warps, const Call<I>& call, List<I>& list)
{
    long long number = 0;  // of the first piece of these hubs
    for (I first = 0; first < hubs; first += WARP) {
        I i = first + lane(), begin = 0;
        long long count = 0;
        if (i < hubs) {
            I v = load_relaxed(&call.hub[i]);
            begin = call.indptr[v];
            count = (call.indptr[v + 1] - begin + PIECE - 1) / PIECE;
        }
        long long before = warp_exclusive_sum(count);
        long long mine = (me - (number + before) % warps + warps) % warps;
        while (__any_sync(ALL, mine < count)) {
            list.append(mine < count, I(~i), I(begin + mine * PIECE));
            mine += warps;
        }
        number += __shfl_sync(ALL, before + count, WARP - 1);
    }
}

// The words of a call, all 0 at launch.
constexpr int LEFT = 0, GATE = 1, HUBS = 2;  // undecided at the end, grid_barrier.cuh's, rows over LONG
[[maybe_unused]] constexpr int WORDS = 3;

// `space` holds, one after the other: for each warp `room` places of its list, `room` more for where
// these look next, and two for its ends; room for `most` hubs, for how many of their pieces are left;
// and with BY_INDEX n links.  `again`: goes on where the launch before stopped, after `cycles`.
template <typename I, bool BY_INDEX>
__global__ void __launch_bounds__(BLOCK)
    greedy(I n, const I* indptr, const I* indices, unsigned long long start, bool again, long long cycles, int tile,
           I room, I most, unsigned char* status, I* space, unsigned long long* words)
{
    using U = typename Unsigned<I>::type;
    long long began = clock64();
    long long warps = all_threads() / WARP, me = global_thread() / WARP;
    I* ends = space + 2 * warps * room;
    I* hub = ends + 2 * warps;
    I* pieces = hub + most;
    I* hubs = reinterpret_cast<I*>(words + HUBS);
    Call<I> call{indptr, indices, start, status, reinterpret_cast<U*>(pieces + most), hub, pieces};
    List<I> list{space + me * room, space + (warps + me) * room, 0, 0};
    if (again) {
        list.head = ends[2 * me];
        list.size = ends[2 * me + 1];
    } else {
        for (long long v = global_thread(); v < n; v += all_threads()) {
            I degree = indptr[v + 1] - indptr[v];
            unsigned char byte = BY_INDEX ? FIRST : place_of(v, degree, start);
            store_relaxed(&status[v], degree == 0 ? JOINED : byte);
            if (BY_INDEX) store_relaxed(&call.link[v], ~U(0));
            if (degree > LONG) {
                I i = take(hubs, I(1));
                store_relaxed(&hub[i], (I)v);
                store_relaxed(&pieces[i], I((degree + PIECE - 1) / PIECE));
            }
        }
        GridBarrier(reinterpret_cast<unsigned int*>(words + GATE)).wait();
        for (long long first = me * tile; first < n; first += warps * tile) {
            long long v = first + lane();
            bool open = lane() < tile && v < n;
            I k = open ? indptr[v] : I(0);
            if (open) open = indptr[v + 1] - k <= LONG;
            open = decide<BY_INDEX>(open, open ? (I)v : I(0), k, call);
            list.append(open, (I)v, k);
        }
        take_pieces(load_relaxed(hubs), me, warps, call, list);
        __syncwarp();
    }
    for (unsigned pass = 0; list.head < list.size && clock64() - began < cycles; ++pass) {
        if (BY_INDEX && pass % PASSES_TO_FULL != 0) {
            // only the first ones, whose turn is next; those that stay are moved up to the others
            I i = list.head + lane();
            bool held = i < list.size, open = held;
            I at = open ? list.at[i] : I(0), k = open ? list.place[i] : I(0);
            open = decide<BY_INDEX>(open, at, k, call);
            unsigned votes = __ballot_sync(ALL, open), all = __ballot_sync(ALL, held);
            list.head += __popc(all) - __popc(votes);
            if (open) list.put(list.head + __popc(votes & lanes_below()), at, k);
            __syncwarp();
            continue;
        }
        I first = list.head, size = list.size;
        list.head = list.size = 0;
        for (; first < size; first += WARP) {
            I i = first + lane();
            bool open = i < size;
            I at = open ? list.at[i] : I(0), k = open ? list.place[i] : I(0);
            open = decide<BY_INDEX>(open, at, k, call);
            list.append(open, at, k);  // below `first` + WARP, and all lanes have read theirs
            __syncwarp();
        }
    }
    if (lane() == 0) {
        ends[2 * me] = list.head;
        ends[2 * me + 1] = list.size;
        if (list.head < list.size) atomicAdd(&words[LEFT], (unsigned long long)(list.size - list.head));
    }
}

// ---- Luby's sampling.  The rule: __init__.py.
//
// One cooperative kernel runs the rounds, the phases of which are those of cpu.py, with a barrier of
// the grid after each.  Tiles of up to 32 vertices are distributed to the warps in turn; each warp keeps
// those of its vertices that are left in a list of its own.
//
// Rows: one thread per row of up to SAMPLE_SHORT entries, the warp for a longer one.  When a vertex with
// more than LONG entries leaves, all warps share them, after one more barrier.  A vertex whose neighbours
// have all gone joins without reading them.  Races: as in cpu.py.

constexpr int SAMPLE_SHORT = 16;  // entries of a row that one thread reads
constexpr int SAMPLE_BATCH = 8;   // entries whose loads a lane has in flight at once
constexpr unsigned char FREE = 2, DRAWN = 3, WINNER = 4, LEAVING = 5;
constexpr long long MOST_NEIGHBOURS = (1ll << 31) - 1;  // as in cpu.py: 2 d x must not overflow
constexpr unsigned long long NO_DRAW = ~0ull;  // larger than any draw

// Words of a round: how many were drawn, the least draw and its vertex (both inverted, so that they
// begin as 0 and grow), how many vertices are left after it, and how many hubs have gone in it.
constexpr int DRAWN_COUNT = 0, LEAST = 1, NEAREST = 2, ROUND_LEFT = 3, GONE = 4, ROUND_WORDS = 5;

// `each(v, w)` for the entries w of the row of v, of lanes where `wanted`, until it returns true,
// which ends the row (it is called for all entries that lanes hold at that time).  Returns whether
// it was true in the lane's own row.  All lanes of the warp call.
template <typename I, typename Each>
__device__ __forceinline__ bool any_entry(bool wanted, I v, const I* indptr, const I* indices, Each each)
{
    I begin = wanted ? indptr[v] : I(0), end = wanted ? indptr[v + 1] : I(0);
    bool found = false;
    if (end - begin <= SAMPLE_SHORT)
        for (I e = begin; e < end && !found; ++e) found = each(v, indices[e]);
    for (unsigned todo = __ballot_sync(ALL, end - begin > SAMPLE_SHORT); todo; todo &= todo - 1) {
        int owner = __ffs(todo) - 1;
        I its_v = __shfl_sync(ALL, v, owner);
        I its_begin = __shfl_sync(ALL, begin, owner), its_end = __shfl_sync(ALL, end, owner);
        bool its = false;
        for (I e = its_begin; e < its_end && !its; e += SAMPLE_BATCH * WARP) {
            I w[SAMPLE_BATCH];
            bool mine = false;
#pragma unroll
            for (int j = 0; j < SAMPLE_BATCH; ++j) {
                int t = j * WARP + lane();
                w[j] = its_end - e > t ? indices[e + t] : I(-1);
            }
#pragma unroll
            for (int j = 0; j < SAMPLE_BATCH; ++j) mine |= w[j] >= 0 && each(its_v, w[j]);
            its = __any_sync(ALL, mine);
            if (its_end - e <= SAMPLE_BATCH * WARP) break;  // e might pass the largest number
        }
        if (lane() == owner) found = its;
    }
    return found;
}

template <typename I>
__device__ __forceinline__ unsigned long long draw(I v, I degree, unsigned long long round, unsigned long long seed)
{
    unsigned long long d = degree < MOST_NEIGHBOURS ? (unsigned long long)degree : (unsigned long long)MOST_NEIGHBOURS;
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
        if (lane() == 0 && size > 0) atomicAdd(&words[ROUND_LEFT], (unsigned long long)size);
        grid.wait();
        if (load_relaxed(&words[ROUND_LEFT]) == 0) return;
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
