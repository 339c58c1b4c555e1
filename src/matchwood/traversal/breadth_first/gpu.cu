// Breadth-first search on the GPU.  Host side: gpu.py.  The rule and the papers: __init__.py.
//
// One launch does the whole search, so that a level costs a barrier and not a launch:
//   search           levels, by one of three ways for each level
//     together       all blocks: entries of the front's rows, then a meeting (roll_call.cuh)
//     in a cluster   a small front: 8 blocks go on by themselves, the queue in shared memory
//     backwards      a large front: unvisited vertices look for it, in a bitmap
//   choose_parents, choose_rest   in a row of the transpose, the first vertex of the level before
// or, where there is no transpose (the search then never goes backwards):
//   reset_parents, offer_parents   every arc to the next level offers its tail; the least counts
//
// Parents cost little where they are chosen by the side with fewer entries.  Backwards, a vertex
// stops at its parent anyway.  Forwards, a front of few entries that finds rows of many (the first
// levels of a skewed graph) goes over its entries once more and offers itself; else the vertices
// look for their parents after the search, all at once, and rarely far.
//
// The queue lists pieces of rows, [begin, end) in `indices`, each at most PIECE entries: the
// vertex itself is not needed any more, long rows are shared out by themselves, and the search
// for the row is done by the thread that found the vertex, while it waits for other things anyway.
// A vertex enters at most once, so the queue never wraps; the front is a window of it.
//
// Races.  level[v] goes from UNSEEN to its level once: forwards by compare-and-swap, whose winner
// appends v; backwards by the one thread that owns v, while others read bitmaps only.  Within a
// level all that reach v would write the same number, so levels do not depend on scheduling.
// parent[v] is written by v's owner, or lowered by atomicMin among all of the level before: the
// least does not depend on scheduling either.  The order in the queue does; nothing depends on it.
#include "matchwood/edges.cuh"
#include "matchwood/roll_call.cuh"

constexpr int BLOCK = 1024;      // threads; one block on each multiprocessor
constexpr int PIECE = 256;       // entries; 8 for each lane of a warp
constexpr int BATCH = 4;         // entries that a lane has under way at once
constexpr int LOCAL_BYTES = 16384;       // shared memory of one side of a block's own queue
constexpr int CLUSTER_ENTER = 2048;      // pieces in the front: a cluster takes over ...
constexpr int CLUSTER_LEAVE = 4096;      // ... until there are more, or more entries than
constexpr int CLUSTER_ENTRIES = 32768;   // this.  Measured: bench/traversal/breadth_first_gpu.py
constexpr int ALPHA = 4;         // backwards when the front has this part of the unvisited entries ...
constexpr int PASS = 8;          // ... and entries for this part of the vertices, which all are passed
constexpr int OFFER = 4;         // a front offers itself as parent when what it found has so many times
constexpr int OFFER_LEAST = 8192;  // its entries, and at least this many
constexpr int SERIAL = 16;       // entries that a lane tries alone before its warp helps,
constexpr int HELPED = 1024;     // and that the warp tries before choose_rest does it

constexpr int TILE = 2048;       // entries of a warp in a pass over all of them

constexpr unsigned int MUCH = 1u << 26;  // entries; a block's sum of as many from each warp fits a word

constexpr int UNSEEN = -1;

// Words of `control`; those of the roll call are 0 at every launch, all are at the first.
constexpr int CLUSTER_DEPTH = ROLL_WORDS;     // three in turn: where the cluster has come to,
constexpr int CLUSTER_ARCS = ROLL_WORDS + 3;  // and the entries of its front
constexpr int STAGE = ROLL_WORDS + 6;         // STARTING, RUNNING, DONE
constexpr int DEPTH = STAGE + 1;              // level of the front
constexpr int HEAD = STAGE + 2, TAIL = STAGE + 3;  // its window of the queue
constexpr int FRONT_ARCS = STAGE + 4;         // entries of its rows
constexpr int SEEN_ARCS = STAGE + 5;          // entries of the rows of all visited vertices
constexpr int SIDE = STAGE + 6;               // which bitmap holds the front, plus 2 when backwards
constexpr int DEEPEST = STAGE + 7;            // largest level
constexpr int UNFINISHED = STAGE + 8;         // some vertex is left to choose_rest
constexpr int STARTING = 0, RUNNING = 1, DONE = 2;

