// Breadth-first search on the GPU.  Host side: gpu.py.  The rule and the papers: __init__.py.
//
// One launch does the whole search, so that a level costs a barrier and not a launch.  A level is
// found in one of three ways:
//   together       all blocks: the entries of the frontier's rows, then a meeting (resident_barrier.cuh)
//   by a cluster   a small frontier: 8 blocks go on by themselves, the queue in shared memory
//   backwards      a large frontier: unvisited vertices look for it, in a bitmap
//
// Parents cost little where they are chosen by the side with fewer entries.  Backwards, a vertex stops at its parent
// anyway.  Forwards, a frontier of few entries may find vertices with many (the first levels of a skewed graph).
// Then it goes over its entries once more and offers itself as the parent.  Otherwise the vertices look for their
// parents after the search, all at once; they rarely have to look far.
//
// The queue lists the frontier as pieces of rows (`Piece`).  The thread that finds a vertex reads
// where its row is, while it waits for other memory anyway.  A vertex enters the queue at most once, so
// the queue never wraps around; the frontier is a window of it.
//
// Races.  level[v] goes from UNSEEN to its level once: forwards by compare-and-swap, whose winner
// appends v; backwards by the one thread that owns v, while others read bitmaps only.  Within a
// level all that reach v would write the same number, so levels do not depend on scheduling.
// parent[v] is written by v's owner, or lowered by atomicMin among all of the level before: the
// least does not depend on scheduling either.  The order in the queue does; nothing depends on it.
#include "matchwood/atomics.cuh"
#include "matchwood/edges.cuh"
#include "matchwood/resident_barrier.cuh"

// A frontier of vertices as pieces of their rows, [begin, end) in `indices`, each at most PIECE
// entries long: so long rows are shared among warps, and the warp of a piece need not read
// where the row is.  The vertex itself is not kept.

constexpr int PIECE = 256;  // entries; 8 for each lane of a warp

template <typename I>
struct alignas(2 * sizeof(I)) Piece {
    I begin, end;
};

template <typename I>
__device__ __forceinline__ I pieces_of(I length)
{
    return (length + PIECE - 1) / PIECE;
}

// As append, where some rows are longer than a piece: their pieces are written by all lanes.
template <int COUNT, typename I, typename Queue>
__device__ void append_long(const Piece<I> (&row)[COUNT], I leaf, Queue& queue)
{
    int pieces = 0;
    unsigned long long entries = 0;
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
        I length = row[k].end - row[k].begin;
        if (length > leaf) {
            pieces += (int)pieces_of(length);
            entries += length;
        }
    }
    int before = warp_exclusive_sum(pieces);
    entries = warp_reduce(entries, Plus());
    unsigned long long slot = 0;
    if (lane() == WARP - 1) slot = queue.reserve(before + pieces, entries);
    slot = __shfl_sync(ALL, slot, WARP - 1) + before;
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
        I length = row[k].end - row[k].begin;
        if (length > leaf && length <= PIECE) queue.put(slot++, row[k]);
        unsigned cut = __ballot_sync(ALL, length > leaf && length > PIECE);
        for (; cut != 0; cut &= cut - 1) {
            int owner = __ffs(cut) - 1;
            I begin = __shfl_sync(ALL, row[k].begin, owner), end = __shfl_sync(ALL, row[k].end, owner);
            unsigned long long start = __shfl_sync(ALL, slot, owner);
            I count = pieces_of(I(end - begin));
            for (I i = lane(); i < count; i += WARP) {
                I from = begin + i * PIECE;
                queue.put(start + i, {from, end - from > PIECE ? from + PIECE : end});
            }
            if (lane() == owner) slot += count;
        }
    }
}

