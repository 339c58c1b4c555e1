// The weights of the labels in a row, and the best of them.  The idea: primitives/tally/__init__.py.
//
// The length of a row decides who works on it:
//   up to 32 entries      4, 8, 16 or 32 lanes, an entry for each: every lane sees all others by shuffles
//   up to WARP_ROW        a warp, with a hash table in shared memory
//   up to MEDIUM_ROW      a block, with a hash table in shared memory
//   longer rows           in pieces of MEDIUM_ROW entries: a block adds up a piece in shared memory, and
//                         then adds what it found to the row's hash table in global memory
//
// A rule says what is added up and which label is best:
//   Row begin(I v)                                  what is known of v, the same in every lane
//   I label(I u)                                    the label of a neighbour
//   TalliedLabel<I> candidate(Row, I v, I c, long long K)   label c with its weight, or no_label
//   void settle(Row, I v, TalliedLabel<I>, long long inside)   the best one, and the weight to Row.own;
//                                                   called by one thread
// Sums are integers and the best is the largest (value, -hash), so the order of arrival does not matter.
#pragma once
#include "matchwood/atomics.cuh"
#include "matchwood/hashing.cuh"
#include "matchwood/threads.cuh"

constexpr int TALLY_BLOCK = 256;             // threads of a block
// Blocks a multiprocessor, at least; a quarter faster than 2, with some spills (R-MAT 22, H200).
[[maybe_unused]] constexpr int TALLY_BLOCKS = 6;
constexpr int SHARED_SLOTS = 2048;           // slots of the table in shared memory
constexpr int MEDIUM_ROW = SHARED_SLOTS / 2; // entries: a table is at most half full
constexpr int WARP_SLOTS = SHARED_SLOTS / (TALLY_BLOCK / WARP);
constexpr int WARP_ROW = WARP_SLOTS / 2;     // entries
constexpr int WARP_CLASS = 4, BLOCK_CLASS = 5, HUB_CLASS = 6, ROW_CLASSES = 7;

__device__ __forceinline__ int row_class(long long length)
{
    if (length <= 32) return length <= 4 ? 0 : length <= 8 ? 1 : length <= 16 ? 2 : 3;
    return length <= WARP_ROW ? WARP_CLASS : length <= MEDIUM_ROW ? BLOCK_CLASS : HUB_CLASS;
}

// Rows with weights, which are added up as C: 32 bits hold the sum of a row whose entries weigh 1 each.
template <typename I, typename C>
struct LabelRows {
    const I* indptr;
    const I* indices;
    const long long* data;  // null: all weigh 1

    static constexpr bool UNIT = sizeof(C) == sizeof(unsigned int);

    __device__ __forceinline__ C weight(long long entry) const
    {
        return UNIT || data == nullptr ? C(1) : C(data[entry]);
    }
};

template <typename I>
struct TalliedLabel {
    double value;
    unsigned long long hash;
    I label;  // -1: none
    long long weight;
};

template <typename I>
__device__ __forceinline__ TalliedLabel<I> no_label()
{
    return TalliedLabel<I>{0.0, ~0ull, I(-1), 0};
}

template <typename I>
__device__ __forceinline__ TalliedLabel<I> with_label(double value, I label, long long weight)
{
    return TalliedLabel<I>{value, mix64((unsigned long long)label), label, weight};
}

// The larger value, of equal ones the smaller hash.
template <typename I>
__device__ __forceinline__ TalliedLabel<I> better(const TalliedLabel<I>& a, const TalliedLabel<I>& b)
{
    if (b.label < 0) return a;
    if (a.label < 0) return b;
    if (a.value != b.value) return a.value > b.value ? a : b;
    return a.hash <= b.hash ? a : b;
}

// The lanes of this lane's group of WIDTH.
template <int WIDTH>
__device__ __forceinline__ unsigned group_of_lanes()
{
    return (0xffffffffu >> (WARP - WIDTH)) << (lane() & ~(WIDTH - 1));
}

// The best of WIDTH lanes, in each of them: first by value, then by hash where two have the same value.
template <int WIDTH, typename I>
__device__ __forceinline__ TalliedLabel<I> best_of_lanes(const TalliedLabel<I>& mine)
{
    double most = warp_reduce<WIDTH>(mine.label >= 0 ? mine.value : -1e300, Most());
    bool is_best = mine.label >= 0 && mine.value == most;
    unsigned best = __ballot_sync(ALL, is_best) & group_of_lanes<WIDTH>();
    if (__any_sync(ALL, __popc(best) > 1)) {
        unsigned long long least = warp_reduce<WIDTH>(is_best ? mine.hash : ~0ull, Least());
        is_best = is_best && mine.hash == least;
        best = __ballot_sync(ALL, is_best) & group_of_lanes<WIDTH>();
    }
    int from = best == 0 ? lane() : __ffs(best) - 1;
    return TalliedLabel<I>{most, __shfl_sync(ALL, mine.hash, from), __shfl_sync(ALL, mine.label, from),
                           __shfl_sync(ALL, mine.weight, from)};
}