using Wide = unsigned long long;

template <typename I>
struct alignas(2 * sizeof(I)) Piece {
    I begin, end;
};

template <typename I>
struct Graph {
    I n;
    const I *indptr, *indices;        // arcs from a vertex
    const I *in_indptr, *in_indices;  // arcs to a vertex; null: not known
    I *level, *parent;                // parent: n, unless it has been found
    Piece<I>* queue;
    unsigned int* bits;               // two bitmaps
    I leaf;                           // rows of at most this length lead nowhere new

    __device__ __forceinline__ Wide words() const { return ((Wide)n + WARP - 1) / WARP; }
};

// Where found pieces go: the queue in device memory, behind `tail`.
template <typename I>
struct FarQueue {
    Piece<I>* end;
    const RollCall& roll;

    __device__ __forceinline__ Wide reserve(int count) { return roll.add(count); }
    __device__ __forceinline__ void put(Wide slot, Piece<I> piece) { end[slot] = piece; }
};

// The same for a block of the cluster: its shared memory, and the queue for what does not fit.
template <typename I>
struct NearQueue {
    Piece<I>* local;
    unsigned int* count;
    FarQueue<I> far;

    static constexpr unsigned int ROOM = LOCAL_BYTES / sizeof(Piece<I>);

    __device__ __forceinline__ Wide reserve(int count_) { return atomicAdd(count, (unsigned int)count_); }
    __device__ __forceinline__ void put(Wide slot, Piece<I> piece)
    {
        if (slot < ROOM)
            local[slot] = piece;
        else
            far.put(far.reserve(1), piece);
    }
};

// Append rows, cut into pieces: those of `row` longer than `leaf`.  All lanes of the warp call.
template <int COUNT, typename I, typename Queue>
__device__ __forceinline__ void append(const Piece<I> (&row)[COUNT], I leaf, Queue& queue)
{
    int pieces = 0;
    bool many = false;
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
        I length = row[k].end - row[k].begin;
        if (length > leaf) pieces += (int)((length + PIECE - 1) / PIECE);
        many |= length > PIECE;
    }
    if (!__any_sync(ALL, pieces > 0)) return;
    int before = warp_exclusive_sum(pieces);
    Wide slot = 0;
    if (lane() == WARP - 1) slot = queue.reserve(before + pieces);
    slot = __shfl_sync(ALL, slot, WARP - 1) + before;
    many = __any_sync(ALL, many);
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
        I length = row[k].end - row[k].begin;
        if (length > leaf && length <= PIECE) queue.put(slot++, row[k]);
        if (!many) continue;
        unsigned cut = __ballot_sync(ALL, length > leaf && length > PIECE);
        for (; cut != 0; cut &= cut - 1) {  // a long row: all lanes write its pieces
            int owner = __ffs(cut) - 1;
            I begin = __shfl_sync(ALL, row[k].begin, owner), end = __shfl_sync(ALL, row[k].end, owner);
            Wide start = __shfl_sync(ALL, slot, owner);
            I count = (end - begin + PIECE - 1) / PIECE;
            for (I i = lane(); i < count; i += WARP) {
                I from = begin + i * PIECE;
                queue.put(start + i, {from, end - from > PIECE ? from + PIECE : end});
            }
            if (lane() == owner) slot += count;
        }
    }
}