// Append rows to a queue, cut into pieces; those no longer than `leaf` are left out.
// `queue.reserve(pieces, entries)` is called by one lane and gives the first slot,
// `queue.put(slot, piece)` by any.  All lanes of the warp call.
template <int COUNT, typename I, typename Queue>
__device__ __forceinline__ void append(const Piece<I> (&row)[COUNT], I leaf, Queue& queue)
{
    unsigned votes[COUNT];
    unsigned entries = 0, any = 0;
    bool cut = false;
    int total = 0;
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
        I length = row[k].end - row[k].begin;
        votes[k] = __ballot_sync(ALL, length > leaf);
        any |= votes[k];
        total += __popc(votes[k]);
        if (length > leaf) entries += (unsigned)length;
        cut |= length > PIECE;
    }
    if (any == 0) return;
    if (__any_sync(ALL, cut)) {
        append_long(row, leaf, queue);
        return;
    }
    entries = __reduce_add_sync(ALL, entries);
    unsigned long long slot = 0;
    if (lane() == 0) slot = queue.reserve(total, entries);
    slot = __shfl_sync(ALL, slot, 0);
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
        if (votes[k] >> lane() & 1) queue.put(slot + __popc(votes[k] & lanes_below()), row[k]);
        slot += __popc(votes[k]);
    }
}

// `size` pieces, got by `fetch(i)`, shared among `warps` warps, up to WARP / WIDTH at a time:
// `each(piece)` is called by all lanes; WIDTH neighbouring lanes have the same piece, or none.
template <int WIDTH, typename Fetch, typename Each>
__device__ __forceinline__ void for_pieces(unsigned long long size, Fetch fetch, int warp_, int warps, Each each)
{
    unsigned long long even = (size + warps - 1) / warps;
    int chunk = even < WARP / WIDTH ? (int)even : WARP / WIDTH, mine = lane() / WIDTH;
    for (unsigned long long at = (unsigned long long)warp_ * chunk; at < size;
         at += (unsigned long long)warps * chunk) {
        decltype(fetch(at)) piece = {0, 0};
        if (mine < chunk && at + mine < size) piece = fetch(at + mine);
        each(piece);
    }
}

using Wide = unsigned long long;

constexpr int UNSEEN = -1;
constexpr int VISIT_BATCH = 4;  // entries whose loads a lane has in flight at once
constexpr int THIN = 4;  // lanes that share a piece, where there are more lanes than pieces

// A graph that is being searched.
template <typename I>
struct Graph {
    I n, nnz;
    const I *indptr, *indices;        // arcs from a vertex
    const I *in_indptr, *in_indices;  // arcs to a vertex, rows sorted; null: not known
    I *level, *parent;                // parent: n, unless it has been found
    Piece<I>* queue;
    unsigned int* bits;               // two bitmaps
    I leaf;                           // rows of at most this length lead nowhere new

    __device__ __forceinline__ Wide words() const { return ((Wide)n + WARP - 1) / WARP; }
    __device__ __forceinline__ Piece<I> row(I v) const { return {indptr[v], indptr[v + 1]}; }
};

// Where found pieces go: the queue in device memory, behind the frontier.
template <typename I>
struct FarQueue {
    Piece<I>* end;
    const RollCall& roll;
    Wide arcs = 0;

    __device__ __forceinline__ Wide reserve(int count, Wide entries)
    {
        arcs += entries;
        return roll.add(count);
    }
    __device__ __forceinline__ void put(Wide slot, Piece<I> piece) { end[slot] = piece; }
};

// Neighbours w (or -1) of the frontier: those unvisited get the level `next` and are appended.
// `look`: read first whether w is visited, which saves the swap.  All lanes of the warp call.
template <int COUNT, typename I, typename Queue>
__device__ __forceinline__ void visit(
    const Graph<I>& graph, const I (&w)[COUNT], I next, bool look, I leaf, Queue& queue)
{
    bool open[COUNT];
    I before[COUNT];
    Piece<I> row[COUNT];
#pragma unroll
    for (int k = 0; k < COUNT; ++k) open[k] = w[k] >= 0;
    if (look) {
#pragma unroll
        for (int k = 0; k < COUNT; ++k)
            if (open[k]) before[k] = load_relaxed(&graph.level[w[k]]);
#pragma unroll
        for (int k = 0; k < COUNT; ++k) open[k] = open[k] && before[k] == UNSEEN;
    }
    // the rows are read before it is known whether the swap succeeds: both wait at the same time
#pragma unroll
    for (int k = 0; k < COUNT; ++k)
        if (open[k]) before[k] = compare_and_swap(&graph.level[w[k]], I(UNSEEN), next);
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
        row[k] = {0, 0};
        if (open[k]) row[k] = graph.row(w[k]);
    }
