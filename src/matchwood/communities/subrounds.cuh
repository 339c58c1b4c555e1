// The vertices of a sub-round, dealt out to lanes and blocks by the length of their rows.
//
// Host side: subrounds/gpu.py, which sorts the vertices of a round by sub-round and class
// (matchwood/tally.cuh has the classes).  begins[p * ROW_CLASSES + class] says where they begin in
// `order`; vertices without neighbours are not in it.
#pragma once
#include "matchwood/grid_barrier.cuh"
#include "matchwood/tally.cuh"

// The hubs of a round: rows of more than MEDIUM_ROW entries, cut into pieces; made by place_hubs.
//
// Blocks take the pieces of a sub-round in turn.  Hub h has the pieces first_piece[h] ..., as many as
// pieces_of says, and its table begins at slot first_slot[h] of its sub-round.  There is room for tables
// that begin within `capacity` slots; where a sub-round has more, it takes several waves.
template <typename I>
struct Hubs {
    I* key;  // room for tables, which are empty between two waves
    long long* weight;
    long long capacity;
    const I* vertex;
    const long long* first_slot;
    const I* first_piece;
    const I* piece_hub;            // the hub of a piece
    const long long* turns;        // HUB_WORDS for each sub-round; null where there are no hubs
    unsigned char* found;          // a HubPart for each piece
};

// Words of a sub-round.
constexpr int FIRST_HUB = 0, HUB_COUNT = 1, FIRST_PIECE = 2, PIECE_COUNT = 3, SLOT_COUNT = 4, HUB_WORDS = 5;

template <typename I>
struct HubPart {
    TalliedLabel<I> best;
    long long inside;
};
[[maybe_unused]] constexpr int HUB_PART_BYTES = 40;
static_assert(sizeof(HubPart<int>) <= HUB_PART_BYTES && sizeof(HubPart<long long>) <= HUB_PART_BYTES, "see gpu.py");

__device__ __forceinline__ long long pieces_of(long long length) { return (length + MEDIUM_ROW - 1) / MEDIUM_ROW; }

// The pair (sub-round, class) of v in a round, or -1 where it has no neighbours.
template <typename I>
__device__ __forceinline__ int pair_of(I v, const I* indptr, unsigned long long start, unsigned long long round,
                                       int parts)
{
    I length = indptr[v + 1] - indptr[v];
    if (length == 0) return -1;
    unsigned long long h = mix64(mix64(start ^ (unsigned long long)v) ^ round);
    return (int)(h % (unsigned)parts) * ROW_CLASSES + row_class(length);
}

// Deals out the vertices of a round inside a kernel; all threads of the grid call.  `counts` has a word for
// each pair, 0 before and after.
template <typename I>
struct Deal {
    int pairs, parts;
    I* begins;  // pairs + 1 of them, in shared memory
    I* base;    // the first place of this block in each pair
    int* here;  // how many it has there
    I* counts;

    __device__ __forceinline__ Deal(int parts, unsigned char* shared, I* counts)
        : pairs(parts * ROW_CLASSES), parts(parts), begins(reinterpret_cast<I*>(shared)), base(begins + pairs + 1),
          here(reinterpret_cast<int*>(base + pairs)), counts(counts)
    {
    }