// Neighbours w (or -1) of the front: those unvisited get the level `next` and are appended.
// `look`: see first whether w is visited, which spares the swap.  All lanes of the warp call.
template <int COUNT, typename I, typename Queue>
__device__ __forceinline__ void visit(
    const Graph<I>& graph, const I (&w)[COUNT], I next, bool look, I leaf, Queue& queue, Wide& arcs)
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
        if (open[k]) row[k] = {graph.indptr[w[k]], graph.indptr[w[k] + 1]};
    }
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
        if (!open[k] || before[k] != UNSEEN) row[k] = {0, 0};
        if (row[k].begin < row[k].end) prefetch(&graph.indices[row[k].begin]);
        arcs += row[k].end - row[k].begin;
    }
    append(row, leaf, queue);
}

// `size` pieces, got by `fetch(i)`, shared among `warps` warps, up to 32 at a time:
// `each(piece, rows)` is called by all lanes, with an empty piece for lanes that have none.
template <typename Fetch, typename Each>
__device__ __forceinline__ void for_pieces(Wide size, Fetch fetch, int warp_, int warps, Each each)
{
    Wide even = (size + warps - 1) / warps;
    int chunk = even < WARP ? (int)even : WARP;
    for (Wide at = (Wide)warp_ * chunk; at < size; at += (Wide)warps * chunk) {
        decltype(fetch(at)) piece = {0, 0};
        if (lane() < chunk && at + lane() < size) piece = fetch(at + lane());
        each(piece, WarpRows<int>(0, (int)(piece.end - piece.begin)));
    }
}

// The t-th entry of a warp's pieces, or -1 when there are fewer.  All lanes of the warp call.
template <typename I>
__device__ __forceinline__ I end_of(const Graph<I>& graph, Piece<I> piece, const WarpRows<int>& rows, int t, int owner)
{
    I begin = __shfl_sync(ALL, piece.begin, owner);
    int entry = rows.entry(t, owner);
    return t < rows.total ? graph.indices[begin + entry] : I(-1);
}

// The level after the front.
template <typename I, typename Fetch, typename Queue>
__device__ __forceinline__ void expand(const Graph<I>& graph, Wide size, Fetch fetch, int warp_, int warps,
                                       I next, bool look, Queue& queue, Wide& arcs)
{
    for_pieces(size, fetch, warp_, warps, [&](Piece<I> piece, const WarpRows<int>& rows) {
        if (rows.total <= WARP) {
            I w[1] = {end_of(graph, piece, rows, lane(), rows.owner(lane()))};
            visit(graph, w, next, look, graph.leaf, queue, arcs);
            return;
        }
        for (int first = 0; first < rows.total; first += WARP * BATCH) {
            I w[BATCH];
#pragma unroll
            for (int k = 0; k < BATCH; ++k) {
                int t = first + k * WARP + lane();
                w[k] = end_of(graph, piece, rows, t, rows.owner(t));
            }
            visit(graph, w, next, look, graph.leaf, queue, arcs);
        }
    });
}

// The front, whose neighbours of level `next` are all known, offers itself as their parent.  The
// vertex of a piece is looked up by bisection: this is done for few levels.
template <typename I, typename Fetch>
__device__ __forceinline__ void offer_front(
    const Graph<I>& graph, Wide size, Fetch fetch, int warp_, int warps, I next)
{
    for_pieces(size, fetch, warp_, warps, [&](Piece<I> piece, const WarpRows<int>& rows) {
        I low = 0, high = graph.n;  // indptr[low] <= begin < indptr[high]
        while (piece.begin < piece.end && high - low > 1) {
            I middle = low + (high - low) / 2;
            if (graph.indptr[middle] <= piece.begin)
                low = middle;
            else
                high = middle;
        }
        for (int first = 0; first < rows.total; first += WARP) {
            int t = first + lane(), owner = rows.owner(t);
            I w = end_of(graph, piece, rows, t, owner), u = __shfl_sync(ALL, low, owner);
            if (w >= 0 && load_relaxed(&graph.level[w]) == next && load_relaxed(&graph.parent[w]) > u)
                lower_to(&graph.parent[w], u);
        }
    });
}