#pragma unroll
    for (int k = 0; k < COUNT; ++k)
        if (!open[k] || before[k] != UNSEEN) row[k] = {0, 0};
    append(row, leaf, queue);
}

// The level after the frontier, whose `size` pieces `fetch(i)` gives.
template <typename I, typename Fetch, typename Queue>
__device__ __forceinline__ void expand(
    const Graph<I>& graph, Wide size, Fetch fetch, int warp_, int warps, I next, bool look, Queue& queue)
{
    auto all_entries = [&](Piece<I> piece) {
        WarpRows<I, int>(piece.begin, piece.end).template for_batches<VISIT_BATCH>(
            [&](I at) { return graph.indices[at]; },
            [&](const auto&, const auto& w) { visit(graph, w, next, look, graph.leaf, queue); });
    };
    if (size > (Wide)warps * (WARP / THIN)) {
        for_pieces<1>(size, fetch, warp_, warps, all_entries);
        return;
    }
    for_pieces<THIN>(size, fetch, warp_, warps, [&](Piece<I> piece) {
        if (__any_sync(ALL, piece.end - piece.begin > THIN)) {
            if (lane() % THIN != 0) piece.end = piece.begin;
            all_entries(piece);
            return;
        }
        I at = piece.begin + lane() % THIN;
        I w[1] = {at < piece.end ? graph.indices[at] : I(-1)};
        visit(graph, w, next, look, graph.leaf, queue);
    });
}

// Measured, where nothing else is said: bench/traversal/breadth_first_gpu.py, H200.
constexpr int BLOCK = 512;               // threads; two blocks on each multiprocessor
constexpr int LOCAL_BYTES = 16384;       // shared memory of one side of a block's own queue
constexpr int CLUSTER_ENTER = 2048;      // pieces; a frontier with no more is a cluster's work
constexpr int CLUSTER_LEAVE = 4096;      // pieces; with more the cluster stops
constexpr int CLUSTER_ENTRIES = 32768;   // entries of the frontier's rows; with more the cluster stops
constexpr int UNEVEN_PIECES = 64;        // pieces that a block may have beyond twice its share
constexpr int ALPHA = 4;                 // backwards needs entries > (entries not seen yet) / ALPHA,
constexpr int VERTICES_PER_ENTRY = 8;    // and entries > vertices / VERTICES_PER_ENTRY: a pass reads them all
constexpr int OFFER_RATIO = 4;           // the frontier offers itself when it found OFFER_RATIO times its entries
constexpr int OFFER_ENTRIES = 8192;      // and more entries than this
constexpr int SERIAL = 16;               // entries that a lane tries alone before its warp helps
constexpr int HELP = 1 << 30;            // entries that the warp then tries: all

// Words of `control`; those of the roll call are 0 at every launch, all are at the first.
constexpr int CLUSTER_DEPTH = ROLL_WORDS;     // three in turn: the level the cluster has reached
constexpr int CLUSTER_ARCS = ROLL_WORDS + 3;  // three in turn: entries of the cluster's frontier
constexpr int STAGE = ROLL_WORDS + 6;         // STARTING, RUNNING, DONE
constexpr int DEPTH = STAGE + 1;              // this and the next five: the fields of Frontier
constexpr int HEAD = STAGE + 2, TAIL = STAGE + 3, FRONTIER_ARCS = STAGE + 4, SEEN_ARCS = STAGE + 5, SIDE = STAGE + 6;
// The parents' kernels write these two.
[[maybe_unused]] constexpr int DEEPEST = STAGE + 7;
[[maybe_unused]] constexpr int UNFINISHED = STAGE + 8;
[[maybe_unused]] constexpr int CONTROL_WORDS = STAGE + 9;
constexpr int STARTING = 0, RUNNING = 1, DONE = 2;

// The frontier as every member knows it: all have the same numbers in the same round.
template <typename I>
struct Frontier {
    I depth;          // its level
    Wide head, tail;  // its window of the queue
    Wide arcs, seen;  // entries of its rows, and of the rows of all vertices up to it
    int side;         // the bitmap that holds it, where `backwards`
    bool backwards;   // whether a bitmap holds it
};

