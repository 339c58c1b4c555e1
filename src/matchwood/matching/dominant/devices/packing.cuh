// Rows that pass, and the lists that their first edges are packed into.  Kernels: gpu.cu; encodings: cpu_steps.py.
#pragma once
#include "matchwood/edge_order.cuh"
#include "matchwood/threads.cuh"

constexpr int INCOMPLETE = 128;  // in size[v]: some edge of the row is not in the list
constexpr int LENGTH_BITS = 127; // of size[v]
constexpr int PACK_BLOCK = 256;  // threads of a block of pack_rows
constexpr int LONG_PACKED_ROW = 1024;  // entries; a block packs a longer row, after its warps have done the others
constexpr int LONG_PACKED_ROWS = 256;  // of a block; a warp packs those beyond

// Rows and what is read of them.  They are those of ids[0], ids[1], ..., or of base, base + 1, ... where ids is null.
// Row i is the entries begins[i] to ends[i] - 1, of which first to last - 1 lie at `columns`.
// by_vertex: the row of u has begins[u - base].  Then the rows may lie in memory of the host that the device reads:
// the host need not know which they are.
// only_free: matched neighbours, and rows of matched vertices, are left out.
// columns_first: then weights are read of the others alone.  For rows that lie anywhere, maybe in memory of the host; of
// rows in a buffer the weights are read first, and of light entries nothing else.
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
// `fresh`.  The lanes look up the next 32 rows of their warp at once: to learn where a short row and its list are takes
// longer than to read it.  Warps that run at the same time have rows that lie near each other, which the bus likes.
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
