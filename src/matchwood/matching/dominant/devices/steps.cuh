// Rows that pass, and the lists that their first edges are packed into; then what a vertex does in a round: it points, is
// matched, waits.  Kernels: gpu.cu, which also says why no step needs a lock; encodings: cpu.py.
#pragma once
#include "matchwood/edge_order.cuh"
#include "matchwood/frontier.cuh"
#include "matchwood/threads.cuh"

// ---- lists ----

constexpr int INCOMPLETE = 128;  // in size[v]: some edge of the row is not in the list
constexpr int LENGTH_BITS = 127; // of size[v]
constexpr int PACK_BLOCK = 256;  // threads of a block of pack_rows
constexpr int LONG_PACKED_ROW = 1024;  // entries; a block packs a longer row, after its warps have done the others
constexpr int LONG_PACKED_ROWS = 256;  // long rows that a block packs; those beyond are packed by warps

// Rows and what is read of them.  They are those of ids[0], ids[1], ..., or of base, base + 1, ... where ids is null.
// Row i is the entries begins[i] to ends[i] - 1, of which first to last - 1 lie at `columns`.
// by_vertex: the row of u has begins[u - base].  Then the rows may lie in memory of the host that the device reads:
// the host need not know which they are.
// only_free: matched neighbours, and rows of matched vertices, are left out.
// columns_first: weights are read for the other entries only.  For rows anywhere in memory, perhaps the host's; in a
// buffer, weights are read first, and of light entries nothing else.
template <typename I, typename P, typename W>
struct PassingRows {
    const I* ids;
    long long base;
    const P *begins, *ends;
    long long first, last;
    const I* columns;
    const W* weights;
    bool only_free, columns_first, by_vertex;
    const I* state;
    unsigned long long seed;
    bool by_hash;

    __device__ __forceinline__ I vertex(long long i) const { return ids != nullptr ? load_relaxed(&ids[i]) : (I)(base + i); }

    // The entries of row i that are there, as places at `columns`.
    __device__ __forceinline__ void range(long long i, long long& begin, long long& end) const
    {
        long long row = by_vertex ? vertex(i) - base : i;
        begin = begins[row], end = ends[row];
        begin = (begin < first ? first : begin) - first;
        end = (end > last ? last : end) - first;
    }

    // Add the edges of all lanes where `there`.  All lanes of the warp call.
    __device__ __forceinline__ void add(WarpEdges<I, W>& list, I u, W w, I v, bool there) const
    {
        if (list.held == 0) return list.fill(u, w, v, there, seed, by_hash);
        bool heavy = value_bits(w) >= list.weakest();
        unsigned votes = __ballot_sync(ALL, there && heavy);
        if (votes != __ballot_sync(ALL, there)) list.left_out = true;
        for (; votes != 0; votes &= votes - 1) {
            int owner = __ffs(votes) - 1;
            list.insert(u, __shfl_sync(ALL, w, owner), __shfl_sync(ALL, v, owner), seed, by_hash);
        }
    }

    // A warp adds the entries of u from `begin` on, 32 at a time and `step` from one time to the next.  AHEAD times
    // are loaded at once.  When the list is full, columns are read only for entries that are heavy enough, unless they
    // come first.
    __device__ __forceinline__ void scan(WarpEdges<I, W>& list, I u, long long begin, long long end, int step) const
    {
        constexpr int AHEAD = 4;
        for (long long k = begin; k < end; k += AHEAD * step) {
            W w[AHEAD];
            I v[AHEAD];
            bool there[AHEAD];
            bool all = columns_first || list.held < list.room;
#pragma unroll
            for (int a = 0; a < AHEAD; ++a) {
                long long entry = k + a * step + lane();
                there[a] = entry < end;
                if (!columns_first) w[a] = there[a] ? weights[entry] : W(0);
                if (all) v[a] = there[a] ? columns[entry] : u;
            }
            if (only_free && all) {
#pragma unroll
                for (int a = 0; a < AHEAD; ++a) there[a] = there[a] && is_free(v[a]);
            }
            if (columns_first) {
#pragma unroll
                for (int a = 0; a < AHEAD; ++a) w[a] = there[a] ? weights[k + a * step + lane()] : W(0);
            }
#pragma unroll
            for (int a = 0; a < AHEAD; ++a) {
                if (k + a * step >= end) break;
                if (!all) {
                    list.left_out = true;
                    unsigned long long weakest = list.weakest();
                    there[a] = there[a] && value_bits(w[a]) >= weakest;
                }
                if (__ballot_sync(ALL, there[a]) == 0) continue;
                if (!all) {
                    v[a] = there[a] ? columns[k + a * step + lane()] : u;
                    there[a] = there[a] && (!only_free || is_free(v[a]));
                }
                add(list, u, w[a], v[a], there[a]);
            }
        }
    }