template <typename I>
__device__ __forceinline__ bool offers(const Graph<I>& graph, Wide arcs, Wide found)
{
    return graph.in_indptr != nullptr && found > OFFER_LEAST && found / OFFER > arcs;
}

// One level backwards, 32 vertices to a warp: who is unvisited and has an arc from the front?
// Each bitmap word and each level has one writer.  Returns how many were found, in lane 0.
template <typename I>
__device__ __forceinline__ Wide look_back(
    const Graph<I>& graph, const unsigned int* front, unsigned int* found, I next, int warp_, int warps, Wide& arcs)
{
    Wide count = 0;
    for (Wide word = warp_; word < graph.words(); word += warps) {
        I v = (I)(word * WARP + lane());
        I at = 0, end = 0;
        if (word * WARP + lane() < (Wide)graph.n && graph.level[v] == UNSEEN) {
            at = graph.in_indptr[v];
            end = graph.in_indptr[v + 1];
        }
        I up = -1;  // the first in the row, which is sorted
        I alone = end - at > SERIAL ? at + SERIAL : end;
        while (up < 0 && at < alone) {
            I u[BATCH];
#pragma unroll
            for (int k = 0; k < BATCH; ++k) u[k] = at + k < alone ? graph.in_indices[at + k] : I(-1);
#pragma unroll
            for (int k = BATCH - 1; k >= 0; --k)
                if (u[k] >= 0 && (front[u[k] >> 5] >> (u[k] & 31) & 1)) up = u[k];
            at += BATCH;
        }
        for (unsigned left = __ballot_sync(ALL, up < 0 && at < end); left != 0; left &= left - 1) {
            int owner = __ffs(left) - 1;
            I from = __shfl_sync(ALL, at, owner), to = __shfl_sync(ALL, end, owner), u = 0;
            unsigned votes = 0;
            for (; votes == 0 && from < to; from += WARP) {
                bool here = lane() < to - from;
                if (here) u = graph.in_indices[from + lane()];
                votes = __ballot_sync(ALL, here && (front[u >> 5] >> (u & 31) & 1));
            }
            I first = __shfl_sync(ALL, u, __ffs(votes) - 1);
            if (lane() == owner && votes != 0) up = first;
        }
        bool hit = up >= 0;
        if (hit) {
            graph.level[v] = next;
            graph.parent[v] = up;
            arcs += graph.indptr[v + 1] - graph.indptr[v];
        }
        unsigned votes = __ballot_sync(ALL, hit);
        if (lane() == 0) {
            found[word] = votes;
            count += __popc(votes);
        }
    }
    return count;
}

// The search as every member knows it: all have the same numbers in the same round.
template <typename I>
struct Front {
    I depth;
    Wide head, tail, arcs, seen;
    int side;
    bool backwards;
};

// Sum over the block, added to *total once; all threads call.  `part` is a shared word.
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

// What a cluster keeps in shared memory: a queue for this level and one for the next, and for
// each the pieces and entries that every block of the cluster put there.
template <typename I>
struct Local {
    Piece<I> pieces[2][LOCAL_BYTES / sizeof(Piece<I>)];
    unsigned int count[2], arcs[2];               // this block's
    unsigned int counts[2][CLUSTER], sums[2][CLUSTER];  // all blocks', stored here by each of them
};

