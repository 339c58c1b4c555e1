// What the phases of a level are made of: counters, ways through rows by warps and blocks, and the order in which
// vertices leave blocks that are too heavy, as numbers.  For gpu.cu.
#pragma once
#include "matchwood/frontier.cuh"
#include "matchwood/grid_barrier.cuh"
#include "matchwood/tally.cuh"

constexpr int BLOCK = TALLY_BLOCK;   // threads
constexpr int HUB_ROW = 2048;        // entries; longer rows are left to blocks
constexpr int NONE = -1;             // no block
constexpr int WORDS = 64;            // counters

__device__ __forceinline__ void add_signed(long long* p, long long x)
{
    atomicAdd(reinterpret_cast<unsigned long long*>(p), (unsigned long long)x);
}

// Counters that are 0 when they are handed out, the same ones to all blocks.  A word is cleared half a turn
// before it is handed out again: barriers lie between that and its uses before and after.
struct Counters {
    unsigned long long* words;
    int turn;

    __device__ __forceinline__ unsigned long long* fresh()
    {
        if (global_thread() == 0) store_relaxed(&words[(turn + WORDS / 2) % WORDS], 0ull);
        return &words[turn++ % WORDS];
    }
};

// A level, and room to walk through it: vertices, lists of them, and rows.
template <typename I, typename C>
struct Walks {
    I n;
    LabelRows<I, C> rows;
    long long longest;
    int k;
    I* longs;
    I* spare_key;  // tables for rows of many blocks
    C* spare_weight;
    long long spare_slots;
    int spares;
    GridBarrier barrier;
    Counters counters;
    unsigned long long* wide;  // in shared memory: SHARED_SLOTS of each
    I* narrow;

    // each(v, is_one, value[v]) for all vertices; whole warps call.  Several values are read at once.
    template <typename Each>
    __device__ __forceinline__ void for_all(const int* value, Each each) const
    {
        constexpr int AT_ONCE = 4;
        for (long long v = global_thread(); v - lane() < n; v += AT_ONCE * all_threads()) {
            int its[AT_ONCE];
#pragma unroll
            for (int i = 0; i < AT_ONCE; ++i) {
                long long u = v + i * all_threads();
                its[i] = u < n ? value[u] : NONE;
            }
#pragma unroll 1
            for (int i = 0; i < AT_ONCE; ++i) {
                long long u = v + i * all_threads();
                int at_hand = its[0];
                its[0] = its[1], its[1] = its[2], its[2] = its[3];
                if (u - lane() < n) each((I)u, u < n, at_hand);
            }
        }
    }

    // ---- rows whose entries are added up, those that are open(v): visit(v, entry, is_one) gives a part,
    // settle(v, sum) gets the sum.  A warp to a row, or a block.  Warps are whole when they visit.
    template <typename Open, typename Visit, typename Settle>
    __device__ __forceinline__ void sum_rows(const I* items, unsigned long long count, Open open, Visit visit,
                                             Settle settle)
    {
        unsigned long long* long_count = longest > HUB_ROW ? counters.fresh() : nullptr;
        for (long long i = global_thread() / WARP; i < (long long)count; i += all_threads() / WARP) {
            I v = items[i];
            if (!open(v)) continue;
            long long begin = rows.indptr[v], end = rows.indptr[v + 1], sum = 0;
            if (end - begin > HUB_ROW) {
                if (lane() == 0) longs[take(long_count, 1ull)] = v;
                continue;
            }
            for (long long e = begin; e < end; e += WARP) sum += visit(v, e + lane(), e + lane() < end);
            sum = warp_reduce(sum, Plus());
            if (lane() == 0) settle(v, sum);
        }
        if (long_count == nullptr) return;
        barrier.wait();
        long long longer = (long long)load_relaxed(long_count);
        for (long long i = blockIdx.x; i < longer; i += gridDim.x) {
            I v = longs[i];
            long long begin = rows.indptr[v], end = rows.indptr[v + 1], sum = 0;
            for (long long e = begin; e < end; e += BLOCK)
                sum += visit(v, e + threadIdx.x, e + threadIdx.x < end);
            sum = block_reduce(sum, 0ll, Plus());
            if (threadIdx.x == 0) settle(v, sum);
        }
    }

    // ---- rows whose blocks are added up, by a rule of matchwood/tally.cuh.  items: null for all vertices.

    __device__ __forceinline__ long long slots_for(long long length) const
    {
        return slots_of(length < k ? length : (long long)k);
    }

