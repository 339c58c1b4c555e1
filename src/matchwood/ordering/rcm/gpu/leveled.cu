// Cuthill-McKee level by level ("leveled"), and levels alone, for the search of a start.  Host side:
// leveled.py; the rule and the papers: __init__.py of the folder above; what `order` and `owner` hold,
// and why the result does not depend on scheduling: queue.cuh; races: levels.cuh, and below.
//
// One launch does all levels, so that a level costs a few barriers and not launches.  All
// components are ordered at once: their starts are the first level.  The frontier is a window of
// `order`; its vertices offer their places to their neighbours, which keep the least; then every
// vertex of the frontier places those that kept its own, by (degree, vertex).  A small frontier of short
// rows is left to one block or one cluster, others are for all blocks.
//
// Levels alone: narrow levels are put in order all the same, as that costs little.  The vertices of a
// wide one stay in the order in which they are found, so that it takes one barrier and not six.
//
// A level of very many entries, or with a very long row, is left to the host: there a sort by the whole
// device is faster than one block for each owner.  The launch ends before that level, and the next goes on after it.
#include "matchwood/levels.cuh"

// LEVELS ALONE
//
// Races: owner[v] goes from none to the head of the frontier once, forwards by compare-and-swap, whose
// winner lists v, backwards by the one lane that has v.  Which vertices a level has does not depend
// on scheduling; their order within it does.

constexpr int FINDS_BYTES = 16384;       // shared memory for what a block finds in a level
constexpr int ENTRIES_ALONE = 16;        // entries that a free vertex tries alone before its warp helps,
constexpr int ENTRIES_HELPED = 1 << 30;  // and that the warp tries: all; as for breadth-first search

// What the warps of a block have found in a level.  Places are reserved for many vertices at once: all
// atomics on the one counter wait for each other.
template <typename I>
struct Finds {
    static constexpr int WARPS = LEVEL_BLOCK / WARP;
    static constexpr int ROOM = FINDS_BYTES / (int)sizeof(I) / WARPS;

    I vertex[WARPS][ROOM];
    int count[WARPS];
    Wide longest;  // row
    Wide place;

    // All threads of the block call.
    __device__ __forceinline__ void clear()
    {
        if (lane() == 0) count[warp()] = 0;
        if (threadIdx.x == 0) longest = 0;
    }
};

// What all blocks do in such a level; every step is done by all threads of all members.
template <typename I>
struct MixedLevel {
    const Queue<I>& queue;
    RollCall& roll;
    const Front<I>& front;
    Finds<I>& finds;
    int warp_, warps;
    I longest = 0;

    // Entries of the rows of the frontier.  Meets.
    __device__ Wide front_arcs()
    {
        Wide arcs = 0, all;
        for (Wide at = (Wide)warp_ * WARP + lane(); at < (Wide)front.size(); at += (Wide)warps * WARP)
            arcs += queue.degree(load_relaxed(&queue.order[front.head + at]));
        arcs = warp_reduce(arcs, Plus());
        if (lane() == 0 && arcs > 0) atomicAdd(roll.second_sum(), arcs);
        roll.meet(&all);
        return all;
    }

    // Vertices of the next level, and the lengths of their rows.  All lanes of the warp call.
    template <int COUNT>
    __device__ __forceinline__ void list(const I (&w)[COUNT], const I (&length)[COUNT], const bool (&fresh)[COUNT])
    {
        unsigned votes[COUNT];
        int all = 0, here = finds.count[warp()];
#pragma unroll
        for (int k = 0; k < COUNT; ++k) {
            votes[k] = __ballot_sync(ALL, fresh[k]);
            all += __popc(votes[k]);
        }
        if (all == 0) return;
        I* target = finds.vertex[warp()] + here;
        if (here + all > Finds<I>::ROOM) {  // these and what is here go to the queue
            Wide place = lane() == 0 ? roll.add(here + all) : 0;
            target = queue.order + front.tail + __shfl_sync(ALL, place, 0);
            for (int i = lane(); i < here; i += WARP) store_relaxed(&target[i], finds.vertex[warp()][i]);
            target += here;
            all = -here;
        }
        __syncwarp();
        if (lane() == 0) finds.count[warp()] = here + all;
#pragma unroll
        for (int k = 0; k < COUNT; ++k) {
            if (fresh[k]) {
                target[__popc(votes[k] & lanes_below())] = w[k];
                longest = Most()(longest, length[k]);
            }
            target += __popc(votes[k]);
        }
        __syncwarp();
    }