// A row of up to WIDTH entries by WIDTH lanes.  All lanes of the warp call; `open` is the same in the
// lanes of a group, and only open groups have a vertex.  Of the lanes with the same label the first one
// speaks for it.
template <int WIDTH, typename I, typename C, typename Rule>
__device__ __forceinline__ void tally_lanes(const LabelRows<I, C>& rows, bool open, I v, Rule& rule)
{
    int k = lane() & (WIDTH - 1);
    I begin = open ? rows.indptr[v] : I(0), end = open ? rows.indptr[v + 1] : I(0);
    bool is_entry = k < end - begin;
    I c = is_entry ? rule.label(rows.indices[begin + k]) : I(-1);
    unsigned same = __match_any_sync(ALL, c) & group_of_lanes<WIDTH>();
    if (!is_entry) same = 0;
    C sum = 0;
    if (rows.UNIT) {
        sum = (C)__popc(same);
    } else {
        C w = is_entry ? rows.weight(begin + k) : C(0);
        for (unsigned left = same; __any_sync(ALL, left != 0); left &= left - 1) {
            C its = __shfl_sync(ALL, w, left == 0 ? lane() : __ffs(left) - 1);
            if (left != 0) sum += its;
        }
    }
    auto row = rule.begin(open ? v : I(0));
    bool speaks = is_entry && (same & lanes_below()) == 0;
    TalliedLabel<I> best = speaks ? rule.candidate(row, v, c, (long long)sum) : no_label<I>();
    best = best_of_lanes<WIDTH>(best);
    unsigned own = __ballot_sync(ALL, speaks && c == row.own) & group_of_lanes<WIDTH>();
    C inside = __shfl_sync(ALL, sum, own == 0 ? lane() : __ffs(own) - 1);
    if (open && k == 0) rule.settle(row, v, best, own == 0 ? 0ll : (long long)inside);
}

// A hash table with linear probing.  In global memory other blocks fill it, too: it is read as they wrote
// it.  In shared memory there are barriers between filling and reading.
template <typename I, typename C, bool IN_SHARED>
struct Table {
    I* key;  // -1: free
    C* weight;

    // By threads me, me + us, ...
    __device__ __forceinline__ void clear(long long slots, int me, int us) const
    {
        for (long long s = me; s < slots; s += us) {
            if (IN_SHARED) {
                key[s] = I(-1);
                weight[s] = C(0);
            } else {
                store_relaxed(&key[s], I(-1));
                store_relaxed(&weight[s], C(0));
            }
        }
    }

    __device__ __forceinline__ I label(long long s) const { return IN_SHARED ? key[s] : load_relaxed(&key[s]); }
    __device__ __forceinline__ C sum(long long s) const { return IN_SHARED ? weight[s] : load_relaxed(&weight[s]); }

    // Slots is a power of two, and an int where the table is in shared memory.
    template <typename Slots>
    __device__ __forceinline__ void add(Slots slots, I label, C w) const
    {
        // the upper bits of a product: enough to scatter labels, and quicker than mix64
        unsigned folded = (unsigned)label ^ (unsigned)((unsigned long long)label >> 32);
        unsigned long long first = (unsigned long long)(folded * 0x9E3779B1u) * (unsigned long long)slots >> 32;
        Slots s = (Slots)first;
        while (true) {
            I there = IN_SHARED ? *const_cast<volatile I*>(&key[s]) : load_relaxed(&key[s]);
            if (there < 0) there = compare_and_swap(&key[s], I(-1), label);
            if (there < 0 || there == label) break;
            s = (s + 1) & (slots - 1);
        }
        add_to(&weight[s], w);
    }

private:
    __device__ __forceinline__ static void add_to(unsigned int* p, unsigned int w) { atomicAdd(p, w); }
    __device__ __forceinline__ static void add_to(long long* p, long long w)
    {
        atomicAdd(reinterpret_cast<unsigned long long*>(p), (unsigned long long)w);
    }
};

// Slots of the table for `length` entries: a power of two, so that it is at most half full.
__host__ __device__ __forceinline__ long long slots_of(long long length)
{
    long long slots = 64;
    while (slots < 2 * length) slots *= 2;
    return slots;
}

// The best over the block, right in thread 0.  All threads of the block call.
template <typename I>
__device__ __forceinline__ TalliedLabel<I> best_of_block(TalliedLabel<I> best)
{
    __shared__ TalliedLabel<I> parts[WARP];
    best = best_of_lanes<WARP>(best);
    if (lane() == 0) parts[warp()] = best;
    __syncthreads();
    if (threadIdx.x == 0)
        for (int w = 1; w < (int)(blockDim.x / WARP); ++w) best = better(best, parts[w]);
    __syncthreads();
    return best;
}