// Levels by one cluster, until the front is large or empty, or the limit comes.  Blocks tell each
// other their counts before the barrier that ends a level, so all know them after it.  The first
// front is in the queue; the last is put there.
template <typename I>
__device__ void run_cluster(const Graph<I>& graph, const RollCall& roll, Local<I>& local, Front<I>& front, I limit)
{
    Wide size = front.tail - front.head;
    int fill = 0;  // which side is being filled; the other is the front
    bool first = true, fits = true;
    if (threadIdx.x < 2) local.count[threadIdx.x] = local.arcs[threadIdx.x] = 0;
    __syncthreads();
    // warps of all blocks in turn, so that a small front is spread over the multiprocessors
    int warp_ = warp() * CLUSTER + cluster_rank(), warps = BLOCK / WARP * CLUSTER;
    FarQueue<I> far{graph.queue + front.tail, roll};
    auto from_queue = [&](Wide i) { return graph.queue[front.head + i]; };
    auto from_blocks = [&](Wide i) {  // the blocks' pieces one after the other
        unsigned int at = (unsigned int)i;
        int block = 0;
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
        NearQueue<I> queue{local.pieces[fill], &local.count[fill], far};
        Wide arcs = 0;
        I next = front.depth + 1;
        if (first)
            expand(graph, size, from_queue, warp_, warps, next, false, queue, arcs);
        else
            expand(graph, size, from_blocks, warp_, warps, next, false, queue, arcs);
        if (__any_sync(ALL, arcs != 0)) {  // so much that it does not fit is too much in any case
            unsigned int sum = __reduce_add_sync(ALL, arcs < MUCH / WARP ? (unsigned int)arcs : MUCH / WARP);
            if (lane() == 0) atomicAdd(&local.arcs[fill], sum);
        }
        front.seen += arcs;  // of this thread; summed up at the end
        __syncthreads();
        if (threadIdx.x < CLUSTER) {
            store_at(&local.counts[fill][cluster_rank()], threadIdx.x, local.count[fill]);
            store_at(&local.sums[fill][cluster_rank()], threadIdx.x, local.arcs[fill]);
        }
        if (threadIdx.x == 0) local.count[1 - fill] = local.arcs[1 - fill] = 0;
        cluster_barrier();
        Wide found = 0, pieces = 0;
#pragma unroll
        for (int b = 0; b < CLUSTER; ++b) {
            pieces += local.counts[fill][b];
            found += local.sums[fill][b];
            fits &= local.counts[fill][b] <= NearQueue<I>::ROOM;
        }
        if (offers(graph, front.arcs, found)) {
            if (first)
                offer_front(graph, size, from_queue, warp_, warps, next);
            else
                offer_front(graph, size, from_blocks, warp_, warps, next);
            cluster_barrier();  // the next level overwrites what was read
        }
        size = pieces;
        front.arcs = found;
        front.depth = next;
        if (size == 0 || size > CLUSTER_LEAVE || found > CLUSTER_ENTRIES || !fits || next >= limit) break;
        first = false;
        fill = 1 - fill;
    }
    // what lies in shared memory goes to the queue; what did not fit is there
    __shared__ Wide start;
    unsigned int mine = local.count[fill] < NearQueue<I>::ROOM ? local.count[fill] : NearQueue<I>::ROOM;
    if (threadIdx.x == 0) start = far.reserve(mine);
    __syncthreads();
    for (unsigned int i = threadIdx.x; i < mine; i += BLOCK) far.put(start + i, local.pieces[fill][i]);
}

