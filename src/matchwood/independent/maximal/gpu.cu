// The greedy independent set on the GPU.  Host side: gpu.py.  The order: order.py.
//
// One kernel, all of whose warps are resident.  Tiles of up to 32 vertices, fewer where there are not
// enough for all warps, are dealt out to the warps in turn; each warp goes through its undecided
// vertices again and again until none is left, and waits for nobody: there are no rounds.
//
//   begin     the byte of each vertex, then a barrier of the grid, the only one
//   look      on from the place in the row where a vertex had to wait before: the row is read once
//   join      a vertex that joins puts all its neighbours out, whose rows then need not be read
//
// Rows: a thread to the next SHORT entries, then the warp to what is left.
//
// status[v] is OUT, JOINED, or while undecided its place in the order, the larger the earlier.
//
//
// Links, in the order of indices, where a vertex may wait for a chain as long as the graph.  A vertex
// v that waits for w alone joins just when w does not.  That is noted, link[v] = (w, 1), and where w
// has a link (x, p) as well, link[v] becomes (x, 1 - p), and so on: twice as far at each step.
//
// Races.  A byte goes from undecided to OUT or JOINED once.  v joins when it has seen all neighbours
// before it OUT, which is final, so no neighbour can join as well; and whoever puts v out has seen,
// or is, a member among its neighbours.  The greedy set is unique, so schedules do not matter.
// A link is true for ever, and written by the owner of v alone.  Nothing else is shared between
// warps, so relaxed accesses will do.
//
// It ends: the first of all undecided vertices has nobody to wait for, and its warp is running.
#include "matchwood/atomics.cuh"
#include "matchwood/grid_barrier.cuh"
#include "matchwood/hashing.cuh"
#include "matchwood/threads.cuh"

constexpr int BLOCK = 512;
constexpr int SHORT = 32;  // entries of a row that a thread looks at alone at a time
constexpr int BATCH = 4;   // entries that a lane has under way at once
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

// Look at entries from k on, up to `stop`, in a row that goes up to `end`; k becomes the place to go
// on from.
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
        if (BY_INDEX && w[BATCH - 1] > v) k = end;  // rows are sorted: no other comes before v
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

// Looks first: of a hub's many neighbours only one needs to write.  Measured:
// bench/independent/maximal_gpu.py, H200, R-MAT 22: 0.32 against 0.97 ms.
__device__ __forceinline__ void put_out(unsigned char* status)
{
    if (load_relaxed(status) != OUT) store_relaxed(status, OUT);
}

// One vertex for each lane that is `open`, looked at from entry k on.  True: still undecided.
template <bool BY_INDEX, typename I, typename U>
__device__ __forceinline__ bool decide(
    bool open, I v, I& k, const I* indptr, const I* indices, unsigned char* status, U* link, unsigned long long start)
{
    unsigned char mine = open ? load_relaxed(&status[v]) : OUT;
    open = mine >= FIRST;
    Verdict verdict = WAITS;
    I end = 0;
    if (open) {
        end = indptr[v + 1];
        if (BY_INDEX && k == LINKED) {
            verdict = follow(v, status, link);
            if (verdict == JOINS) k = end;
        } else {
            I stop = end - k > SHORT ? k + SHORT : end;
            verdict = look_alone<BY_INDEX>(v, mine, k, stop, end, indices, status, start);
            if (BY_INDEX && verdict == WAITS) {
                I w = indices[k];
                verdict = look_further(v, k, end, indices, status);
                if (k == LINKED) store_relaxed(&link[v], U(U(w) << 1 | 1));
            }
        }
    }
    unsigned todo = __ballot_sync(ALL, open && verdict == JOINS && k < end);
    for (; todo; todo &= todo - 1) {
        int owner = __ffs(todo) - 1;
        I its_k = __shfl_sync(ALL, k, owner), its_end = __shfl_sync(ALL, end, owner);
        I its_v = __shfl_sync(ALL, v, owner);
        unsigned char its = (unsigned char)__shfl_sync(ALL, (int)mine, owner);
        Verdict found = look_together<BY_INDEX>(its_v, its, its_k, its_end, indices, status, start);
        if (lane() == owner) {
            verdict = found;
            k = its_k;
        }
    }
    bool joins = open && verdict == JOINS;
    I begin = joins ? indptr[v] : 0;
    bool large = joins && end - begin > SHORT;
    if (joins) {
        store_relaxed(&status[v], JOINED);
        if (!large)
            for (I e = begin; e < end; ++e) put_out(&status[indices[e]]);
    } else if (open && verdict == LEAVES) {
        store_relaxed(&status[v], OUT);
    }
    for (todo = __ballot_sync(ALL, large); todo; todo &= todo - 1) {
        int owner = __ffs(todo) - 1;
        I its_end = __shfl_sync(ALL, end, owner);
        for (I e = __shfl_sync(ALL, begin, owner) + lane(); e < its_end; e += WARP)
            put_out(&status[indices[e]]);
    }
    return open && verdict == WAITS;
}