    // Neighbours w (or -1) of the frontier.  All lanes of the warp call.
    __device__ __forceinline__ void visit(const I (&w)[LEVEL_BATCH])
    {
        I seen[LEVEL_BATCH], length[LEVEL_BATCH];
        bool fresh[LEVEL_BATCH];
#pragma unroll
        for (int k = 0; k < LEVEL_BATCH; ++k) seen[k] = w[k] >= 0 ? load_relaxed(&queue.owner[w[k]]) : I(-1);
#pragma unroll
        for (int k = 0; k < LEVEL_BATCH; ++k) fresh[k] = seen[k] == queue.none();
        // lengths are read before it is known whether the swap succeeds: both wait at the same time
#pragma unroll
        for (int k = 0; k < LEVEL_BATCH; ++k)
            if (fresh[k]) seen[k] = compare_and_swap(&queue.owner[w[k]], queue.none(), front.head);
#pragma unroll
        for (int k = 0; k < LEVEL_BATCH; ++k) length[k] = fresh[k] ? queue.degree(w[k]) : I(0);
#pragma unroll
        for (int k = 0; k < LEVEL_BATCH; ++k) fresh[k] = seen[k] == queue.none();
        list(w, length, fresh);
    }

    // All rows of the frontier are short: some lanes per row, a few rows at once.
    __device__ __forceinline__ void go_evenly()
    {
        int log = lanes_log(front.longest), rows = WARP >> log;
        Wide size = front.size(), turns = (size + (Wide)warps * rows - 1) / ((Wide)warps * rows);
        int count = turns < LEVEL_BATCH ? (int)turns : LEVEL_BATCH;
        for (Wide at = (Wide)warp_ * rows * count; at < size; at += (Wide)warps * rows * count) {
            I w[LEVEL_BATCH], begin[LEVEL_BATCH], end[LEVEL_BATCH];
#pragma unroll
            for (int k = 0; k < LEVEL_BATCH; ++k) {
                Wide i = at + k * rows + (lane() >> log);
                begin[k] = -1;
                if (k < count && i < size) begin[k] = load_relaxed(&queue.order[front.head + i]);
            }
#pragma unroll
            for (int k = 0; k < LEVEL_BATCH; ++k) {
                end[k] = begin[k] >= 0 ? queue.indptr[begin[k] + 1] : I(0);
                begin[k] = begin[k] >= 0 ? queue.indptr[begin[k]] : I(0);
            }
#pragma unroll
            for (int k = 0; k < LEVEL_BATCH; ++k) {
                I entry = begin[k] + (lane() & ((1 << log) - 1));
                w[k] = entry < end[k] ? queue.indices[entry] : I(-1);
            }
            visit(w);
        }
    }

    // The neighbours of rows, one row for each lane.
    __device__ __forceinline__ void reach(I begin, I end)
    {
        WarpRows<I>(begin, end).template for_batches<LEVEL_BATCH>(
            [&](I at) { return queue.indices[at]; }, [&](const auto&, const auto& w) { visit(w); });
    }

    // The neighbours of `size` rows; `row(i, begin, end)` gives the i-th of them.
    template <typename Row>
    __device__ __forceinline__ void reach_all(Wide size, Row row)
    {
        Wide even = (size + warps - 1) / warps;
        int chunk = even < WARP ? (int)even : WARP;
        for (Wide at = (Wide)warp_ * chunk; at < size; at += (Wide)warps * chunk) {
            I begin = 0, end = 0;
            if (lane() < chunk && at + lane() < size) row(at + lane(), begin, end);
            reach(begin, end);
        }
    }