// Caller: control and sources as gpu.py sets them; block BLOCK; grid a multiple of CLUSTER.
// Stops after `patience` rounds, to be launched again, so that the host is heard now and then.
template <typename I>
__global__ void CLUSTERED __launch_bounds__(BLOCK) search(
    I n, I nnz, const I* indptr, const I* indices, const I* in_indptr, const I* in_indices, bool symmetric,
    const I* sources, I n_sources, I limit, I patience, I* level, I* parent, I* queue, unsigned int* bits,
    unsigned long long* control)
{
    __shared__ Local<I> local;
    __shared__ Wide part, told;
    RollCall roll;
    if (!roll.sign_in(control)) return;
    Graph<I> graph{n, indptr, indices, in_indptr, in_indices, level, parent, reinterpret_cast<Piece<I>*>(queue), bits,
                   I(symmetric ? 1 : 0)};  // a row of one entry leads back to where we came from
    int warp_ = warp() * roll.members + roll.rank, warps = roll.members * (BLOCK / WARP);
    Wide thread = (Wide)warp_ * WARP + lane(), threads = (Wide)warps * WARP;
    bool leader = roll.rank == 0 && threadIdx.x == 0;

    // A meeting of members that found rows of `arcs` entries: the sums of `count` and `arcs`.
    auto meet = [&](Wide count, Wide arcs, Wide* all_arcs) {
        Wide* word = roll.aside();
        add_block(arcs, &part, word);
        Wide sum = roll.meet(count);
        if (threadIdx.x == 0) told = load_relaxed(word);
        __syncthreads();
        *all_arcs = told;
        return sum;
    };

    Front<I> front;
    if (load_relaxed(&control[STAGE]) == STARTING) {
        for (Wide v = thread; v < (Wide)n; v += threads) {
            level[v] = UNSEEN;
            parent[v] = n;
        }
        roll.meet();
        Wide arcs = 0;
        FarQueue<I> far{graph.queue, roll};
        for (Wide at = (Wide)warp_ * WARP; at < (Wide)n_sources; at += threads) {
            I w[1] = {at + lane() < (Wide)n_sources ? sources[at + lane()] : I(-1)};
            visit(graph, w, I(0), false, I(0), far, arcs);
        }
        front = {0, 0, 0, 0, 0, 0, false};
        front.tail = meet(0, arcs, &front.arcs);
        front.seen = front.arcs;
    } else {
        front.depth = (I)load_relaxed(&control[DEPTH]);
        front.head = load_relaxed(&control[HEAD]);
        front.tail = load_relaxed(&control[TAIL]);
        front.arcs = load_relaxed(&control[FRONT_ARCS]);
        front.seen = load_relaxed(&control[SEEN_ARCS]);
        front.side = (int)(load_relaxed(&control[SIDE]) & 1);
        front.backwards = load_relaxed(&control[SIDE]) & 2;
    }

    I stop = limit - front.depth > patience ? front.depth + patience : limit;
    while (front.depth < stop && (front.backwards || front.head < front.tail)) {
        Wide size = front.tail - front.head, open = (Wide)nnz - front.seen;
        bool back = in_indptr != nullptr && front.arcs > (Wide)n / PASS && front.arcs > open / ALPHA;
        if (back || front.backwards) {
            unsigned int* here = bits + front.side * graph.words();
            unsigned int* there = bits + (1 - front.side) * graph.words();
            if (!front.backwards) {  // the front as a bitmap
                for (Wide word = warp_; word < graph.words(); word += warps) {
                    Wide v = word * WARP + lane();
                    unsigned votes = __ballot_sync(ALL, v < (Wide)n && level[v] == front.depth);
                    if (lane() == 0) here[word] = votes;
                }
                roll.meet();
            } else if (!back) {  // the front as a queue again
                FarQueue<I> far{graph.queue + front.tail, roll};
                for (Wide word = warp_; word < graph.words(); word += warps) {
                    unsigned votes = here[word];
                    if (votes == 0) continue;
                    Piece<I> row[1] = {{0, 0}};
                    I v = (I)(word * WARP + lane());
                    if (votes >> lane() & 1) row[0] = {indptr[v], indptr[v + 1]};
                    append(row, graph.leaf, far);
                }
                front.head = front.tail;
                front.tail += roll.meet();
                front.backwards = false;
                continue;
            }
            Wide arcs = 0;
            Wide count = look_back(graph, here, there, I(front.depth + 1), warp_, warps, arcs);
            __syncthreads();
            if (threadIdx.x == 0) part = 0;
            __syncthreads();
            if (lane() == 0 && count != 0) atomicAdd(&part, count);
            __syncthreads();
            count = part;
            __syncthreads();
            count = meet(count, arcs, &front.arcs);
            front.seen += front.arcs;
            front.side = 1 - front.side;
            front.backwards = count > 0;
            front.head = front.tail;
            ++front.depth;
        } else if (size <= CLUSTER_ENTER && front.arcs <= CLUSTER_ENTRIES / 2) {
            bool mine = roll.rank < CLUSTER;
            Wide seen = front.seen;
            front.seen = 0;
            if (mine) run_cluster(graph, roll, local, front, stop);
            int turn = roll.turn;
            if (leader) {
                store_relaxed(&control[CLUSTER_DEPTH + turn], (Wide)front.depth);
                store_relaxed(&control[CLUSTER_ARCS + turn], front.arcs);
            }
            Wide* word = roll.aside();
            add_block(front.seen, &part, word);
            Wide sum = roll.meet(0, !mine);
            front.depth = (I)load_relaxed(&control[CLUSTER_DEPTH + turn]);
            front.arcs = load_relaxed(&control[CLUSTER_ARCS + turn]);
            front.seen = seen + load_relaxed(word);
            front.head = front.tail;
            front.tail += sum;
        } else {
            Wide arcs = 0;
            FarQueue<I> far{graph.queue + front.tail, roll};
            auto fetch = [&](Wide i) { return graph.queue[front.head + i]; };
            I next = front.depth + 1;
            expand(graph, size, fetch, warp_, warps, next, true, far, arcs);
            Wide sum = meet(0, arcs, &arcs);
            if (offers(graph, front.arcs, arcs)) offer_front(graph, size, fetch, warp_, warps, next);
            front.arcs = arcs;
            front.seen += arcs;
            front.head = front.tail;
            front.tail += sum;
            ++front.depth;
        }
    }
    if (leader) {
        bool done = front.depth >= limit || !(front.backwards || front.head < front.tail);
        control[DEPTH] = front.depth;
        control[HEAD] = front.head;
        control[TAIL] = front.tail;
        control[FRONT_ARCS] = front.arcs;
        control[SEEN_ARCS] = front.seen;
        control[SIDE] = front.side + 2 * front.backwards;
        control[STAGE] = done ? DONE : RUNNING;
    }
}