// link: n words, for BY_INDEX only.  live and place: `room` words for each warp, its undecided vertices and where they look next.
// `again`: goes on where the launch before stopped, after `cycles` of the clock; *left counts the
// vertices that are still undecided then, and is 0 at launch.  gate: see grid_barrier.cuh.
template <typename I, bool BY_INDEX>
__global__ void __launch_bounds__(BLOCK) greedy(
    I n, const I* indptr, const I* indices, unsigned long long start, bool again, long long cycles, int tile, I room,
    unsigned char* status, I* link, I* live, I* place, I* sizes, unsigned long long* left, unsigned int* gate)
{
    using U = typename Unsigned<I>::type;
    U* links = reinterpret_cast<U*>(link);
    long long began = clock64();
    long long warps = all_threads() / WARP, me = global_thread() / WARP;
    I* my_live = live + me * room;
    I* my_place = place + me * room;
    I size = 0;
    if (again) {
        size = sizes[me];
    } else {
        for (long long v = global_thread(); v < n; v += all_threads()) {
            I degree = indptr[v + 1] - indptr[v];
            unsigned char byte = BY_INDEX ? FIRST : place_of(v, degree, start);
            store_relaxed(&status[v], degree == 0 ? JOINED : byte);
            if (BY_INDEX) store_relaxed(&links[v], ~U(0));
        }
        GridBarrier(gate).wait();
        for (long long first = me * tile; first < n; first += warps * tile) {
            long long at = first + lane();
            bool open = lane() < tile && at < n;
            I v = open ? (I)at : I(0), k = open ? indptr[v] : I(0);
            open = decide<BY_INDEX>(open, v, k, indptr, indices, status, links, start);
            unsigned votes = __ballot_sync(ALL, open);
            if (open) {
                I slot = size + __popc(votes & lanes_below());
                my_live[slot] = v;
                my_place[slot] = k;
            }
            size += __popc(votes);
        }
        __syncwarp();
    }
    while (size > 0 && clock64() - began < cycles) {
        I kept = 0;
        for (I first = 0; first < size; first += WARP) {
            I i = first + lane();
            bool open = i < size;
            I v = open ? my_live[i] : I(0), k = open ? my_place[i] : I(0);
            open = decide<BY_INDEX>(open, v, k, indptr, indices, status, links, start);
            unsigned votes = __ballot_sync(ALL, open);  // all have read theirs
            if (open) {
                I slot = kept + __popc(votes & lanes_below());
                my_live[slot] = v;
                my_place[slot] = k;
            }
            kept += __popc(votes);
            __syncwarp();
        }
        size = kept;
    }
    if (lane() == 0) {
        sizes[me] = size;
        if (size > 0) atomicAdd(left, (unsigned long long)size);
    }
}