// The best of the labels in slots from, from + step, ... below `to`; adds to the weight of row.own.
template <typename I, typename C, bool IN_SHARED, typename Row, typename Rule>
__device__ __forceinline__ TalliedLabel<I> best_of_slots(const Table<I, C, IN_SHARED>& table, long long from,
                                                         long long to, int step, const Row& row, I v, Rule& rule,
                                                         long long& inside)
{
    TalliedLabel<I> best = no_label<I>();
    for (long long s = from; s < to; s += step) {
        I c = table.label(s);
        if (c < 0) continue;
        long long w = (long long)table.sum(s);
        if (c == row.own) inside += w;
        best = better(best, rule.candidate(row, v, c, w));
    }
    return best;
}

// The labels of entries begin .. end - 1 into a table in shared memory, by thread `me` of `us`, whole warps.
// A lane reads several labels at once.  Lanes that have the label of lane 0 add up among themselves first:
// where nearly all neighbours have one label, they would wait for each other otherwise.
template <typename I, typename C, typename Rule>
__device__ __forceinline__ void fill_table(const LabelRows<I, C>& rows, long long begin, long long end, int me, int us,
                                           const Table<I, C, true>& table, int slots, Rule& rule)
{
    constexpr int AT_ONCE = 4, FEW = 4;  // entries of a lane; lanes that are left to themselves
    for (long long first = begin + (me - lane()); first < end; first += AT_ONCE * us) {
        I c[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; ++k) {
            long long e = first + k * us + lane();
            c[k] = e < end ? rows.indices[e] : I(-1);
        }
#pragma unroll
        for (int k = 0; k < AT_ONCE; ++k) c[k] = c[k] >= 0 ? rule.label(c[k]) : I(-1);
#pragma unroll
        for (int k = 0; k < AT_ONCE; ++k) {
            if (first + k * us >= end) break;
            bool adds = c[k] >= 0;
            C w = adds ? rows.weight(first + k * us + lane()) : C(0);
            bool is_same = c[k] == __shfl_sync(ALL, c[k], 0);
            unsigned same = __ballot_sync(ALL, is_same);
            if (__popc(same) > FEW) {
                C sum = rows.UNIT ? (C)__popc(same) : warp_reduce(is_same ? w : C(0), Plus());
                if (lane() == 0) w = sum;
                adds = adds && (lane() == 0 || !is_same);
            }
            if (adds) table.add(slots, c[k], w);
        }
    }
}

// A row of up to WARP_ROW entries by a warp, with a table of WARP_SLOTS of its own.
template <typename I, typename C, typename Rule>
__device__ __forceinline__ void tally_warp(const LabelRows<I, C>& rows, I v, const Table<I, C, true>& table, Rule& rule)
{
    I begin = rows.indptr[v], end = rows.indptr[v + 1];
    int slots = (int)slots_of(end - begin);
    table.clear(slots, lane(), WARP);
    __syncwarp();
    fill_table(rows, begin, end, lane(), WARP, table, slots, rule);
    __syncwarp();
    auto row = rule.begin(v);
    long long inside = 0;
    TalliedLabel<I> best = best_of_slots(table, (long long)lane(), (long long)slots, WARP, row, v, rule, inside);
    best = best_of_lanes<WARP>(best);
    inside = warp_reduce(inside, Plus());
    if (lane() == 0) rule.settle(row, v, best, inside);
    __syncwarp();  // before the table is cleared for the next row
}

// The labels of a row or a piece of one into an empty table.  All threads of the block call; returns its slots.
template <typename I, typename C, typename Rule>
__device__ __forceinline__ int fill_by_block(const LabelRows<I, C>& rows, long long begin, long long end,
                                             const Table<I, C, true>& table, Rule& rule)
{
    int slots = (int)slots_of(end - begin);
    table.clear(slots, threadIdx.x, blockDim.x);
    __syncthreads();
    fill_table(rows, begin, end, threadIdx.x, blockDim.x, table, slots, rule);
    __syncthreads();
    return slots;
}

// A row by a block, with a table in shared memory.  All threads of the block call.
template <typename I, typename C, typename Rule>
__device__ __forceinline__ void tally_block(const LabelRows<I, C>& rows, I v, const Table<I, C, true>& table, Rule& rule)
{
    int slots = fill_by_block(rows, rows.indptr[v], rows.indptr[v + 1], table, rule);
    auto row = rule.begin(v);
    long long inside = 0;
    TalliedLabel<I> best =
        best_of_slots(table, (long long)threadIdx.x, (long long)slots, (int)blockDim.x, row, v, rule, inside);
    best = best_of_block(best);
    inside = block_reduce(inside, 0ll, Plus());
    if (threadIdx.x == 0) rule.settle(row, v, best, inside);
    __syncthreads();  // before the table is cleared for the next row
}