// The queue of a block of the cluster: its shared memory, and FarQueue for what does not fit.
template <typename I>
struct NearQueue {
    Piece<I>* local;
    unsigned int *count, *entries;
    FarQueue<I>& far;

    static constexpr unsigned int ROOM = LOCAL_BYTES / sizeof(Piece<I>);
    static constexpr Wide MUCH = 1 << 24;  // entries; the cluster leaves at fewer

    __device__ __forceinline__ Wide reserve(int count_, Wide entries_)
    {
        far.arcs += entries_;
        atomicAdd(entries, (unsigned int)(entries_ < MUCH ? entries_ : MUCH));
        return atomicAdd(count, (unsigned int)count_);
    }
    __device__ __forceinline__ void put(Wide slot, Piece<I> piece)
    {
        if (slot < ROOM)
            local[slot] = piece;
        else
            far.put(far.reserve(1, 0), piece);
    }
};

// What a block of the cluster keeps in shared memory: a queue for this level and one for the next;
// for each, what it put there itself and what all blocks of the cluster did.
template <typename I>
struct Local {
    Piece<I> pieces[2][NearQueue<I>::ROOM];
    unsigned int count[2], entries[2];
    unsigned int counts[2][CLUSTER], sums[2][CLUSTER];  // stored here by each of the blocks
    Wide part;
};

// The frontier, whose neighbours of level `next` are all known, offers itself as their parent.  The
// vertex of a piece is looked up by bisection: this is done for few levels.
template <typename I, typename Fetch>
__device__ __forceinline__ void offer_frontier(
    const Graph<I>& graph, Wide size, Fetch fetch, int warp_, int warps, I next)
{
    for_pieces<1>(size, fetch, warp_, warps, [&](Piece<I> piece) {
        I low = 0, high = graph.n;  // indptr[low] <= begin < indptr[high]
        while (piece.begin < piece.end && high - low > 1) {
            I middle = low + (high - low) / 2;
            if (graph.indptr[middle] <= piece.begin)
                low = middle;
            else
                high = middle;
        }
        WarpRows<I, int>(piece.begin, piece.end).for_entries([&](int owner, I at, bool is_entry) {
            I u = __shfl_sync(ALL, low, owner);
            if (!is_entry) return;
            I w = graph.indices[at];
            if (load_relaxed(&graph.level[w]) == next && load_relaxed(&graph.parent[w]) > u)
                lower_to(&graph.parent[w], u);
        });
    });
}

// Whether a frontier of `arcs` entries that found rows of `found` entries offers itself.
template <typename I>
__device__ __forceinline__ bool offers(const Graph<I>& graph, Wide arcs, Wide found)
{
    return graph.in_indptr != nullptr && found > OFFER_ENTRIES && found / OFFER_RATIO > arcs;
}

// One level backwards, 32 vertices per warp: which are unvisited and have an arc from the frontier?  Each bitmap
// word, level and parent has one writer.  Counts, for each thread, the found ones and the entries of their rows.
template <typename I>
__device__ __forceinline__ void look_back(const Graph<I>& graph, const unsigned int* frontier, unsigned int* found,
                                          I next, int warp_, int warps, Wide& count, Wide& arcs)
{
    for (Wide word = warp_; word < graph.words(); word += warps) {
        I v = (I)(word * WARP + lane());
        I at = 0, end = 0;
        if (word * WARP + lane() < (Wide)graph.n && graph.level[v] == UNSEEN) {
            at = graph.in_indptr[v];
            end = graph.in_indptr[v + 1];
        }
        auto reached = [&](I u, I) { return (frontier[u >> 5] >> (u & 31) & 1) != 0; };
        I up = first_in_row<SERIAL, HELP>(graph.in_indices, at, end, v, reached);
        if (up >= 0) {
            graph.level[v] = next;
            graph.parent[v] = up;
            arcs += graph.indptr[v + 1] - graph.indptr[v];
            ++count;
        }
        unsigned votes = __ballot_sync(ALL, up >= 0);
        if (lane() == 0) found[word] = votes;
    }
}