// The largest of all `level` goes to control.  All threads of the block call.
template <typename I>
__device__ __forceinline__ void record_deepest(I level, unsigned long long* control)
{
    level = block_reduce(level, I(0), Most());
    if (threadIdx.x == 0 && level > (I)load_relaxed(&control[DEEPEST])) raise_to(&control[DEEPEST], (Wide)level);
}

// A vertex to each lane.  Who has no parent yet takes the first in its row of arcs to it that has
// the level before.  Writes parent, the largest level to control, and in a bitmap the vertices
// whose rows are so long that choose_rest goes on.  Does nothing while the search goes on.
template <typename I>
__global__ void choose_parents(I n, const I* in_indptr, const I* in_indices, const I* level, I* parent,
                               unsigned int* bits, unsigned long long* control)
{
    if (load_relaxed(&control[STAGE]) != DONE) return;
    long long thread = global_thread();
    bool is_vertex = thread < n;
    I v = is_vertex ? (I)thread : I(0);
    I mine = is_vertex ? level[v] : I(UNSEEN);
    I found = mine == 0 ? v : mine > 0 ? parent[v] : I(-1), at = 0, end = 0;
    if (found == n) {
        at = in_indptr[v];
        end = in_indptr[v + 1];
    }
    I alone = end - at > SERIAL ? at + SERIAL : end;
    while (found == n && at < alone) {
        I u[BATCH];
#pragma unroll
        for (int k = 0; k < BATCH; ++k) u[k] = at + k < alone ? in_indices[at + k] : I(-1);
#pragma unroll
        for (int k = BATCH - 1; k >= 0; --k)
            if (u[k] >= 0 && level[u[k]] == mine - 1) found = u[k];
        at += BATCH;
    }
    for (unsigned left = __ballot_sync(ALL, found == n && at < end); left != 0; left &= left - 1) {
        int owner = __ffs(left) - 1;
        I from = __shfl_sync(ALL, at, owner), to = __shfl_sync(ALL, end, owner), u = 0;
        I before = __shfl_sync(ALL, I(mine - 1), owner);
        if (to - from > HELPED) to = from + HELPED;
        unsigned votes = 0;
        for (; votes == 0 && from < to; from += WARP) {
            bool here = lane() < to - from;
            if (here) u = in_indices[from + lane()];
            votes = __ballot_sync(ALL, here && level[u] == before);
        }
        I first = __shfl_sync(ALL, u, __ffs(votes) - 1);
        if (lane() == owner && votes != 0) found = first;
    }
    if (is_vertex) parent[v] = found;
    unsigned unfinished = __ballot_sync(ALL, found == n);
    if (lane() == 0 && is_vertex) {
        bits[v >> 5] = unfinished;
        if (unfinished != 0) store_relaxed(&control[UNFINISHED], Wide(1));
    }
    record_deepest(mine, control);
}