    template <typename Rule>
    __device__ __forceinline__ void tally_rows(const I* items, unsigned long long count, Rule rule)
    {
        bool has_longs = longest > HUB_ROW || slots_for(longest) > WARP_SLOTS;
        unsigned long long* long_count = has_longs ? counters.fresh() : nullptr;
        long long warps = all_threads() / WARP, share = ((long long)count + warps - 1) / warps;
        if (share > WARP) share = WARP;
        for (long long first = global_thread() / WARP * share; first < (long long)count; first += warps * share) {
            bool is_one = lane() < share && first + lane() < (long long)count;
            I v = is_one ? (items == nullptr ? (I)(first + lane()) : items[first + lane()]) : I(0);
            long long length = is_one ? (long long)(rows.indptr[v + 1] - rows.indptr[v]) : 0;
            bool is_long = length > HUB_ROW || slots_for(length) > WARP_SLOTS;
            tally_few<8>(__ballot_sync(ALL, is_one && length <= 8), v, rule);
            tally_few<32>(__ballot_sync(ALL, length > 8 && length <= 32), v, rule);
            for (unsigned left = __ballot_sync(ALL, length > 32 && !is_long); left != 0; left &= left - 1)
                tally_by_warp(__shfl_sync(ALL, v, __ffs(left) - 1), rule);
            if (has_longs) append(longs, long_count, v, is_long);
        }
        if (!has_longs) return;
        barrier.wait();
        long long longer = (long long)load_relaxed(long_count);
        for (long long i = blockIdx.x; i < longer; i += gridDim.x) {
            I v = longs[i];
            if (slots_for(rows.indptr[v + 1] - rows.indptr[v]) <= SHARED_SLOTS) tally_by_block(v, rule);
        }
        if (slots_for(longest) <= SHARED_SLOTS || (int)blockIdx.x >= spares) return;
        for (long long i = blockIdx.x; i < longer; i += spares) {
            I v = longs[i];
            if (slots_for(rows.indptr[v + 1] - rows.indptr[v]) > SHARED_SLOTS) tally_by_spare(v, rule);
        }
    }

    // Rows of at most WIDTH entries, of the lanes that `left` names.
    template <int WIDTH, typename Rule>
    __device__ __forceinline__ void tally_few(unsigned left, I v, Rule& rule) const
    {
        while (left != 0) {
            int from = -1;
            for (int group = 0; group < WARP / WIDTH && left != 0; ++group, left &= left - 1)
                if (group == lane() / WIDTH) from = __ffs(left) - 1;
            I mine = __shfl_sync(ALL, v, from < 0 ? 0 : from);
            tally_lanes<WIDTH>(rows, from >= 0, mine, rule);
        }
    }

    template <typename Rule>
    __device__ __forceinline__ void tally_by_warp(I v, Rule& rule) const
    {
        Table<I, C, true> table{narrow + warp() * WARP_SLOTS, reinterpret_cast<C*>(wide) + warp() * WARP_SLOTS};
        long long begin = rows.indptr[v], end = rows.indptr[v + 1], inside = 0;
        int slots = (int)slots_for(end - begin);
        table.clear(slots, lane(), WARP);
        __syncwarp();
        fill_table(rows, begin, end, lane(), WARP, table, slots, rule);
        __syncwarp();
        auto row = rule.begin(v);
        TalliedLabel<I> found = best_of_slots(table, (long long)lane(), (long long)slots, WARP, row, v, rule, inside);
        found = best_of_lanes<WARP>(found);
        inside = warp_reduce(inside, Plus());
        if (lane() == 0) rule.settle(row, v, found, inside);
        __syncwarp();  // before the table is cleared for the next row
    }

    template <typename Rule>
    __device__ __forceinline__ void tally_by_block(I v, Rule& rule) const
    {
        Table<I, C, true> table{narrow, reinterpret_cast<C*>(wide)};
        int slots = (int)slots_for(rows.indptr[v + 1] - rows.indptr[v]);
        table.clear(slots, threadIdx.x, BLOCK);
        __syncthreads();
        fill_table(rows, rows.indptr[v], rows.indptr[v + 1], threadIdx.x, BLOCK, table, slots, rule);
        settle_by_block(v, table, slots, rule);
    }