    // From the frontier; `piece` lists parts of its long rows.
    __device__ void go_forwards(const I* piece, Wide pieces)
    {
        reach_all(front.size(), [&](Wide i, I& begin, I& end) {
            I v = load_relaxed(&queue.order[front.head + i]);
            begin = queue.indptr[v];
            end = queue.indptr[v + 1];
            if (end - begin > LONG_ROW) end = begin;
        });
        reach_all(pieces, [&](Wide i, I& begin, I& end) {
            I v = load_relaxed(&queue.order[piece[2 * i]]);
            begin = queue.indptr[v] + piece[2 * i + 1] * LONG_ROW;
            end = queue.indptr[v + 1] - begin > LONG_ROW ? begin + LONG_ROW : queue.indptr[v + 1];
        });
    }

    // Free vertices look for a neighbour in the frontier, and stop at the first.  Of a free vertex all
    // neighbours that are not free are in the frontier.  `bits` marks them; it fits the L2 cache where
    // the owners do not.  Meets.
    __device__ void go_backwards(unsigned int* bits)
    {
        for (Wide at = (Wide)warp_ * WARP * READS; at < (Wide)queue.n; at += (Wide)warps * WARP * READS) {
            I owner[READS];
#pragma unroll
            for (int k = 0; k < READS; ++k) {
                Wide v = at + k * WARP + lane();
                owner[k] = v < (Wide)queue.n ? load_relaxed(&queue.owner[v]) : queue.none();
            }
#pragma unroll
            for (int k = 0; k < READS; ++k) {
                unsigned votes = __ballot_sync(ALL, owner[k] < front.head);
                if (lane() == 0 && at + k * WARP < (Wide)queue.n) store_relaxed(&bits[at / WARP + k], votes);
            }
        }
        roll.meet();
        auto known = [&](I u) { return (load_relaxed(&bits[u / WARP]) >> (u % WARP) & 1) != 0; };
        // of two vertices the first entries at once, which find a neighbour for most
        for (Wide at = (Wide)warp_ * 2 * WARP; at < (Wide)queue.n; at += (Wide)warps * 2 * WARP) {
            I v[2], begin[2], end[2], length[2], u[2][LEVEL_BATCH];
            bool fresh[2] = {false, false};
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                Wide mine = at + j * WARP + lane();
                bool open = mine < (Wide)queue.n && !known((I)mine);
                v[j] = (I)mine;
                begin[j] = open ? queue.indptr[mine] : I(0);
                end[j] = open ? queue.indptr[mine + 1] : I(0);
                length[j] = end[j] - begin[j];
            }
#pragma unroll
            for (int j = 0; j < 2; ++j)
#pragma unroll
                for (int k = 0; k < LEVEL_BATCH; ++k)
                    u[j][k] = k < length[j] ? queue.indices[begin[j] + k] : I(-1);
#pragma unroll
            for (int j = 0; j < 2; ++j)
#pragma unroll
                for (int k = 0; k < LEVEL_BATCH; ++k) fresh[j] |= u[j][k] >= 0 && known(u[j][k]);
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                I from = fresh[j] || length[j] <= LEVEL_BATCH ? end[j] : begin[j] + LEVEL_BATCH;
                I up = first_in_row<ENTRIES_ALONE, ENTRIES_HELPED>(
                    queue.indices, from, end[j], v[j], [&](I w, I) { return known(w); });
                fresh[j] = fresh[j] || up >= 0;
                if (fresh[j]) store_relaxed(&queue.owner[v[j]], front.head);
            }
            list(v, length, fresh);
        }
    }

    // Write down what the block has found, and meet.  Returns how many all have found, and the
    // longest of their rows.
    __device__ Wide deliver(Wide* most)
    {
        longest = warp_reduce(longest, Most());
        if (lane() == 0 && longest > 0) atomicMax(&finds.longest, (Wide)longest);
        __syncthreads();
        int part = lane() < Finds<I>::WARPS ? finds.count[lane()] : 0, before = warp_exclusive_sum(part);
        int all = __shfl_sync(ALL, before + part, WARP - 1), count = __shfl_sync(ALL, part, warp());
        if (threadIdx.x == 0 && finds.longest > 0) {
            finds.place = roll.add(all);
            raise_to(roll.second_sum(), finds.longest);
        }
        __syncthreads();
        I* target = queue.order + front.tail + finds.place + __shfl_sync(ALL, before, warp());
        for (int i = lane(); i < count; i += WARP) store_relaxed(&target[i], finds.vertex[warp()][i]);
        finds.clear();
        return roll.meet(most);
    }
};