    // Races: places of a pair are handed out to blocks by an atomic addition, and to threads by another.
    template <typename Barrier>
    __device__ __forceinline__ void make(I n, const I* indptr, unsigned long long start, unsigned long long round,
                                         I* order, const Barrier& barrier) const
    {
        for (int p = threadIdx.x; p < pairs; p += blockDim.x) here[p] = 0;
        __syncthreads();
        for_mine(n, indptr, start, round, [&](I, int p) { atomicAdd(&here[p], 1); });
        __syncthreads();
        for (int p = threadIdx.x; p < pairs; p += blockDim.x) {
            base[p] = here[p] ? take(&counts[p], I(here[p])) : I(0);
            here[p] = 0;
        }
        barrier.wait();
        I before = 0;
        for (int first = 0; first < pairs; first += blockDim.x) {
            int p = first + threadIdx.x;
            I all, count = p < pairs ? load_relaxed(&counts[p]) : I(0), mine = block_exclusive_sum(count, &all);
            if (p < pairs) {
                begins[p] = before + mine;
                base[p] += before + mine;
            }
            before += all;
        }
        if (threadIdx.x == 0) begins[pairs] = before;
        __syncthreads();
        for_mine(n, indptr, start, round, [&](I v, int p) { order[base[p] + atomicAdd(&here[p], 1)] = v; });
        barrier.wait();
        if (blockIdx.x == 0)  // read by all before that barrier, and not again before others
            for (int p = threadIdx.x; p < pairs; p += blockDim.x) store_relaxed(&counts[p], I(0));
    }

private:
    template <typename Each>
    __device__ __forceinline__ void for_mine(I n, const I* indptr, unsigned long long start, unsigned long long round,
                                             Each each) const
    {
        for (long long v = global_thread(); v < n; v += all_threads()) {
            int p = pair_of((I)v, indptr, start, round, parts);
            if (p >= 0) each((I)v, p);
        }
    }
};

// Whose turn it is: classes of few rows follow each other over the warps of the grid, so that they are
// worked on at the same time.
struct Turn {
    unsigned warps, first;  // warps of the grid; the warp that has the first rows of the next class

    __device__ __forceinline__ Turn() : warps((unsigned)(all_threads() / WARP)), first(0) {}

    // This warp's place, from `first` on, in a class that takes `taken` warps in turn.
    __device__ __forceinline__ unsigned take_place(long long taken)
    {
        unsigned me = (unsigned)(global_thread() / WARP), place = me >= first ? me - first : me + warps - first;
        first += taken < warps ? (unsigned)taken : (unsigned)(taken % warps);
        if (first >= warps) first -= warps;
        return place;
    }
};

// each(open, v) for groups of WIDTH lanes; all lanes of a warp call at the same time.
template <int WIDTH, typename I, typename Each>
__device__ __forceinline__ void for_groups(const I* order, I begin, I end, Turn& turn, Each each)
{
    constexpr int GROUPS = WARP / WIDTH;  // groups of a warp
    long long rows = end - begin, step = (long long)turn.warps * GROUPS;
    for (long long at = (long long)turn.take_place((rows + GROUPS - 1) / GROUPS) * GROUPS; at < rows; at += step) {
        long long i = at + lane() / WIDTH;
        bool open = i < rows;
        each(open, open ? order[begin + i] : I(0));
    }
}

// each(v) by whole blocks, the first `blocks` of the grid.
template <typename I, typename Each>
__device__ __forceinline__ void for_blocks(const I* order, I begin, I end, int blocks, Each each)
{
    if ((int)blockIdx.x >= blocks) return;
    for (long long i = begin + (long long)blockIdx.x; i < end; i += blocks) each(order[i]);
}

// The pieces of the hubs of a wave that are open: each(v, h, k, pieces) for piece k of hub h, vertex v.
template <typename I, typename C, typename Rule, typename Each>
__device__ __forceinline__ void for_pieces(const LabelRows<I, C>& rows, const Hubs<I>& hubs, const long long* turn,
                                           long long wave, Rule& rule, Each each)
{
    for (long long at = blockIdx.x; at < turn[PIECE_COUNT]; at += gridDim.x) {
        long long t = turn[FIRST_PIECE] + at;
        I h = hubs.piece_hub[t], v = hubs.vertex[h];
        if (hubs.first_slot[h] / hubs.capacity != wave || !rule.open(v)) continue;
        each(v, h, t - hubs.first_piece[h], pieces_of(rows.indptr[v + 1] - rows.indptr[v]));
    }
}

template <typename C, typename I>
__device__ __forceinline__ Table<I, C, false> table_of(const Hubs<I>& hubs, I h)
{
    long long at = hubs.first_slot[h] % hubs.capacity;
    return Table<I, C, false>{hubs.key + at, reinterpret_cast<C*>(hubs.weight) + at};
}

