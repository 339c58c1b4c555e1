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
[[maybe_unused]] constexpr int TALLY_BLOCKS = 6;  // for a multiprocessor, at least: registers spill a little, and
                                                  // it is still a quarter faster than with two (R-MAT 22, H200)
constexpr int SHARED_SLOTS = 2048;           // of the table in shared memory
constexpr int MEDIUM_ROW = SHARED_SLOTS / 2; // entries: a table is at most half full
constexpr int WARP_SLOTS = SHARED_SLOTS / (TALLY_BLOCK / WARP);
constexpr int WARP_ROW = WARP_SLOTS / 2;     // entries
constexpr int WARP_CLASS = 4, BLOCK_CLASS = 5, HUB_CLASS = 6, ROW_CLASSES = 7;

__device__ __forceinline__ int row_class(long long length)
{
    if (length <= 32) return length <= 4 ? 0 : length <= 8 ? 1 : length <= 16 ? 2 : 3;
    return length <= WARP_ROW ? WARP_CLASS : length <= MEDIUM_ROW ? BLOCK_CLASS : HUB_CLASS;
}

template <typename I>
struct LabelRows {
    const I* indptr;
    const I* indices;
    const long long* data;  // null: all weigh 1

    __device__ __forceinline__ long long weight(I entry) const { return data == nullptr ? 1 : data[entry]; }
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

template <int WIDTH, typename I>
__device__ __forceinline__ TalliedLabel<I> best_of_lanes(TalliedLabel<I> best)
{
#pragma unroll
    for (int step = WIDTH / 2; step > 0; step /= 2) {
        TalliedLabel<I> other;
        other.value = __shfl_xor_sync(ALL, best.value, step);
        other.hash = __shfl_xor_sync(ALL, best.hash, step);
        other.label = __shfl_xor_sync(ALL, best.label, step);
        other.weight = __shfl_xor_sync(ALL, best.weight, step);
        best = better(best, other);
    }
    return best;
}

// A row of up to WIDTH entries by WIDTH lanes.  All lanes of the warp call; `open` is the same in the
// lanes of a group, and only open groups have a vertex.
template <int WIDTH, typename I, typename Rule>
__device__ __forceinline__ void tally_lanes(const LabelRows<I>& rows, bool open, I v, Rule& rule)
{
    int k = lane() & (WIDTH - 1);
    I begin = open ? rows.indptr[v] : I(0), end = open ? rows.indptr[v + 1] : I(0);
    bool is_entry = k < end - begin;
    I c = I(-1);
    long long w = 0;
    if (is_entry) {
        c = rule.label(rows.indices[begin + k]);
        w = rows.weight(begin + k);
    }
    long long sum = 0;
#pragma unroll
    for (int j = 0; j < WIDTH; ++j) {
        I other = __shfl_sync(ALL, c, j, WIDTH);
        long long its = __shfl_sync(ALL, w, j, WIDTH);
        sum += other == c ? its : 0;
    }
    auto row = rule.begin(open ? v : I(0));
    TalliedLabel<I> best = is_entry ? rule.candidate(row, v, c, sum) : no_label<I>();
    best = best_of_lanes<WIDTH>(best);
    long long inside = warp_reduce<WIDTH>(is_entry && c == row.own ? w : 0ll, Plus());
    if (open && k == 0) rule.settle(row, v, best, inside);
}

// A hash table with linear probing, in shared or global memory.
template <typename I>
struct Table {
    I* key;  // -1: free
    long long* weight;

    // By threads me, me + us, ...
    __device__ __forceinline__ void clear(long long slots, int me, int us) const
    {
        for (long long s = me; s < slots; s += us) {
            store_relaxed(&key[s], I(-1));
            store_relaxed(&weight[s], 0ll);
        }
    }

    __device__ __forceinline__ void add(long long slots, I label, long long w) const
    {
        unsigned long long s = mix64((unsigned long long)label) & (unsigned long long)(slots - 1);
        while (true) {
            I there = load_relaxed(&key[s]);
            if (there < 0) there = compare_and_swap(&key[s], I(-1), label);
            if (there < 0 || there == label) break;
            s = (s + 1) & (unsigned long long)(slots - 1);
        }
        atomicAdd(reinterpret_cast<unsigned long long*>(&weight[s]), (unsigned long long)w);
    }
};

// Slots of the table for so many entries: a power of two, so that it is at most half full.
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
template <typename I, typename Row, typename Rule>
__device__ __forceinline__ TalliedLabel<I> best_of_slots(const Table<I>& table, long long from, long long to, int step,
                                                         const Row& row, I v, Rule& rule, long long& inside)
{
    TalliedLabel<I> best = no_label<I>();
    for (long long s = from; s < to; s += step) {
        I c = load_relaxed(&table.key[s]);
        if (c < 0) continue;
        long long w = load_relaxed(&table.weight[s]);
        if (c == row.own) inside += w;
        best = better(best, rule.candidate(row, v, c, w));
    }
    return best;
}

// A row of up to WARP_ROW entries by a warp, with a table of WARP_SLOTS of its own.
template <typename I, typename Rule>
__device__ __forceinline__ void tally_warp(const LabelRows<I>& rows, I v, const Table<I>& table, Rule& rule)
{
    I begin = rows.indptr[v], end = rows.indptr[v + 1];
    int slots = (int)slots_of(end - begin);
    table.clear(slots, lane(), WARP);
    __syncwarp();
    for (I e = begin + lane(); e < end; e += WARP) table.add(slots, rule.label(rows.indices[e]), rows.weight(e));
    __syncwarp();
    auto row = rule.begin(v);
    long long inside = 0;
    TalliedLabel<I> best = best_of_slots(table, (long long)lane(), (long long)slots, WARP, row, v, rule, inside);
    best = best_of_lanes<WARP>(best);
    inside = warp_reduce(inside, Plus());
    if (lane() == 0) rule.settle(row, v, best, inside);
    __syncwarp();  // before the table is cleared for the next row
}

// The labels of entries begin .. end - 1 into a table in shared memory.  All threads of the block call.
template <typename I, typename Rule>
__device__ __forceinline__ long long fill_table(const LabelRows<I>& rows, I begin, I end, const Table<I>& table,
                                                Rule& rule)
{
    long long slots = slots_of(end - begin);
    table.clear(slots, threadIdx.x, blockDim.x);
    __syncthreads();
    for (I e = begin + threadIdx.x; e < end; e += blockDim.x)
        table.add(slots, rule.label(rows.indices[e]), rows.weight(e));
    __syncthreads();
    return slots;
}

// A row by a block, with a table in shared memory.  All threads of the block call.
template <typename I, typename Rule>
__device__ __forceinline__ void tally_block(const LabelRows<I>& rows, I v, const Table<I>& table, Rule& rule)
{
    long long slots = fill_table(rows, rows.indptr[v], rows.indptr[v + 1], table, rule);
    auto row = rule.begin(v);
    long long inside = 0;
    TalliedLabel<I> best = best_of_slots(table, (long long)threadIdx.x, slots, (int)blockDim.x, row, v, rule, inside);
    best = best_of_block(best);
    inside = block_reduce(inside, 0ll, Plus());
    if (threadIdx.x == 0) rule.settle(row, v, best, inside);
    __syncthreads();  // before the table is cleared for the next row
}