// Add the sum over the block's threads to *total.  All threads of the block call.
__device__ __forceinline__ void add_block(Wide value, Wide* part, Wide* total)
{
    if (threadIdx.x == 0) *part = 0;
    __syncthreads();
    if (__any_sync(ALL, value != 0)) {
        value = warp_reduce(value, Plus());
        if (lane() == 0) atomicAdd(part, value);
    }
    __syncthreads();
    if (threadIdx.x == 0 && *part != 0) atomicAdd(total, *part);
}

// Levels by one cluster, until the frontier is large or empty, or until `stop`.  Blocks store their
// counts in each other's shared memory before the barrier that ends a level, so all know them after it.  The first
// frontier is in the queue; the last is put there.  Returns the entries of all rows found, by thread.
template <typename I>
__device__ __forceinline__ Wide run_cluster(
    const Graph<I>& graph, const RollCall& roll, Local<I>& local, Frontier<I>& frontier, I stop)
{
    Wide size = frontier.tail - frontier.head;
    int fill = 0;  // which side is being filled; the other is the frontier
    bool first = true, shared = true, fits = true;
    if (threadIdx.x < 2) local.count[threadIdx.x] = local.entries[threadIdx.x] = 0;
    __syncthreads();
    FarQueue<I> far{graph.queue + frontier.tail, roll};
    auto fetch = [&](Wide i) {
        if (first) return graph.queue[frontier.head + i];
        unsigned int at = (unsigned int)i;
        if (!shared) return local.pieces[1 - fill][at];
        int block = 0;  // the blocks' pieces one after the other
#pragma unroll
        for (int b = 0; b + 1 < CLUSTER; ++b) {
            unsigned int count = local.counts[1 - fill][b];
            if (block == b && at >= count) {
                at -= count;
                ++block;
            }
        }
        Piece<I> piece;
        Wide parts[sizeof(piece) / sizeof(Wide)];
#pragma unroll
        for (int k = 0; k < (int)(sizeof(piece) / sizeof(Wide)); ++k)
            parts[k] = load_at(reinterpret_cast<const Wide*>(&local.pieces[1 - fill][at]) + k, block);
        memcpy(&piece, parts, sizeof(piece));
        return piece;
    };
    while (true) {
        // shared: warps of all blocks in turn, so that a small frontier is on all multiprocessors
        int warp_ = shared ? warp() * CLUSTER + cluster_rank() : warp();
        int warps = shared ? BLOCK / WARP * CLUSTER : BLOCK / WARP;
        Wide mine = shared ? size : local.counts[1 - fill][cluster_rank()];
        I next = frontier.depth + 1;
        NearQueue<I> queue{local.pieces[fill], &local.count[fill], &local.entries[fill], far};
        expand(graph, mine, fetch, warp_, warps, next, false, queue);
        __syncthreads();
        if (threadIdx.x < CLUSTER) {
            store_at(&local.counts[fill][cluster_rank()], threadIdx.x, local.count[fill]);
            store_at(&local.sums[fill][cluster_rank()], threadIdx.x, local.entries[fill]);
        }
        if (threadIdx.x == 0) local.count[1 - fill] = local.entries[1 - fill] = 0;
        cluster_barrier();
        unsigned int found = 0, pieces = 0, most = 0;
#pragma unroll
        for (int b = 0; b < CLUSTER; ++b) {
            unsigned int count = local.counts[fill][b];
            pieces += count;
            found += local.sums[fill][b];
            most = count > most ? count : most;
        }
        if (offers(graph, frontier.arcs, found)) {
            offer_frontier(graph, mine, fetch, warp_, warps, next);
            cluster_barrier();  // the next level overwrites what was read
        }
        size = pieces;
        frontier.arcs = found;
        frontier.depth = next;
        fits = most <= NearQueue<I>::ROOM;
        if (size == 0 || size > CLUSTER_LEAVE || found > CLUSTER_ENTRIES || !fits || next >= stop) break;
        first = false;
        shared = most > 2 * pieces / CLUSTER + UNEVEN_PIECES;  // else each block continues with what it found
        fill = 1 - fill;
    }
    // what lies in shared memory goes to the queue; what did not fit is there
    unsigned int mine = local.count[fill];
    if (!fits && mine > NearQueue<I>::ROOM) mine = NearQueue<I>::ROOM;
    if (threadIdx.x == 0) local.part = far.reserve(mine, 0);
    __syncthreads();
    for (unsigned int i = threadIdx.x; i < mine; i += BLOCK) far.put(local.part + i, local.pieces[fill][i]);
    __syncthreads();
    return far.arcs;
}