    __device__ __forceinline__ bool is_free(I v) const { return load_relaxed(&state[v]) < 0; }
};

// Where a list is, what it may hold, and its word of `size`.
template <typename P>
struct ListPlace {
    P from;
    int room, word;

    // That of another lane.  All lanes of the warp call.
    __device__ __forceinline__ ListPlace of(int owner) const
    {
        return {__shfl_sync(ALL, from, owner), __shfl_sync(ALL, room, owner), __shfl_sync(ALL, word, owner)};
    }
};

// The lists of a partition whose first vertex is lo.
template <typename I, typename P, typename W>
struct EdgeLists {
    long long lo;
    const P* start;
    unsigned char* size;
    I* columns;
    W* weights;

    // fresh: what is in the list is forgotten.
    __device__ __forceinline__ ListPlace<P> place(I u, bool fresh) const
    {
        long long at = u - lo;
        P from = start[at];
        return {from, (int)(start[at + 1] - from), fresh ? 0 : (int)size[at]};
    }

    __device__ __forceinline__ WarpEdges<I, W> load(I u, ListPlace<P> place) const
    {
        WarpEdges<I, W> list{W(0), u, place.word & LENGTH_BITS, place.room, (place.word & INCOMPLETE) != 0};
        if (lane() < list.held) list.w = weights[place.from + lane()], list.v = columns[place.from + lane()];
        return list;
    }

    __device__ __forceinline__ void store(I u, const WarpEdges<I, W>& list) const
    {
        long long at = u - lo, from = start[at];
        if (lane() < list.held) {
            weights[from + lane()] = list.w;
            columns[from + lane()] = list.v;
        }
        if (lane() == 0) size[at] = (unsigned char)(list.held | (list.left_out ? INCOMPLETE : 0));
    }
};

// A block packs a long row: each warp makes a list of its part, and the first warp adds them to its own.
template <typename I, typename P, typename W>
__device__ void pack_long_row(I u, long long begin, long long end, const PassingRows<I, P, W>& rows, const EdgeLists<I, P, W>& lists,
                              bool fresh)
{
    constexpr int WARPS = PACK_BLOCK / WARP;
    __shared__ W weights[WARPS][WARP];
    __shared__ I columns[WARPS][WARP];
    __shared__ int held[WARPS];
    int warps = blockDim.x / WARP;
    WarpEdges<I, W> list = lists.load(u, lists.place(u, fresh));
    if (warp() > 0) list.held = 0;
    rows.scan(list, u, begin + WARP * warp(), end, WARP * warps);
    weights[warp()][lane()] = list.w;
    columns[warp()][lane()] = list.v;
    if (lane() == 0) held[warp()] = list.held | (list.left_out ? INCOMPLETE : 0);
    __syncthreads();
    if (warp() == 0) {
        for (int k = 1; k < warps; ++k) {
            rows.add(list, u, weights[k][lane()], columns[k][lane()], lane() < (held[k] & LENGTH_BITS));
            if ((held[k] & INCOMPLETE) != 0) list.left_out = true;
        }
        lists.store(u, list);
    }
    __syncthreads();
}