// The vertices that choose_parents marked: all of their rows, TILE entries to a warp.
template <typename I>
__global__ void choose_rest(I n, I nnz, const I* in_indptr, const I* in_indices, const I* level, I* parent,
                            const unsigned int* bits, const unsigned long long* control)
{
    if (load_relaxed(&control[STAGE]) != DONE || load_relaxed(&control[UNFINISHED]) == 0) return;
    for_tiles<TILE>(n, nnz, in_indptr, [&](I v, I begin, I end) {
        if ((bits[v >> 5] >> (v & 31) & 1) == 0) end = begin;
        I before = level[v] - 1;
        WarpRows<I> rows(begin, end);
        for (I first = 0; first < rows.total; first += WARP) {
            I t = first + lane();
            int owner = rows.owner(t);
            I entry = rows.entry(t, owner);
            I w = __shfl_sync(ALL, v, owner), wanted = __shfl_sync(ALL, before, owner);
            if (t >= rows.total) continue;
            I u = in_indices[entry];
            if (level[u] == wanted && load_relaxed(&parent[w]) > u) lower_to(&parent[w], u);
        }
    });
}

// Without arcs backwards: a source is its own parent, others have n until one is offered.
template <typename I>
__global__ void reset_parents(I n, const I* level, I* parent, unsigned long long* control)
{
    if (load_relaxed(&control[STAGE]) != DONE) return;
    long long v = global_thread();
    I mine = v < n ? level[v] : I(UNSEEN);
    if (v < n) parent[v] = mine > 0 ? n : mine == 0 ? (I)v : I(-1);
    record_deepest(mine, control);
}

// Every arc to the next level offers its tail as parent.  TILE entries to a warp; parent[w] is
// lowered by atomicMin alone, so the result does not depend on scheduling.
template <typename I>
__global__ void offer_parents(
    I n, I nnz, const I* indptr, const I* indices, const I* level, I* parent, unsigned long long* control)
{
    if (load_relaxed(&control[STAGE]) != DONE) return;
    for_tiles<TILE>(n, nnz, indptr, [&](I v, I begin, I end) {
        I mine = level[v];
        if (mine == UNSEEN) end = begin;
        WarpRows<I> rows(begin, end);
        for (I first = 0; first < rows.total; first += WARP) {
            I t = first + lane();
            int owner = rows.owner(t);
            I entry = rows.entry(t, owner);
            I u = __shfl_sync(ALL, v, owner), next = __shfl_sync(ALL, I(mine + 1), owner);
            if (t >= rows.total) continue;
            I w = indices[entry];
            if (level[w] == next && load_relaxed(&parent[w]) > u) lower_to(&parent[w], u);
        }
    });
}