// THE SEARCH

// Words of `control`; those of the roll call are 0 at every launch, all are at the first.
constexpr int REPORT = ROLL_WORDS;    // three in turn, of 5: the frontier after a narrow part
constexpr int LONGEST = REPORT + 15;  // two in turn: longest row of the next frontier
constexpr int BIGS = LONGEST + 2;     // two in turn: owners of many children that are listed,
constexpr int TAKEN = BIGS + 2;       // two in turn: and those that are taken
constexpr int STAGE = TAKEN + 2;      // STARTING, RUNNING, DONE
constexpr int HEAD = STAGE + 1;       // and the rest of Front
constexpr int TAIL = STAGE + 2;
constexpr int DEPTH = STAGE + 3;
constexpr int LENGTH = STAGE + 4;
constexpr int WIDTH = STAGE + 5;
constexpr int FLIP = STAGE + 6;
constexpr int FIRST = STAGE + 7;      // of all vertices with neighbours that of least (degree, vertex),
constexpr int FAR = STAGE + 8;        // and of the last level; see `note_least`
constexpr int MIXED = STAGE + 9;      // some level is not in order
constexpr int SOUGHT = STAGE + 10;    // entries of the free vertices, if these are to seek
[[maybe_unused]] constexpr int CONTROL_WORDS = STAGE + 11;
constexpr int STARTING = 0, RUNNING = 1, DONE = 2;
constexpr int LEFT_OFFER = 3, LEFT_SEEK = 4;  // running, but the next level is left to the host

// Raise *word to the complement of the least key, so that 0 is none.  All lanes of the warp call.
__device__ __forceinline__ void note_least(Wide key, Wide* word)
{
    Wide least = warp_reduce(~key, Most());
    if (lane() == 0 && load_relaxed(word) < least) raise_to(word, least);
}

// A member of the launch.  Each step is done by all threads of all members.
template <typename I, bool ORDERED>
struct Search {
    Queue<I> queue;
    Scratch<I> scratch;
    RollCall& roll;
    unsigned long long* control;
    Near<I>& near;
    SortSpace<LEVEL_BLOCK>* space;  // if ORDERED,
    Finds<I>* finds;          // or else
    int warp_, warps;
    I total, limit;
    Wide huge = 0, huge_row = 0;  // if ORDERED: of a level, and of one of its rows; see Level::variant
    unsigned int* bits = nullptr;  // or else
    Front<I> front = {};
    bool mixed = false;
    int stage = RUNNING;
    Wide sought = 0;

    __device__ __forceinline__ bool leads() const { return roll.rank == 0 && threadIdx.x == 0; }
    __device__ __forceinline__ bool ended() const
    {
        return front.longest < 0 || front.tail >= total || front.width >= limit;
    }
    __device__ __forceinline__ Wide thread() const { return (Wide)warp_ * WARP + lane(); }
    __device__ __forceinline__ Wide threads() const { return (Wide)warps * WARP; }
    __device__ __forceinline__ Wide key(I v) const { return (Wide)queue.degree(v) * (Wide)queue.n + (Wide)v; }

    // From the given starts; if there are none, from v; if that is -1, from the vertex of least
    // (degree, vertex) that has a neighbour, or any if none has.
    __device__ void start(const I* starts, I n_starts, I v)
    {
        bool choose = n_starts == 0 && v < 0;
        Wide least = ~0ull;
        for (Wide u = thread(); u < (Wide)queue.n; u += threads()) {
            queue.owner[u] = queue.none();
            if (ORDERED) {
                scratch.count[u] = 0;
                scratch.place[u] = queue.none();
            }
        }
        auto degree = [&](Wide u) { return queue.degree((I)u); };
        auto lower = [&](Wide u, I degree) {
            if (degree > 0) least = Least()(least, (Wide)degree * (Wide)queue.n + u);
        };
        if (choose) for_each_read((Wide)queue.n, thread(), threads(), degree, lower);
        if (choose) note_least(least, &control[FIRST]);
        roll.meet();
        if (choose) v = (I)(~load_relaxed(&control[FIRST]) % (Wide)queue.n);
        I size = n_starts > 0 ? n_starts : I(1);
        for (Wide i = thread(); i < (Wide)size; i += threads()) {
            I u = n_starts > 0 ? starts[i] : v;
            store_relaxed(&queue.order[i], u);
            store_relaxed(&queue.owner[u], I(-1));
            Wide degree = (Wide)queue.degree(u);
            if (load_relaxed(&control[LENGTH]) < degree) raise_to(&control[LENGTH], degree);
        }
        roll.meet();
        front = {0, size, 0, (I)load_relaxed(&control[LENGTH]), size, 0};
    }