// A warp per row, then a block per long row: their edges go into the lists, which may hold edges already unless they are
// `fresh`.  The lanes look up the next 32 rows of their warp at once: finding a short row and its list takes longer than
// reading it.  Warps that run at the same time have rows that lie near each other, which the bus transfers faster.
// Returns the entries that the warp has read.  All threads of the grid call.
template <typename I, typename P, typename W>
__device__ long long pack_all(long long rows, const PassingRows<I, P, W>& from, const EdgeLists<I, P, W>& lists, bool fresh)
{
    __shared__ long long long_rows[LONG_PACKED_ROWS];
    __shared__ int long_count;
    if (threadIdx.x == 0) long_count = 0;
    __syncthreads();
    long long read = 0, warps = all_threads() / WARP;
    for (long long base = global_thread() / WARP; base < rows; base += WARP * warps) {
        long long i = base + lane() * warps, begin = 0, end = 0;
        I own = 0;
        ListPlace<P> place{};
        if (i < rows) {
            own = from.vertex(i);
            from.range(i, begin, end);
        }
        bool there = begin < end;
        if (there) {
            read += end - begin;
            place = lists.place(own, fresh);
            there = !from.only_free || from.is_free(own);
        }
        if (there && end - begin > LONG_PACKED_ROW) {
            int slot = atomicAdd(&long_count, 1);
            if (slot < LONG_PACKED_ROWS) long_rows[slot] = i, there = false;
        }
        for (unsigned votes = __ballot_sync(ALL, there); votes != 0; votes &= votes - 1) {
            int owner = __ffs(votes) - 1;
            I u = __shfl_sync(ALL, own, owner);
            WarpEdges<I, W> list = lists.load(u, place.of(owner));
            from.scan(list, u, __shfl_sync(ALL, begin, owner), __shfl_sync(ALL, end, owner), WARP);
            lists.store(u, list);
        }
    }
    __syncthreads();
    int count = long_count < LONG_PACKED_ROWS ? long_count : LONG_PACKED_ROWS;
    for (int k = 0; k < count; ++k) {
        long long begin, end;
        from.range(long_rows[k], begin, end);
        pack_long_row(from.vertex(long_rows[k]), begin, end, from, lists, fresh);
    }
    return warp_reduce(read, Plus());
}

// ---- rounds ----

constexpr int LONGEST_WALK = 256;  // waiting vertices that a thread appends alone; for more, all threads look at all

// Words of `control`.
constexpr int POINTED = 0;  // vertices at the front of `pointed`
constexpr int WANTED = 1;   // ... and at its back
constexpr int QUEUED = 2;   // vertices in `queue`
constexpr int MATCHED = 3;  // edges matched in this round
constexpr int TOO_LONG = 4; // a list of waiting vertices was not walked to its end
constexpr int ROUNDS = 5;   // rounds of settle_rounds that matched a vertex
constexpr int ALL_POINTED = 6;  // vertices that pointed in its rounds
constexpr int LEFT = 7;     // rounds until its launch ends
constexpr int FETCHED = 8;  // entries of rows that were read again
constexpr int LISTED = 9;   // vertices that list_wanted has listed
constexpr int CHAINED = 10; // waiting vertices are in linked lists; settle_rounds makes them when few vertices point
constexpr int ROWS_READ = 11;   // rows that settle_rounds has read again
constexpr int SETTLED = 12; // vertices were matched while the rows passed
[[maybe_unused]] constexpr int CONTROL_WORDS = 13;

using Wide = unsigned long long;

template <typename T>
__device__ __forceinline__ T exchange(T* p, T x)
{
    using Bits = typename WordOf<sizeof(T)>::type;
    return bits_as<T>(atomicExch(reinterpret_cast<Bits*>(p), bits_as<Bits>(x)));
}

// Append v where `wanted`; the lanes that are here share one atomic.  Lanes may be missing.
template <typename I>
__device__ __forceinline__ void append_alone(I* queue, Wide* size, I v)
{
    unsigned here = __activemask();
    int leader = __ffs(here) - 1;
    Wide start = 0;
    if (lane() == leader) start = take(size, Wide(__popc(here)));
    start = __shfl_sync(here, start, leader);
    queue[start + __popc(here & lanes_below())] = v;
}

// Whether the row of u must travel.
template <typename I>
__device__ __forceinline__ bool has_run_out(I u, long long lo, const I* state, const unsigned char* size, const unsigned char* head)
{
    if (load_relaxed(&state[u]) != (I)~u) return false;
    int word = size[u - lo];
    return (word & INCOMPLETE) != 0 && head[u - lo] == (word & LENGTH_BITS);
}

// The steps of a partition whose vertices are lo to hi - 1.  The threads of the grid share the work.
template <typename I, typename P>
struct Part {
    I n, lo, hi;
    I *state, *waiting, *following;
    const P* start;
    const unsigned char* size;
    unsigned char* head;
    const I* columns;  // of the lists
    I *queue, *pointed;
    Wide* control;

    // The place in u's list of its next free edge; the length of the list where there is none.
    __device__ __forceinline__ int next_free(long long at, P from, int length) const
    {
        int place = head[at];
        while (place < length && load_relaxed(&state[columns[from + place]]) >= 0) ++place;
        return place;
    }