// First step of a wave: the entries of its hubs go into their tables.
template <typename I, typename C, typename Rule>
__device__ __forceinline__ void fill_hubs(const LabelRows<I, C>& rows, const Hubs<I>& hubs, const long long* turn,
                                          long long wave, const Table<I, C, true>& shared, Rule& rule)
{
    for_pieces(rows, hubs, turn, wave, rule, [&](I v, I h, long long k, long long) {
        long long begin = rows.indptr[v] + k * MEDIUM_ROW, end = rows.indptr[v + 1];
        if (end > begin + MEDIUM_ROW) end = begin + MEDIUM_ROW;
        int slots = fill_by_block(rows, begin, end, shared, rule);
        Table<I, C, false> whole = table_of<C>(hubs, h);
        long long all = slots_of(rows.indptr[v + 1] - rows.indptr[v]);
        for (int s = threadIdx.x; s < slots; s += blockDim.x)
            if (shared.key[s] >= 0) whole.add(all, shared.key[s], shared.weight[s]);
        __syncthreads();
    });
}

// Second step: the best label in each part of a table, which is empty again afterwards.
template <typename I, typename C, typename Rule>
__device__ __forceinline__ void scan_hubs(const LabelRows<I, C>& rows, const Hubs<I>& hubs, const long long* turn,
                                          long long wave, Rule& rule)
{
    HubPart<I>* found = reinterpret_cast<HubPart<I>*>(hubs.found);
    for_pieces(rows, hubs, turn, wave, rule, [&](I v, I h, long long k, long long pieces) {
        long long all = slots_of(rows.indptr[v + 1] - rows.indptr[v]);
        long long from = all * k / pieces, to = all * (k + 1) / pieces;
        Table<I, C, false> table = table_of<C>(hubs, h);
        auto row = rule.begin(v);
        long long inside = 0;
        TalliedLabel<I> best =
            best_of_slots(table, from + threadIdx.x, to, (int)blockDim.x, row, v, rule, inside);
        Table<I, C, false>{table.key + from, table.weight + from}.clear(to - from, threadIdx.x, blockDim.x);
        best = best_of_block(best);
        inside = block_reduce(inside, 0ll, Plus());
        if (threadIdx.x == 0) found[hubs.first_piece[h] + k] = HubPart<I>{best, inside};
    });
}

// Third step: the best of a hub, by a block.
template <typename I, typename C, typename Rule>
__device__ __forceinline__ void settle_hubs(const LabelRows<I, C>& rows, const Hubs<I>& hubs, const long long* turn,
                                            long long wave, Rule& rule)
{
    const HubPart<I>* found = reinterpret_cast<const HubPart<I>*>(hubs.found);
    for (long long at = blockIdx.x; at < turn[HUB_COUNT]; at += gridDim.x) {
        I h = (I)(turn[FIRST_HUB] + at), v = hubs.vertex[h];
        if (hubs.first_slot[h] / hubs.capacity != wave || !rule.open(v)) continue;
        long long pieces = pieces_of(rows.indptr[v + 1] - rows.indptr[v]), inside = 0;
        TalliedLabel<I> best = no_label<I>();
        for (long long k = threadIdx.x; k < pieces; k += blockDim.x) {
            const HubPart<I>& part = found[hubs.first_piece[h] + k];
            best = better(best, part.best);
            inside += part.inside;
        }
        best = best_of_block(best);
        inside = block_reduce(inside, 0ll, Plus());
        if (threadIdx.x == 0) rule.settle(rule.begin(v), v, best, inside);
        __syncthreads();  // open(v) has been read by all threads
    }
}

// Tables in shared memory: one for the block, which is at the same time one for each of its warps.
template <typename I, typename C>
struct SharedTables {
    Table<I, C, true> block, warp;

    __device__ __forceinline__ SharedTables(I* keys, C* weights)
        : block{keys, weights}, warp{keys + ::warp() * WARP_SLOTS, weights + ::warp() * WARP_SLOTS}
    {
    }
};

