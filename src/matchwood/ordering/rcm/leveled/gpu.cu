// Cuthill-McKee level by level ("leveled"), and levels alone, for the search of a start.  Host side:
// gpu.py; the rule and the papers: __init__.py; what `order` and `owner` hold, and why the result
// does not depend on scheduling: places.cuh; races: narrow_levels.cuh, wide_levels.cuh, mixed_levels.cuh.
//
// One launch does all levels, so that a level costs a few barriers and not launches.  All
// components are ordered at once: their starts are the first level.  The frontier is a window of
// `order`; its vertices offer their places to their neighbours, which keep the least; then every
// vertex of the frontier places those that kept its own, by (degree, vertex).  A small frontier of short
// rows is left to one block or one cluster, others are for all blocks.
//
// Levels alone: narrow levels come in order all the same, as that costs little.  The vertices of a
// wide one stay in the order in which they are found, so that it takes one barrier and not six.
//
// A level of very many entries, or with a very long row, is left to the host: there a sort by the whole
// device is faster than one block for each owner.  The launch ends before that level, and the next goes on after it.
#include "matchwood/mixed_levels.cuh"
#include "matchwood/narrow_levels.cuh"
#include "matchwood/wide_levels.cuh"

// Words of `control`; those of the roll call are 0 at every launch, all are at the first.
constexpr int REPORT = ROLL_WORDS;    // three in turn, of 5: what a narrow part has come to
constexpr int LONGEST = REPORT + 15;  // two in turn: longest row of the next frontier
constexpr int BIGS = LONGEST + 2;     // two in turn: owners of many, listed
constexpr int TAKEN = BIGS + 2;       // two in turn: and taken
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
constexpr int LEFT_OFFER = 3, LEFT_SEEK = 4;  // running, but the next level is the host's

// Raise *word to the complement of the least key, so that 0 is none.  All lanes of the warp call.
__device__ __forceinline__ void note_least(Wide key, Wide* word)
{
    Wide least = warp_reduce(~key, Most());
    if (lane() == 0 && load_relaxed(word) < least) raise_to(word, least);
}

// A member of the launch.  Each step is done by all threads of all members.
template <typename I, bool ORDERED>
struct Search {
    Places<I> places;
    Scratch<I> scratch;
    RollCall& roll;
    unsigned long long* control;
    Near<I>& near;
    SortSpace<LEVEL_BLOCK>* space;  // if ORDERED,
    Finds<I>* finds;          // or else
    int warp_, warps;
    I total, limit;
    Wide huge = 0, huge_row = 0;  // if ORDERED: of a level, and of one of its rows; see Level::way
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
    __device__ __forceinline__ Wide key(I v) const { return (Wide)places.degree(v) * (Wide)places.n + (Wide)v; }

    // From the given starts; if there are none, from v; if that is -1, from the vertex of least
    // (degree, vertex) that has a neighbour, or any if none has.
    __device__ void start(const I* starts, I n_starts, I v)
    {
        bool choose = n_starts == 0 && v < 0;
        Wide least = ~0ull;
        for (Wide u = thread(); u < (Wide)places.n; u += threads()) {
            places.owner[u] = places.none();
            if (ORDERED) {
                scratch.count[u] = 0;
                scratch.place[u] = places.none();
            }
        }
        auto degree = [&](Wide u) { return places.degree((I)u); };
        auto lower = [&](Wide u, I degree) {
            if (degree > 0) least = Least()(least, (Wide)degree * (Wide)places.n + u);
        };
        if (choose) for_each_read((Wide)places.n, thread(), threads(), degree, lower);
        if (choose) note_least(least, &control[FIRST]);
        roll.meet();
        if (choose) v = (I)(~load_relaxed(&control[FIRST]) % (Wide)places.n);
        I size = n_starts > 0 ? n_starts : I(1);
        for (Wide i = thread(); i < (Wide)size; i += threads()) {
            I u = n_starts > 0 ? starts[i] : v;
            store_relaxed(&places.order[i], u);
            store_relaxed(&places.owner[u], I(-1));
            Wide degree = (Wide)places.degree(u);
            if (load_relaxed(&control[LENGTH]) < degree) raise_to(&control[LENGTH], degree);
        }
        roll.meet();
        front = {0, size, 0, (I)load_relaxed(&control[LENGTH]), size, 0};
    }

    template <bool TOGETHER>
    __device__ void narrow(I stop)
    {
        bool mine = roll.rank < (TOGETHER ? CLUSTER : 1);
        if (mine) go_narrow<TOGETHER>(places, near, front, total, limit, stop);
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
        Level<I> level{places, scratch, roll, control, front, warp_, warps};
        int flip = front.flip;
        I longest = 0;
        Way way = level.way(total, huge, huge_row, sought);
        if (way == LEAVE_OFFER || way == LEAVE_SEEK) {
            stage = way == LEAVE_OFFER ? LEFT_OFFER : LEFT_SEEK;
            return;
        }
        if (way == SEEK) {
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
        MixedLevel<I> level{places, roll, front, *finds, warp_, warps};
        bool skewed = front.longest > LONG_ROW;
        float arcs = skewed ? (float)level.front_arcs() : 0.0f, open = (float)(total - front.tail);
        // backwards, a free vertex reads some nnz / arcs neighbours
        if (arcs * arcs > open * (float)places.indptr[places.n]) {
            level.go_backwards(bits);
        } else if (front.longest <= WARP) {
            level.go_evenly();
        } else {
            Level<I> rows{places, scratch, roll, control, front, warp_, warps};
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

    // All levels, or as many as `most_levels` lets; leaves where it has come to in `control`.
    __device__ void go(I most_levels)
    {
        I stop = places.n - front.depth > most_levels ? front.depth + most_levels : places.n;
        while (front.depth < stop && !ended() && stage == RUNNING) step(stop);
        roll.meet();  // everyone has read what is written now
        if (ended()) {
            Wide least = ~0ull;
            for (Wide at = front.head + thread(); at < (Wide)front.tail; at += threads())
                least = Least()(least, key(load_relaxed(&places.order[at])));
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