// A member of the search.  Each step is done by all threads of all members.
template <typename I>
struct Search {
    Graph<I> graph;
    RollCall roll;
    Frontier<I> frontier;
    Local<I>& local;
    int warp_, warps;  // of all members; blocks in turn, so that few warps are on many of them

    __device__ __forceinline__ bool leads() const { return roll.rank == 0 && threadIdx.x == 0; }
    __device__ __forceinline__ FarQueue<I> far() const { return {graph.queue + frontier.tail, roll}; }
    __device__ __forceinline__ bool ended() const { return !frontier.backwards && frontier.head == frontier.tail; }

    // A meeting that also adds up `arcs` over all threads.
    __device__ __forceinline__ Wide meet(Wide arcs, Wide& all_arcs, bool idle = false)
    {
        add_block(arcs, &local.part, roll.second_sum());
        return roll.meet(&all_arcs, idle);
    }

    __device__ __forceinline__ void start(const I* sources, I n_sources)
    {
        Wide threads = (Wide)warps * WARP;
        for (Wide v = (Wide)warp_ * WARP + lane(); v < (Wide)graph.n; v += threads) {
            graph.level[v] = UNSEEN;
            graph.parent[v] = graph.n;
        }
        roll.meet();
        frontier = {0, 0, 0, 0, 0, 0, false};
        FarQueue<I> queue = far();
        for (Wide at = (Wide)warp_ * WARP; at < (Wide)n_sources; at += threads) {
            I w[1] = {at + lane() < (Wide)n_sources ? sources[at + lane()] : I(-1)};
            visit(graph, w, I(0), false, I(0), queue);
        }
        frontier.tail = meet(queue.arcs, frontier.arcs);
        frontier.seen = frontier.arcs;
    }

    __device__ __forceinline__ void go_together()
    {
        FarQueue<I> queue = far();
        auto fetch = [&](Wide i) { return graph.queue[frontier.head + i]; };
        Wide size = frontier.tail - frontier.head, found;
        I next = frontier.depth + 1;
        expand(graph, size, fetch, warp_, warps, next, true, queue);
        Wide sum = meet(queue.arcs, found);
        if (offers(graph, frontier.arcs, found)) offer_frontier(graph, size, fetch, warp_, warps, next);
        frontier = {next, frontier.tail, frontier.tail + sum, found, frontier.seen + found, frontier.side, false};
    }

    __device__ __forceinline__ void go_by_cluster(I stop)
    {
        bool mine = roll.rank < CLUSTER;
        Wide arcs = mine ? run_cluster(graph, roll, local, frontier, stop) : 0, found;
        Wide *depth_word = &roll.words[CLUSTER_DEPTH + roll.turn], *arcs_word = &roll.words[CLUSTER_ARCS + roll.turn];
        if (leads()) {
            store_relaxed(depth_word, (Wide)frontier.depth);
            store_relaxed(arcs_word, frontier.arcs);
        }
        Wide sum = meet(arcs, found, !mine);
        frontier = {(I)load_relaxed(depth_word), frontier.tail, frontier.tail + sum, load_relaxed(arcs_word),
                 frontier.seen + found, frontier.side, false};
    }

    __device__ __forceinline__ void go_backwards()
    {
        unsigned int* here = graph.bits + frontier.side * graph.words();
        unsigned int* there = graph.bits + (1 - frontier.side) * graph.words();
        if (!frontier.backwards) {  // make a bitmap of the frontier
            for (Wide word = warp_; word < graph.words(); word += warps) {
                Wide v = word * WARP + lane();
                unsigned votes = __ballot_sync(ALL, v < (Wide)graph.n && graph.level[v] == frontier.depth);
                if (lane() == 0) here[word] = votes;
            }
            roll.meet();
        }
        Wide count = 0, arcs = 0, found;
        I next = frontier.depth + 1;
        look_back(graph, here, there, next, warp_, warps, count, arcs);
        count = warp_reduce(count, Plus());
        if (lane() == 0 && count != 0) roll.add(count);
        count = meet(arcs, found);
        frontier = {next, frontier.tail, frontier.tail, found, frontier.seen + found, 1 - frontier.side, count > 0};
    }