    // u points at the next free vertex of its list.  `wants`: there is none, and the row has more entries.
    __device__ __forceinline__ void advance(I u, bool chained, bool& points, bool& wants) const
    {
        long long at = u - lo;
        P from = start[at];
        int word = size[at], length = word & LENGTH_BITS, place = next_free(at, from, length);
        head[at] = (unsigned char)place;
        points = place < length;
        wants = !points && (word & INCOMPLETE) != 0;
        I v = points ? columns[from + place] : u;
        store_relaxed(&state[u], (I)~v);
        if (points && chained) following[at] = exchange(&waiting[v], u);
    }

    // List u at the back of `pointed` where its row must travel.  All lanes of the warp call.
    __device__ __forceinline__ void list_at_back(I u, bool wants) const
    {
        unsigned votes = __ballot_sync(ALL, wants);
        if (votes == 0) return;
        Wide begin = 0;
        if (lane() == __ffs(votes) - 1) begin = take(&control[WANTED], Wide(__popc(votes)));
        begin = __shfl_sync(ALL, begin, __ffs(votes) - 1);
        if (wants) pointed[(Wide)(hi - lo) - 1 - begin - __popc(votes & lanes_below())] = u;
    }

    // `source` null: all vertices of the partition.  chained: they wait in linked lists.
    __device__ void point(const I* source, Wide count, bool chained) const
    {
        for (Wide first = global_thread() - lane(); first < count; first += all_threads()) {
            Wide k = first + lane();
            bool points = false, wants = false;
            I u = 0;
            if (k < count) {
                u = source != nullptr ? load_relaxed(&source[k]) : (I)(lo + (I)k);
                advance(u, chained, points, wants);
            }
            append(pointed, &control[POINTED], u, points);
            list_at_back(u, wants);
        }
    }

    // u is free and points at a vertex that is not.
    __device__ __forceinline__ bool is_invalid(I u) const
    {
        I v = (I)~load_relaxed(&state[u]);
        return v >= 0 && v != u && load_relaxed(&state[v]) >= 0;
    }

    // Link all vertices that point at another one.  Caller: none is linked yet.
    __device__ void chain_all() const
    {
        for (Wide k = global_thread(); k < (Wide)(hi - lo); k += all_threads()) {
            I u = (I)(lo + (I)k), v = (I)~load_relaxed(&state[u]);
            if (v >= 0 && v != u) following[k] = exchange(&waiting[v], u);
        }
    }

    // List the vertices whose rows must travel at the front of the queue, nearly in order.
    __device__ void list_wanted() const
    {
        Wide count = hi - lo;
        for (Wide first = global_thread() - lane(); first < count; first += all_threads()) {
            Wide k = first + lane();
            bool wanted = k < count && has_run_out((I)(lo + (I)k), lo, state, size, head);
            append(queue, &control[LISTED], (I)(lo + (I)k), wanted);
        }
    }

    // Append the vertices that wait for x to the queue.
    __device__ __forceinline__ void requeue(I x) const
    {
        int steps = 0;
        for (I y = load_relaxed(&waiting[x]); y >= 0; y = load_relaxed(&following[y - lo])) {
            if (load_relaxed(&state[y]) == (I)~x) append_alone(queue, &control[QUEUED], y);
            if (++steps > LONGEST_WALK) {
                store_relaxed(&control[TOO_LONG], Wide(1));
                return;
            }
        }
    }

    // `source` null: `count` vertices from `first` on.  `step`: words from one vertex to the next.
    __device__ void settle(const I* source, I first, Wide count, int step, bool walk) const
    {
        for (Wide k = global_thread(); k < count; k += all_threads()) {
            I u = source != nullptr ? load_relaxed(&source[k * step]) : (I)(first + (I)k);
            I v = (I)~load_relaxed(&state[u]);
            if (v < 0 || v == u || load_relaxed(&state[v]) != (I)~u) continue;
            I low = u < v ? u : v, high = u < v ? v : u;
            if (compare_and_swap(&state[low], (I)~high, high) != (I)~high) continue;
            store_relaxed(&state[high], low);
            append_count(&control[MATCHED]);
            if (!walk) continue;
            requeue(low);
            requeue(high);
        }
    }

    __device__ __forceinline__ void append_count(Wide* counter) const
    {
        unsigned here = __activemask();
        if (lane() == __ffs(here) - 1) take(counter, Wide(__popc(here)));
    }

    __device__ void requeue_all() const
    {
        Wide count = hi - lo;
        for (Wide first = global_thread() - lane(); first < count; first += all_threads()) {
            Wide k = first + lane();
            I u = (I)(lo + (I)(k < count ? k : 0));
            append(queue, &control[QUEUED], u, k < count && is_invalid(u));
        }
    }
};