// Every open vertex of sub-round p looks at its row; hubs first, they take longest.  All threads of the
// grid call.  Races: labels and what is known of them are only read here; tables of hubs are filled and
// read in steps with a barrier between them, and each hub is settled by one thread after that.
template <typename I, typename C, typename Barrier, typename Rule>
__device__ __forceinline__ void look_around(const LabelRows<I, C>& rows, const I* order, const I* begins,
                                            const Hubs<I>& hubs, int p, const Barrier& barrier,
                                            const SharedTables<I, C>& tables, Rule& rule)
{
    const long long* turn = hubs.turns == nullptr ? nullptr : hubs.turns + p * HUB_WORDS;
    bool has_hubs = turn != nullptr && turn[HUB_COUNT] > 0;
    if (has_hubs) fill_hubs(rows, hubs, turn, 0, tables.block, rule);
    for_blocks(order, begins[BLOCK_CLASS], begins[HUB_CLASS], (int)gridDim.x, [&](I v) {
        if (rule.open(v)) tally_block(rows, v, tables.block, rule);
    });
    Turn next;
    for_groups<32>(order, begins[WARP_CLASS], begins[BLOCK_CLASS], next, [&](bool here, I v) {
        if (here && rule.open(v)) tally_warp(rows, v, tables.warp, rule);
    });
    for_groups<32>(order, begins[3], begins[4], next,
                   [&](bool here, I v) { tally_lanes<32>(rows, here && rule.open(v), v, rule); });
    for_groups<16>(order, begins[2], begins[3], next,
                   [&](bool here, I v) { tally_lanes<16>(rows, here && rule.open(v), v, rule); });
    for_groups<8>(order, begins[1], begins[2], next,
                  [&](bool here, I v) { tally_lanes<8>(rows, here && rule.open(v), v, rule); });
    for_groups<4>(order, begins[0], begins[1], next,
                  [&](bool here, I v) { tally_lanes<4>(rows, here && rule.open(v), v, rule); });
    if (!has_hubs) return;
    for (long long wave = 0; wave * hubs.capacity < turn[SLOT_COUNT]; ++wave) {
        if (wave > 0) fill_hubs(rows, hubs, turn, wave, tables.block, rule);
        barrier.wait();
        scan_hubs(rows, hubs, turn, wave, rule);
        barrier.wait();
        settle_hubs(rows, hubs, turn, wave, rule);
    }
}

// each(v, me, us) for every vertex of a sub-round: it is number `me` of `us` threads that have v, lanes
// of a warp (us <= 32) or a block.  All threads of the block call; those without a vertex have v = -1.
template <typename I, typename Each>
__device__ __forceinline__ void for_vertices(const I* order, const I* begins, Each each)
{
    for_blocks(order, begins[BLOCK_CLASS], begins[ROW_CLASSES], (int)gridDim.x, [&](I v) {
        each(v, (int)threadIdx.x, (int)blockDim.x);
        __syncthreads();
    });
    Turn next;
    for_groups<16>(order, begins[2], begins[BLOCK_CLASS], next,
                   [&](bool here, I v) { each(here ? v : I(-1), lane() & 15, 16); });
    for_groups<8>(order, begins[1], begins[2], next, [&](bool here, I v) { each(here ? v : I(-1), lane() & 7, 8); });
    for_groups<4>(order, begins[0], begins[1], next, [&](bool here, I v) { each(here ? v : I(-1), lane() & 3, 4); });
}

// The neighbours of v become active; by thread `me` of `us`.  Four at a time, so that reads overlap.
template <typename I, typename C>
__device__ __forceinline__ void wake_neighbours(const LabelRows<I, C>& rows, I v, int me, int us, unsigned char* active)
{
    constexpr int EACH = 4;
    for (long long e = rows.indptr[v] + me, end = rows.indptr[v + 1]; e < end; e += (long long)EACH * us) {
        I who[EACH];
#pragma unroll
        for (int k = 0; k < EACH; ++k) who[k] = e + (long long)k * us < end ? rows.indices[e + (long long)k * us] : I(-1);
#pragma unroll
        for (int k = 0; k < EACH; ++k)
            if (who[k] >= 0) store_relaxed(&active[who[k]], (unsigned char)1);
    }
}

// What the threads that share a vertex must pass before one of them writes what all have read.
__device__ __forceinline__ void meet(int us)
{
    if (us > WARP)
        __syncthreads();
    else
        __syncwarp();
}