    // Make a queue of the bitmap.
    __device__ __forceinline__ void turn_round()
    {
        const unsigned int* here = graph.bits + frontier.side * graph.words();
        FarQueue<I> queue = far();
        for (Wide word = warp_; word < graph.words(); word += warps) {
            unsigned votes = here[word];
            if (votes == 0) continue;
            Piece<I> row[1] = {{0, 0}};
            if (votes >> lane() & 1) row[0] = graph.row((I)(word * WARP + lane()));
            append(row, graph.leaf, queue);
        }
        frontier.head = frontier.tail;
        frontier.tail += roll.meet();
        frontier.backwards = false;
    }

    __device__ __forceinline__ void step(I stop)
    {
        Wide open = (Wide)graph.nnz - frontier.seen;
        bool large = frontier.arcs > (Wide)graph.n / VERTICES_PER_ENTRY && frontier.arcs > open / ALPHA;
        if (large && graph.in_indptr != nullptr)
            go_backwards();
        else if (frontier.backwards)
            turn_round();
        else if (frontier.tail - frontier.head <= CLUSTER_ENTER && frontier.arcs <= CLUSTER_ENTRIES / 2)
            go_by_cluster(stop);
        else
            go_together();
    }
};

// Caller: control and sources as gpu.py sets them; block BLOCK; grid a multiple of CLUSTER.
// Stops after `most_rounds` rounds and is launched again: between launches the host can stop it.
template <typename I>
__global__ void CLUSTERED __launch_bounds__(BLOCK, 1024 / BLOCK) search(
    I n, I nnz, const I* indptr, const I* indices, const I* in_indptr, const I* in_indices, bool symmetric,
    const I* sources, I n_sources, I limit, I most_rounds, I* level, I* parent, I* queue, unsigned int* bits,
    unsigned long long* control)
{
    __shared__ Local<I> local;
    // in a symmetric pattern, a row of one entry leads back to the vertex that found it
    Graph<I> graph{n, nnz, indptr, indices, in_indptr, in_indices, level, parent,
                   reinterpret_cast<Piece<I>*>(queue), bits, I(symmetric ? 1 : 0)};
    RollCall roll;
    if (!roll.sign_in(control)) return;
    Search<I> search{graph, roll, {}, local, warp() * roll.members + roll.rank, roll.members * (BLOCK / WARP)};
    Frontier<I>& frontier = search.frontier;
    if (load_relaxed(&control[STAGE]) == STARTING) {
        search.start(sources, n_sources);
    } else {
        Wide side = load_relaxed(&control[SIDE]);
        frontier = {(I)load_relaxed(&control[DEPTH]), load_relaxed(&control[HEAD]), load_relaxed(&control[TAIL]),
                 load_relaxed(&control[FRONTIER_ARCS]), load_relaxed(&control[SEEN_ARCS]), (int)(side & 1), side > 1};
    }
    I stop = limit - frontier.depth > most_rounds ? frontier.depth + most_rounds : limit;
    while (frontier.depth < stop && !search.ended()) search.step(stop);
    if (search.leads()) {
        control[DEPTH] = frontier.depth;
        control[HEAD] = frontier.head;
        control[TAIL] = frontier.tail;
        control[FRONTIER_ARCS] = frontier.arcs;
        control[SEEN_ARCS] = frontier.seen;
        control[SIDE] = frontier.side + 2 * frontier.backwards;
        control[STAGE] = frontier.depth >= limit || search.ended() ? DONE : RUNNING;
    }
}

// Parents, after the search has found the levels, and perhaps some of the parents:
//   choose_parents, choose_rest    in a row of the transpose, the first vertex of the level before
// or, where there is no transpose:
//   reset_parents, offer_parents   every arc to the next level offers its tail; the least counts
// All are launched behind the search at once, and do nothing unless *stage says that it is done.
// Races: parent[v] is written by v's own thread, or lowered by atomicMin alone.