    template <bool TOGETHER>
    __device__ void narrow(I stop)
    {
        bool mine = roll.rank < (TOGETHER ? CLUSTER : 1);
        if (mine) go_narrow<TOGETHER>(queue, near, front, total, limit, stop);
        Wide* report = &control[REPORT + 5 * roll.turn];
        if (leads()) {
            store_relaxed(&report[0], (Wide)front.head);
            store_relaxed(&report[1], (Wide)front.tail);
            store_relaxed(&report[2], (Wide)front.depth);
            store_relaxed(&report[3], (Wide)front.longest);
            store_relaxed(&report[4], (Wide)front.width);
        }
        roll.meet(nullptr, !mine);
        front = {(I)load_relaxed(&report[0]), (I)load_relaxed(&report[1]), (I)load_relaxed(&report[2]),
                 (I)load_relaxed(&report[3]), (I)load_relaxed(&report[4]), front.flip};
    }

    __device__ void wide()
    {
        Level<I> level{queue, scratch, roll, control, front, warp_, warps};
        int flip = front.flip;
        I longest = 0;
        Variant variant = level.variant(total, huge, huge_row, sought);
        if (variant == LEAVE_OFFER || variant == LEAVE_SEEK) {
            stage = variant == LEAVE_OFFER ? LEFT_OFFER : LEFT_SEEK;
            return;
        }
        if (variant == SEEK) {
            level.seek(longest);
        } else {
            Wide pieces = front.longest > LONG_ROW ? level.list_pieces() : 0;
            level.offer_short(longest);
            level.offer_pieces(pieces, longest);
        }
        longest = warp_reduce(longest, Most());
        if (lane() == 0 && longest > 0) atomicMax(&control[LONGEST + flip], (Wide)longest);
        Wide children = roll.meet();
        longest = (I)load_relaxed(&control[LONGEST + flip]);
        if (children > 0) {
            level.count_children(children);
            if (leads()) {  // free since the level before, and not used before the next
                store_relaxed(&control[LONGEST + 1 - flip], 0ull);
                store_relaxed(&control[BIGS + 1 - flip], 0ull);
                store_relaxed(&control[TAKEN + 1 - flip], 0ull);
            }
            roll.meet();
            level.scan_counts(&control[BIGS + flip]);
            level.gather_children(children, thread(), threads());
            roll.meet();
            level.rank_children(children, thread(), threads());
            Wide bigs = load_relaxed(&control[BIGS + flip]);
            if (bigs > 0) level.place_bigs(bigs, &control[TAKEN + flip], *space);
            roll.meet();
            front.flip = 1 - flip;
        }
        front.advance((I)children, longest);
    }

    __device__ void wide_mixed()
    {
        MixedLevel<I> level{queue, roll, front, *finds, warp_, warps};
        bool skewed = front.longest > LONG_ROW;
        float arcs = skewed ? (float)level.front_arcs() : 0.0f, open = (float)(total - front.tail);
        // backwards, a free vertex reads some nnz / arcs neighbours
        if (arcs * arcs > open * (float)queue.indptr[queue.n]) {
            level.go_backwards(bits);
        } else if (front.longest <= WARP) {
            level.go_evenly();
        } else {
            Level<I> rows{queue, scratch, roll, control, front, warp_, warps};
            level.go_forwards(scratch.piece, skewed ? rows.list_pieces() : 0);
        }
        Wide most, children = level.deliver(&most);
        front.advance((I)children, (I)most);
        mixed = true;
    }