    template <typename Rule>
    __device__ __forceinline__ void tally_by_spare(I v, Rule& rule) const
    {
        long long at = blockIdx.x * spare_slots, begin = rows.indptr[v], end = rows.indptr[v + 1];
        Table<I, C, false> table{spare_key + at, spare_weight + at};
        long long slots = slots_for(end - begin);
        table.clear(slots, threadIdx.x, BLOCK);
        __syncthreads();
        for (long long e = begin + threadIdx.x; e < end; e += BLOCK)
            table.add(slots, rule.label(rows.indices[e]), rows.weight(e));
        settle_by_block(v, table, slots, rule);
    }

    template <bool IN_SHARED, typename Rule>
    __device__ __forceinline__ void settle_by_block(I v, const Table<I, C, IN_SHARED>& table, long long slots,
                                                    Rule& rule) const
    {
        __syncthreads();
        auto row = rule.begin(v);
        long long inside = 0;
        TalliedLabel<I> found = best_of_slots(table, (long long)threadIdx.x, slots, BLOCK, row, v, rule, inside);
        found = best_of_block(found);
        inside = block_reduce(inside, 0ll, Plus());
        if (threadIdx.x == 0) rule.settle(row, v, found, inside);
        __syncthreads();
    }
};

// ---- The order of candidates

using Key = unsigned long long;
constexpr Key HALF = 0x4800000000000000ull;  // more than the bits of any rank without its sign

// Of many candidates those are sorted that may be needed: of each block the first by buckets of ranks, until
// they weigh PLENTY times what must leave it.  Where that was too little, all are sorted.
constexpr int SIDE = 128;            // buckets of ranks of one sign, four for each power of two from 2^-8 on
constexpr int BUCKETS = 3 * SIDE;    // positive, others, and those without a block that they are tied to
constexpr int PLENTY = 4;
constexpr int WORTH_FILTER = 512;    // candidates
constexpr unsigned long long TOO_FEW = ~0ull;

// Candidates by this key, then by vertex: those with a block that they are tied to first, larger ranks first.
__device__ __forceinline__ Key key_of(long long gain, long long weight, bool second)
{
    double g = (double)gain, w = (double)weight, rank = gain > 0 ? __dmul_rn(g, w) : __ddiv_rn(g, w);
    Key bits = bits_as<Key>(rank < 0 ? -rank : rank);
    return rank > 0 ? HALF - bits : HALF + bits + (second ? HALF : 0);
}

// Grows with the key.
__device__ __forceinline__ int bucket_of(Key key)
{
    bool positive = key < HALF, second = key >= 2 * HALF;
    int octave = (int)((positive ? HALF - key : key - HALF - (second ? HALF : 0)) >> 50) - (1023 - 8) * 4;
    int at = octave < 0 ? 0 : octave < SIDE ? octave : SIDE - 1;
    return positive ? SIDE - 1 - at : SIDE + at + (second ? SIDE : 0);
}

// Sorts `padded` candidates in shared memory, a power of two, by key and vertex.  All threads of the block call.
template <typename I>
__device__ __forceinline__ void sort_tile(Key* keys, I* vertices, int padded)
{
    for (int run = 2; run <= padded; run *= 2)
        for (int hop = run / 2; hop > 0; hop /= 2) {
            __syncthreads();
            for (int pair = threadIdx.x; pair < padded / 2; pair += blockDim.x) {
                int low = 2 * pair - (pair & (hop - 1)), high = low + hop;
                bool swap = keys[high] < keys[low] || (keys[high] == keys[low] && vertices[high] < vertices[low]);
                if (swap != ((low & run) == 0)) continue;
                Key other = keys[low];
                I whose = vertices[low];
                keys[low] = keys[high], vertices[low] = vertices[high];
                keys[high] = other, vertices[high] = whose;
            }
        }
    __syncthreads();
}

// The place of candidate i among all, of which each TILE is sorted.
template <int TILE, typename I>
__device__ __forceinline__ long long place_in_tiles(const Key* keys, const I* vertices, long long size, long long i)
{
    Key mine = keys[i];
    I v = vertices[i];
    long long place = i % TILE;
    for (long long from = 0; from < size; from += TILE) {
        if (from == i - i % TILE) continue;
        long long low = from, high = from + TILE < size ? from + TILE : size;
        while (low < high) {
            long long middle = (low + high) / 2;
            if (keys[middle] < mine || (keys[middle] == mine && vertices[middle] < v))
                low = middle + 1;
            else
                high = middle;
        }
        place += low - from;
    }
    return place;
}