constexpr int HELPED = 1024; // entries that the warp then tries; longer rows are left to choose_rest
constexpr int TILE = 2048;   // rows and entries of a warp in a pass over all of them

// The largest of all `level` goes to *deepest.  All threads of the block call.
template <typename I>
__device__ __forceinline__ void record_deepest(I level, unsigned long long* deepest)
{
    level = block_reduce(level, I(0), Most());
    if (threadIdx.x == 0 && level > (I)load_relaxed(deepest)) raise_to(deepest, (unsigned long long)level);
}

// One lane per vertex.  A vertex without a parent takes the first in its row of arcs to it that has
// the level before; a source takes itself.  Marks in `bits`, and in *unfinished, the vertices
// whose rows are so long that choose_rest goes on.
template <typename I>
__global__ void choose_parents(I n, const I* in_indptr, const I* in_indices, const I* level, I* parent,
                               unsigned int* bits, const unsigned long long* stage,
                               unsigned long long* deepest, unsigned long long* unfinished)
{
    if (*stage != DONE) return;
    long long thread = global_thread();
    bool is_vertex = thread < n;
    I v = is_vertex ? (I)thread : I(0);
    I mine = is_vertex ? level[v] : I(UNSEEN);
    I found = mine == 0 ? v : mine > 0 ? parent[v] : I(-1), begin = 0, end = 0;
    bool open = found == n;
    if (open) {
        begin = in_indptr[v];
        end = in_indptr[v + 1];
    }
    I up = first_in_row<SERIAL, HELPED>(
        in_indices, begin, end, I(mine - 1), [&](I u, I before) { return level[u] == before; });
    if (open && up >= 0) found = up;
    if (is_vertex) parent[v] = found;
    unsigned votes = __ballot_sync(ALL, found == n);
    if (lane() == 0 && is_vertex) {
        bits[v >> 5] = votes;
        if (votes != 0) store_relaxed(unfinished, 1ull);
    }
    record_deepest(mine, deepest);
}

// The vertices that choose_parents marked: all of their rows.
template <typename I>
__global__ void choose_rest(I n, I nnz, const I* in_indptr, const I* in_indices, const I* level, I* parent,
                            const unsigned int* bits, const unsigned long long* stage,
                            const unsigned long long* unfinished)
{
    if (*stage != DONE || *unfinished == 0) return;
    for_tiles<TILE>(n, nnz, in_indptr, [&](I v, I begin, I end) {
        if ((bits[v >> 5] >> (v & 31) & 1) == 0) end = begin;
        I before = level[v] - 1;
        WarpRows<I>(begin, end).for_entries([&](int owner, I entry, bool is_entry) {
            I w = __shfl_sync(ALL, v, owner), wanted = __shfl_sync(ALL, before, owner);
            if (!is_entry) return;
            I u = in_indices[entry];
            if (level[u] == wanted && load_relaxed(&parent[w]) > u) lower_to(&parent[w], u);
        });
    });
}

// A source is its own parent, others have n until one is offered.
template <typename I>
__global__ void reset_parents(
    I n, const I* level, I* parent, const unsigned long long* stage, unsigned long long* deepest)
{
    if (*stage != DONE) return;
    long long v = global_thread();
    I mine = v < n ? level[v] : I(UNSEEN);
    if (v < n) parent[v] = mine > 0 ? n : mine == 0 ? (I)v : I(-1);
    record_deepest(mine, deepest);
}

template <typename I>
__global__ void offer_parents(I n, I nnz, const I* indptr, const I* indices, const I* level, I* parent,
                              const unsigned long long* stage)
{
    if (*stage != DONE) return;
    for_tiles<TILE>(n, nnz, indptr, [&](I v, I begin, I end) {
        I mine = level[v];
        if (mine == UNSEEN) end = begin;
        WarpRows<I>(begin, end).for_entries([&](int owner, I entry, bool is_entry) {
            I u = __shfl_sync(ALL, v, owner), next = __shfl_sync(ALL, I(mine + 1), owner);
            if (!is_entry) return;
            I w = indices[entry];
            if (level[w] == next && load_relaxed(&parent[w]) > u) lower_to(&parent[w], u);
        });
    });
}