    __device__ void step(I stop)
    {
        bool near_by = front.longest <= NARROW_ROW && front.size() <= NARROW_LANES;
        I lanes = near_by ? front.size() << lanes_log(front.longest) : I(NARROW_LANES) + 1;
        if (lanes <= SOLO_LANES && front.size() <= Near<I>::ROOM)
            narrow<false>(stop);
        else if (lanes <= NARROW_LANES && front.size() <= CLUSTER * Near<I>::ROOM)
            narrow<true>(stop);
        else if constexpr (ORDERED)
            wide();
        else
            wide_mixed();
    }

    // All levels, or at most `most_levels`; leaves the frontier that it has reached in `control`.
    __device__ void go(I most_levels)
    {
        I stop = queue.n - front.depth > most_levels ? front.depth + most_levels : queue.n;
        while (front.depth < stop && !ended() && stage == RUNNING) step(stop);
        roll.meet();  // everyone has read what is written now
        if (ended()) {
            Wide least = ~0ull;
            for (Wide at = front.head + thread(); at < (Wide)front.tail; at += threads())
                least = Least()(least, key(load_relaxed(&queue.order[at])));
            note_least(least, &control[FAR]);
        }
        if (!leads()) return;
        control[HEAD] = front.head;
        control[TAIL] = front.tail;
        control[DEPTH] = front.depth;
        control[LENGTH] = front.longest;
        control[WIDTH] = front.width;
        control[FLIP] = front.flip;
        control[MIXED] = mixed;
        control[SOUGHT] = sought;
        control[STAGE] = ended() ? DONE : stage;
    }

    __device__ void resume()
    {
        front = {(I)load_relaxed(&control[HEAD]), (I)load_relaxed(&control[TAIL]), (I)load_relaxed(&control[DEPTH]),
                 (I)load_relaxed(&control[LENGTH]), (I)load_relaxed(&control[WIDTH]),
                 (int)load_relaxed(&control[FLIP])};
        mixed = load_relaxed(&control[MIXED]) != 0;
    }
};

// Caller: control 0 at the first launch, its first ROLL_WORDS words at every one; block LEVEL_BLOCK; grid a
// multiple of CLUSTER.  `total` vertices can be reached from the starts, or from `start`; see there.
// Stops after `most_levels` levels, to be launched again, so that the host can interrupt.
template <typename I>
__global__ void CLUSTERED __launch_bounds__(LEVEL_BLOCK, 1) place_levels(
    I n, const I* indptr, const I* indices, const I* starts, I n_starts, I start, I total, I most_levels,
    unsigned long long huge, unsigned long long huge_row, I* order, I* owner, I* found, I* slot, I* count, I* first, I* child, I* place, I* big, I* piece, I* sums,
    unsigned long long* control)
{
    __shared__ Near<I> near;
    __shared__ SortSpace<LEVEL_BLOCK> space;
    RollCall roll;
    if (!roll.sign_in(control)) return;
    Search<I, true> search{{n, indptr, indices, order, owner},
                           {found, slot, count, first, child, place, big, piece, sums},
                           roll, control, near, &space, nullptr,
                           warp() * roll.members + roll.rank, roll.members * (LEVEL_BLOCK / WARP),
                           total, n,  // two levels have n vertices when all are placed
                           huge, huge_row};
    if (load_relaxed(&control[STAGE]) == STARTING)
        search.start(starts, n_starts, start);
    else
        search.resume();
    search.go(most_levels);
}

// As place_levels, levels alone.  Gives up when two levels that follow one another have `limit`
// vertices.
template <typename I>
__global__ void CLUSTERED __launch_bounds__(LEVEL_BLOCK, 1) find_levels(
    I n, const I* indptr, const I* indices, I start, I total, I limit, I most_levels, I* order, I* owner, I* piece,
    unsigned int* bits, unsigned long long* control)
{
    __shared__ Near<I> near;
    __shared__ Finds<I> finds;
    finds.clear();
    RollCall roll;
    if (!roll.sign_in(control)) return;
    Search<I, false> search{{n, indptr, indices, order, owner}, {}, roll, control, near, nullptr, &finds,
                            warp() * roll.members + roll.rank, roll.members * (LEVEL_BLOCK / WARP), total, limit};
    search.scratch.piece = piece;
    search.bits = bits;
    if (load_relaxed(&control[STAGE]) == STARTING)
        search.start(nullptr, 0, start);
    else
        search.resume();
    search.go(most_levels);
}
