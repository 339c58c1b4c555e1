// Levels of an order of Cuthill and McKee: the frontier, narrow levels by one block or cluster, and wide
// levels by all blocks.
#pragma once
#include "matchwood/edges.cuh"
#include "matchwood/resident_barrier.cuh"
#include "matchwood/queue.cuh"

using Wide = unsigned long long;

constexpr int LEVEL_BLOCK = 1024;  // threads; one block on each multiprocessor
constexpr int READS = 4;           // reads that a thread has in flight in a pass over all vertices

// use(i, read(i)) for this thread's share of all i < size, where `threads` share them.  A block has a multiprocessor
// for itself, so a thread has several reads in flight: they do not wait for a condition.
template <typename Read, typename Use>
__device__ __forceinline__ void for_each_read(Wide size, Wide thread, Wide threads, Read read, Use use)
{
    for (Wide at = thread; at < size; at += READS * threads) {
        decltype(read(at)) value[READS];
#pragma unroll
        for (int k = 0; k < READS; ++k) value[k] = read(at + k * threads < size ? at + k * threads : at);
#pragma unroll
        for (int k = 0; k < READS; ++k)
            if (at + k * threads < size) use(at + k * threads, value[k]);
    }
}

// The frontier as every member knows it.
template <typename I>
struct Front {
    I head, tail;  // its window of `order`
    I depth;       // its level
    I longest;     // entries of its longest row; -1: no level comes after it
    I width;       // most vertices of two levels up to it that follow one another
    int flip;      // which of the words in turn the next wide level uses

    __device__ __forceinline__ I size() const { return tail - head; }

    // Go on to the next level, of `children` vertices; the last one stays.
    __device__ __forceinline__ void advance(I children, I longest_)
    {
        I both = size() + children;
        width = both > width ? both : width;
        longest = children > 0 ? longest_ : I(-1);
        if (children == 0) return;
        head = tail;
        tail += children;
        depth += 1;
    }
};

// NARROW LEVELS
//
// Levels of an order of Cuthill and McKee with few vertices and short rows: one block, or one cluster,
// works without the others, the frontier in shared memory, some lanes per row.  A level takes two barriers:
//   offer | count and sort children, send the counts to the other blocks | write them
//
// Owners are read after the barrier behind all offers of the level; the next offers are made after the
// barrier behind those reads.  Every place of `order` has one writer.

// Measured: bench/ordering/rcm_gpu.py, H200.
constexpr int ROOM_BYTES = 4096;     // shared memory of one of the six lists of a block
constexpr int SOLO_LANES = 1024;     // lanes up to which one block works alone
constexpr int NARROW_LANES = 16384;  // lanes up to which one cluster works alone
constexpr int NARROW_ROW = 128;       // entries of the longest row of a narrow level
constexpr int ENTRIES_PER_LANE = 4;  // entries per lane where rows have more than 32
constexpr bool FETCH_AHEAD = true;   // fetch what the next step reads
constexpr int SPARE_ROWS = 64;       // rows that a block may have beyond twice its share

// log2 of the lanes that a row gets in a narrow level: all its entries, or a warp.
template <typename I>
__device__ __forceinline__ int lanes_log(I longest)
{
    int log = 1;
    while (log < 5 && (I(1) << log) < longest) ++log;
    return log;
}

// Rows of a block's part of the frontier, and of what it finds.
template <typename I>
struct Near {
    static constexpr int ROOM = ROOM_BYTES / sizeof(I);

    I vertex[2][ROOM], begin[2][ROOM], length[2][ROOM];
    unsigned int in_warp[2][LEVEL_BLOCK / WARP];
    unsigned int counts[2][CLUSTER], longest[2][CLUSTER];  // stored here by each of the blocks
    unsigned int mine;                                     // longest row found by this block
};

// Prefetch a word, without waiting for it.
__device__ __forceinline__ void fetch_ahead(const void* p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }

// The rows of a side offer their places.  Where their neighbours' rows are is needed next.
template <typename I>
__device__ __forceinline__ void offer_rows(
    const Queue<I>& queue, const Near<I>& near, int side, int rows, I place, int log)
{
    for (int j = threadIdx.x >> log; j < rows; j += LEVEL_BLOCK >> log) {
        I begin = near.begin[side][j], length = near.length[side][j];
        for (I e = threadIdx.x & ((1 << log) - 1); e < length; e += 1 << log) {
            I w = queue.indices[begin + e];
            atomicMin(&queue.owner[w], I(place + j));
            if (FETCH_AHEAD) fetch_ahead(&queue.indptr[w]);
        }
    }
}

// The children of the rows of a side, in their order, go to the other side, or to `target` if there
// is one.  Returns how many there are.  COUNT entries per lane.
template <int COUNT, typename I>
__device__ __forceinline__ int place_rows(
    const Queue<I>& queue, Near<I>& near, int side, int rows, I place, int log, I* target)
{
    int total = 0, turn = 0, group = lane() >> log << log;
    unsigned lower = (1u << group) - 1, inside = (log == 5 ? ALL : (1u << (1 << log)) - 1) << group;
    I most = 0;
    for (int from = 0; from < rows; from += LEVEL_BLOCK >> log, turn = 1 - turn) {
        int j = from + (threadIdx.x >> log), e = lane() - group;
        I w[COUNT], begin[COUNT], degree[COUNT], owner[COUNT];
        bool mine[COUNT];
#pragma unroll
        for (int k = 0; k < COUNT; ++k) {
            mine[k] = j < rows && e + k * WARP < near.length[side][j];
            if (mine[k]) w[k] = queue.indices[near.begin[side][j] + e + k * WARP];
        }
#pragma unroll
        for (int k = 0; k < COUNT; ++k) {
            if (mine[k]) {
                owner[k] = load_relaxed(&queue.owner[w[k]]);
                begin[k] = queue.indptr[w[k]];
                degree[k] = queue.indptr[w[k] + 1];
            }
        }
        int before = 0, all = 0, siblings = 0;
#pragma unroll
        for (int k = 0; k < COUNT; ++k) {
            mine[k] = mine[k] && owner[k] == place + j;
            degree[k] = mine[k] ? degree[k] - begin[k] : queue.n;  // more than any
            unsigned votes = __ballot_sync(ALL, mine[k]);
            before += __popc(votes & lower);
            siblings += __popc(votes & inside);
            all += __popc(votes);
        }
        int rank[COUNT] = {};
        if (__any_sync(ALL, siblings > 1)) {
#pragma unroll
            for (int other = 0; other < COUNT; ++other) {
                for (int s = 0; s < 1 << log; ++s) {
                    I its = __shfl_sync(ALL, degree[other], group + s);
#pragma unroll
                    for (int k = 0; k < COUNT; ++k)
                        rank[k] += its < degree[k] ||
                                   (its == degree[k] && its != queue.n && other * WARP + s < k * WARP + e);
                }
            }
        }
        if (lane() == 0) near.in_warp[turn][warp()] = all;
        __syncthreads();
        int part = lane() < LEVEL_BLOCK / WARP ? near.in_warp[turn][lane()] : 0;
        int start = warp_exclusive_sum(part), sum = __shfl_sync(ALL, start + part, WARP - 1);
        start = total + __shfl_sync(ALL, start, warp()) + before;
        total += sum;
#pragma unroll
        for (int k = 0; k < COUNT; ++k) {
            if (!mine[k]) continue;
            int at = start + rank[k];
            if (FETCH_AHEAD) fetch_ahead(&queue.indices[begin[k]]);
            if (target != nullptr) {
                target[at] = w[k];
            } else if (at < Near<I>::ROOM) {
                near.vertex[1 - side][at] = w[k];
                near.begin[1 - side][at] = begin[k];
                near.length[1 - side][at] = degree[k];
            }
            most = degree[k] > most ? degree[k] : most;
        }
    }
    unsigned int longest = __reduce_max_sync(ALL, (unsigned int)most);
    if (lane() == 0 && longest > 0) atomicMax(&near.mine, longest);
    __syncthreads();
    return total;
}

// Narrow levels by one cluster (TOGETHER) or one block, until the frontier grows wide or ends, all
// `total` vertices are placed, two levels have `limit` vertices, or `stop` is set.  A block goes on with
// the children that it found, unless some found far more than others.
template <bool TOGETHER, typename I>
__device__ __forceinline__ void go_narrow(
    const Queue<I>& queue, Near<I>& near, Front<I>& front, I total, I limit, I stop)
{
    constexpr int BLOCKS = TOGETHER ? CLUSTER : 1;
    constexpr I LIMIT = TOGETHER ? NARROW_LANES : SOLO_LANES;
    auto barrier = [] {
        if (TOGETHER)
            cluster_barrier();
        else
            __syncthreads();
    };
    int me = TOGETHER ? cluster_rank() : 0, side = 0, turn = 0, rows = 0;
    I place = 0;
    bool known = false;  // the block's rows lie in shared memory
    if (threadIdx.x == 0) near.mine = 0;
    __syncthreads();
    while (true) {
        if (!known) {
            I share = (front.size() + BLOCKS - 1) / BLOCKS;
            I from = share * me < front.size() ? share * me : front.size();
            rows = (int)(front.size() - from < share ? front.size() - from : share);
            place = front.head + from;
            for (int j = threadIdx.x; j < rows; j += LEVEL_BLOCK) {
                I v = load_relaxed(&queue.order[place + j]);
                near.begin[side][j] = queue.indptr[v];
                near.length[side][j] = queue.degree(v);
            }
            __syncthreads();
        }
        int log = lanes_log(front.longest);
        bool lone = front.longest <= WARP;
        offer_rows(queue, near, side, rows, place, log);
        barrier();
        int count = lone ? place_rows<1>(queue, near, side, rows, place, log, (I*)nullptr)
                         : place_rows<ENTRIES_PER_LANE>(queue, near, side, rows, place, log, (I*)nullptr);
        if (TOGETHER) {
            if (threadIdx.x < CLUSTER) {
                store_at(&near.counts[turn][me], threadIdx.x, (unsigned int)count);
                store_at(&near.longest[turn][me], threadIdx.x, near.mine);
            }
        } else if (threadIdx.x == 0) {
            near.counts[turn][0] = count;
            near.longest[turn][0] = near.mine;
        }
        barrier();
        I before = 0, sum = 0, most = 0, longest = 0;
#pragma unroll
        for (int b = 0; b < BLOCKS; ++b) {
            I its = near.counts[turn][b], row = near.longest[turn][b];
            if (b < me) before += its;
            sum += its;
            most = its > most ? its : most;
            longest = row > longest ? row : longest;
        }
        turn = 1 - turn;
        if (threadIdx.x == 0) near.mine = 0;  // read before the barrier, used after the next
        I* target = queue.order + front.tail + before;
        if (most <= Near<I>::ROOM) {
            for (int i = threadIdx.x; i < count; i += LEVEL_BLOCK) store_relaxed(&target[i], near.vertex[1 - side][i]);
        } else if (lone) {
            place_rows<1>(queue, near, side, rows, place, log, target);
        } else {
            place_rows<ENTRIES_PER_LANE>(queue, near, side, rows, place, log, target);
        }
        front.advance(sum, longest);
        if (sum == 0 || front.tail >= total || front.width >= limit || front.depth >= stop || longest > NARROW_ROW ||
            sum > BLOCKS * Near<I>::ROOM)
            return;
        I lanes = sum << lanes_log(longest);
        if (lanes > 2 * LIMIT || (TOGETHER && lanes < SOLO_LANES / 4)) return;
        known = most <= Near<I>::ROOM && most <= 2 * sum / BLOCKS + SPARE_ROWS;
        if (known) {
            place = front.head + before;
            rows = count;
            side = 1 - side;
            __syncthreads();  // mine is 0 before it is raised
        } else {
            barrier();  // order is written
            if (threadIdx.x == 0) near.mine = 0;
            __syncthreads();
        }
    }
}

// WIDE LEVELS
//
// Levels of an order of Cuthill and McKee with many vertices or long rows, by all blocks.  Long rows are
// cut in pieces; the thread whose offer to a vertex is the first lists it.  Count children by owner, scan
// the counts, place children with their owner, find their positions by counting smaller ones.  The
// children of owners with many are sorted, one block per owner.
//
// Where the free vertices have fewer entries than the frontier, they look for their owners instead: each
// reads its whole row.  A neighbour that has its place is in the frontier, else the vertex would not be
// free; the least of those places is the owner, as if offered.
//
// The list is in the order of arrival, and so are the children of an owner before they are sorted;
// their final positions do not depend on it.  A level of very many entries is left to the host, which has
// whole launches for it (huge_levels.cu).  Between two meetings every word of `order` and of the lists has
// one writer, and no word that is read is written, except owners while they are offered to.

// Measured: bench/ordering/rcm_gpu.py, H200.
constexpr int LONG_ROW = 1024;       // entries; longer rows are cut into pieces of this length
constexpr int LEVEL_BATCH = 4;       // entries whose loads a lane has in flight at once
constexpr int RANKED_CHILDREN = 64;  // children of an owner up to which each counts those before it
constexpr int MANY_VERTICES = 16;    // entries of a frontier of more than n / MANY_VERTICES vertices are counted,
constexpr int MANY_ENTRIES = 8;      // and those of free vertices if it has more than nnz / MANY_ENTRIES entries,
constexpr int LATE = 4;              // and these first if it has over LATE times the vertices that are left
constexpr int SEEKERS = 8;           // vertices of a lane that seek in turn: all atomics on the one counter wait
constexpr int ENTRIES_SOUGHT = 16;   // entries that a free vertex reads alone; then its warp helps

// How a wide level is found.
enum Variant { OFFER, SEEK, LEAVE_OFFER, LEAVE_SEEK };

// The place of a vertex of the frontier, which starts at `head`, else none().
template <typename I>
__device__ __forceinline__ I place_in_front(const Queue<I>& queue, const I* place, I head, I u)
{
    I at = load_relaxed(&place[u]);
    return at >= head ? at : queue.none();  // smaller ones only where the pattern is not symmetric
}

// The least place of a neighbour in the frontier, none() without one.  All lanes of the warp call.
template <typename I>
__device__ __forceinline__ I least_place(const Queue<I>& queue, const I* place, I head, I begin, I end)
{
    I least = queue.none(), alone = end - begin > ENTRIES_SOUGHT ? begin + ENTRIES_SOUGHT : end;
    for (I at = begin; at < alone; at += LEVEL_BATCH) {
        I u[LEVEL_BATCH];
#pragma unroll
        for (int k = 0; k < LEVEL_BATCH; ++k) u[k] = at + k < alone ? queue.indices[at + k] : I(-1);
#pragma unroll
        for (int k = 0; k < LEVEL_BATCH; ++k)
            if (u[k] >= 0) least = Least()(least, place_in_front(queue, place, head, u[k]));
    }
    for (unsigned left = __ballot_sync(ALL, alone < end); left != 0; left &= left - 1) {
        int owner = __ffs(left) - 1;
        I from = __shfl_sync(ALL, alone, owner), to = __shfl_sync(ALL, end, owner), found = queue.none();
        for (I at = from + lane(); at < to; at += WARP)
            found = Least()(found, place_in_front(queue, place, head, queue.indices[at]));
        found = warp_reduce(found, Least());
        if (lane() == owner) least = Least()(least, found);
    }
    return least;
}

// Scratch of wide levels, n elements each unless said.
template <typename I>
struct Scratch {
    I *found, *slot;    // children as they were found; their number among those of their owner
    I *count, *first;   // by place of the owner: how many, and where they start
    I *child;           // children with their owners
    I *place;           // by vertex: where it is, if it is in the frontier of a level that is sought from
    I *big;             // owners of more than RANKED_CHILDREN children; n / RANKED_CHILDREN
    I *piece;           // place and part of long rows; 4 nnz / LONG_ROW + 2
    I *sums;            // children of each block's share of owners
};

// What all blocks do in a wide level; every step is done by all threads of all members.
template <typename I>
struct Level {
    const Queue<I>& queue;
    const Scratch<I>& scratch;
    RollCall& roll;
    unsigned long long* control;
    const Front<I>& front;
    int warp_, warps;

    // Vertices of the frontier with long rows list pieces of them.  Returns the number of all.
    __device__ Wide list_pieces()
    {
        for (Wide at = (Wide)warp_ * WARP; at < (Wide)front.size(); at += (Wide)warps * WARP) {
            I place = front.head + (I)(at + lane()), parts = 0;
            if (at + lane() < (Wide)front.size()) {
                I length = queue.degree(load_relaxed(&queue.order[place]));
                if (length > LONG_ROW) parts = (length + LONG_ROW - 1) / LONG_ROW;
            }
            I before = warp_exclusive_sum(parts);
            I all = __shfl_sync(ALL, before + parts, WARP - 1);
            if (all == 0) continue;
            Wide slot = lane() == 0 ? roll.add(all) : 0;
            slot = __shfl_sync(ALL, slot, 0) + before;
            for (I part = 0; part < parts; ++part) {
                scratch.piece[2 * (slot + part)] = place;
                scratch.piece[2 * (slot + part) + 1] = part;
            }
        }
        return roll.meet();
    }

    // The sum of `entries(i)` over i from 0 to size - 1.  Meets.
    template <typename Entries>
    __device__ Wide count_entries(Wide size, Entries entries)
    {
        Wide sum = 0, all;
        for_each_read(size, (Wide)warp_ * WARP + lane(), (Wide)warps * WARP, entries, [&](Wide, I here) { sum += here; });
        sum = warp_reduce(sum, Plus());
        if (lane() == 0 && sum > 0) atomicAdd(roll.second_sum(), sum);
        roll.meet(&all);
        return all;
    }

    // Entries of the frontier, and of the free vertices.  Meet.
    __device__ Wide front_entries()
    {
        return count_entries(front.size(), [&](Wide i) {
            return queue.degree(load_relaxed(&queue.order[front.head + i]));
        });
    }
    __device__ Wide free_entries()
    {
        return count_entries(queue.n, [&](Wide v) {
            I degree = queue.degree((I)v);
            return load_relaxed(&queue.owner[v]) == queue.none() ? degree : I(0);
        });
    }

    // The frontier offers, or, where they have fewer entries, free vertices seek.  It is left to the host
    // where even these are more than `huge`, or a row is longer than `huge_row`: one block would sort
    // the children of its vertex.  `sought` is what free vertices have, if they are to seek.  Meets.
    __device__ Variant variant(I total, Wide huge, Wide huge_row, Wide& sought)
    {
        Wide size = front.size();
        bool many = size > (Wide)queue.n / MANY_VERTICES;
        if (front.longest <= LONG_ROW && !many) return OFFER;
        bool leave = (Wide)front.longest > huge_row;
        // A large frontier at the end: its vertices have an entry at least, and are all over the graph.
        bool late = many && size > (Wide)(total - front.tail) * LATE;
        Wide open = late ? free_entries() : 0;
        Wide arcs = late && open < size ? size : front_entries();
        if (!late) {
            if (arcs <= (Wide)queue.indptr[queue.n] / MANY_ENTRIES && arcs <= huge)
                return leave ? LEAVE_OFFER : OFFER;
            open = free_entries();
        }
        sought = open < arcs ? open : 0;
        if (leave || Least()(arcs, open) > huge) return open < arcs ? LEAVE_SEEK : LEAVE_OFFER;
        return open < arcs ? SEEK : OFFER;
    }

    // Free vertices look for their owners, and are listed where they have one.  Meets.
    __device__ void seek(I& longest)
    {
        for (Wide i = (Wide)warp_ * WARP + lane(); i < (Wide)front.size(); i += (Wide)warps * WARP) {
            I at = front.head + (I)i;
            store_relaxed(&scratch.place[load_relaxed(&queue.order[at])], at);
        }
        roll.meet();
        constexpr int TURN = SEEKERS * WARP;
        for (Wide at = (Wide)warp_ * TURN + lane(); at < (Wide)queue.n + lane(); at += (Wide)warps * TURN) {
            I least[SEEKERS];  // the owner at first
            unsigned votes[SEEKERS];
            int all = 0;
#pragma unroll
            for (int k = 0; k < SEEKERS; ++k)
                least[k] = at + k * WARP < (Wide)queue.n ? load_relaxed(&queue.owner[at + k * WARP]) : I(-1);
#pragma unroll
            for (int k = 0; k < SEEKERS; ++k) {
                I begin = 0, end = 0;
                if (least[k] == queue.none()) {
                    begin = queue.indptr[at + k * WARP];
                    end = queue.indptr[at + k * WARP + 1];
                }
                least[k] = least_place(queue, scratch.place, front.head, begin, end);
                votes[k] = __ballot_sync(ALL, least[k] < queue.none());
                all += __popc(votes[k]);
            }
            if (all == 0) continue;
            Wide slot = lane() == 0 ? roll.add(all) : 0;
            slot = __shfl_sync(ALL, slot, 0);
#pragma unroll
            for (int k = 0; k < SEEKERS; ++k) {
                if (least[k] < queue.none()) {
                    I v = (I)(at + k * WARP);
                    store_relaxed(&queue.owner[v], least[k]);
                    scratch.found[slot + __popc(votes[k] & lanes_below())] = v;
                    longest = Most()(longest, queue.degree(v));
                }
                slot += __popc(votes[k]);
            }
        }
    }

    // Vertices w (or -1) get the offer of places p; those that had none yet are listed.
    __device__ __forceinline__ void offer(const I (&w)[LEVEL_BATCH], const I (&p)[LEVEL_BATCH], I& longest)
    {
        I seen[LEVEL_BATCH];
        bool fresh[LEVEL_BATCH];
#pragma unroll
        for (int k = 0; k < LEVEL_BATCH; ++k) seen[k] = w[k] >= 0 ? load_relaxed(&queue.owner[w[k]]) : I(-1);
#pragma unroll
        for (int k = 0; k < LEVEL_BATCH; ++k) {
            fresh[k] = false;
            if (seen[k] > p[k]) fresh[k] = atomicMin(&queue.owner[w[k]], p[k]) == queue.none();
        }
        unsigned votes[LEVEL_BATCH];
        int all = 0;
#pragma unroll
        for (int k = 0; k < LEVEL_BATCH; ++k) {
            votes[k] = __ballot_sync(ALL, fresh[k]);
            all += __popc(votes[k]);
        }
        if (all == 0) return;
        Wide slot = lane() == 0 ? roll.add(all) : 0;
        slot = __shfl_sync(ALL, slot, 0);
#pragma unroll
        for (int k = 0; k < LEVEL_BATCH; ++k) {
            if (fresh[k]) {
                scratch.found[slot + __popc(votes[k] & lanes_below())] = w[k];
                I degree = queue.degree(w[k]);
                longest = degree > longest ? degree : longest;
            }
            slot += __popc(votes[k]);
        }
    }

    __device__ void offer_short(I& longest)
    {
        Wide size = front.size(), even = (size + warps - 1) / warps;
        int chunk = even < WARP ? (int)even : WARP;
        for (Wide at = (Wide)warp_ * chunk; at < size; at += (Wide)warps * chunk) {
            I first = front.head + (I)at, begin = 0, end = 0;
            if (lane() < chunk && at + lane() < size) {
                I v = load_relaxed(&queue.order[first + lane()]);
                begin = queue.indptr[v];
                end = queue.indptr[v + 1];
                if (end - begin > LONG_ROW) end = begin;
            }
            auto read = [&](I at) { return queue.indices[at]; };
            WarpRows<I>(begin, end).template for_batches<LEVEL_BATCH>(read, [&](const auto& row, const auto& w) {
                I p[LEVEL_BATCH];
#pragma unroll
                for (int k = 0; k < LEVEL_BATCH; ++k) p[k] = first + row[k];
                offer(w, p, longest);
            });
        }
    }

    __device__ void offer_pieces(Wide pieces, I& longest)
    {
        for (Wide at = warp_; at < pieces; at += warps) {
            I place = scratch.piece[2 * at], v = load_relaxed(&queue.order[place]);
            I begin = queue.indptr[v] + scratch.piece[2 * at + 1] * LONG_ROW, end = queue.indptr[v + 1];
            I length = end - begin < LONG_ROW ? end - begin : I(LONG_ROW);
            for (I start = 0; start < length; start += WARP * LEVEL_BATCH) {
                I w[LEVEL_BATCH], p[LEVEL_BATCH];
#pragma unroll
                for (int k = 0; k < LEVEL_BATCH; ++k) {
                    I t = start + k * WARP + lane();
                    w[k] = t < length ? queue.indices[begin + t] : I(-1);
                    p[k] = place;
                }
                offer(w, p, longest);
            }
        }
    }

    // The children's numbers among those of the same owner, in no particular order.
    __device__ void count_children(Wide children)
    {
        for (Wide at = (Wide)warp_ * WARP; at < children; at += (Wide)warps * WARP) {
            bool is_child = at + lane() < children;
            I owner = is_child ? queue.owner[scratch.found[at + lane()]] : I(-1);
            unsigned same = __match_any_sync(ALL, owner);
            int leader = __ffs(same) - 1;
            I slot = 0;
            if (is_child && lane() == leader) slot = take(&scratch.count[owner], I(__popc(same)));
            slot = __shfl_sync(ALL, slot, leader) + __popc(same & lanes_below());
            if (is_child) scratch.slot[at + lane()] = slot;
        }
    }

    // Where each owner's children start; each block has a share of the owners.  Lists the owners
    // of many.  Meets in between.
    __device__ void scan_counts(unsigned long long* bigs)
    {
        I share = (front.size() + roll.members - 1) / roll.members;
        I from = (Wide)share * roll.rank < (Wide)front.size() ? share * roll.rank : front.size();
        I rows = front.size() - from < share ? front.size() - from : share;
        const I* count = scratch.count + front.head + from;
        I sum = 0, all;
        for (I j = threadIdx.x; j < rows; j += LEVEL_BLOCK) sum += count[j];
        sum = block_reduce(sum, I(0), Plus());
        if (threadIdx.x == 0) store_relaxed(&scratch.sums[roll.rank], sum);
        roll.meet();
        sum = 0;
        for (int b = threadIdx.x; b < roll.rank; b += LEVEL_BLOCK) sum += load_relaxed(&scratch.sums[b]);
        block_exclusive_sum(sum, &all);
        I start = all;
        for (I tile = 0; tile < rows; tile += LEVEL_BLOCK) {
            I j = tile + threadIdx.x, mine = j < rows ? count[j] : I(0);
            I before = block_exclusive_sum(mine, &all);
            if (j < rows) {
                scratch.first[front.head + from + j] = start + before;
                if (mine > RANKED_CHILDREN) scratch.big[atomicAdd(bigs, 1ull)] = front.head + from + j;
            }
            start += all;
        }
        roll.meet();
    }

    __device__ void gather_children(Wide children, Wide thread, Wide threads)
    {
        for (Wide c = thread; c < children; c += threads) {
            I w = scratch.found[c], owner = queue.owner[w];
            scratch.child[scratch.first[owner] + scratch.slot[c]] = w;
        }
    }

    // Each child counts those before it among the children of its owner, which gives its position.
    __device__ void rank_children(Wide children, Wide thread, Wide threads)
    {
        for (Wide c = thread; c < children; c += threads) {
            I w = scratch.child[c], owner = queue.owner[w], size = scratch.count[owner];
            if (size > RANKED_CHILDREN) continue;
            I first = scratch.first[owner], rank = 0;
            if (size > 1) {
                I degree = queue.degree(w);
                for (I k = first; k < first + size; ++k) {
                    I other = scratch.child[k], its = queue.degree(other);
                    rank += its < degree || (its == degree && other < w);
                }
            }
            store_relaxed(&queue.order[front.tail + first + rank], w);
        }
    }

    // One block per owner of many; `found` and `slot` are not needed any more.
    __device__ void place_bigs(Wide bigs, unsigned long long* taken, SortSpace<LEVEL_BLOCK>& space)
    {
        __shared__ Wide next;
        while (true) {
            if (threadIdx.x == 0) next = atomicAdd(taken, 1ull);
            __syncthreads();
            Wide mine = next;
            __syncthreads();
            if (mine >= bigs) return;
            I owner = scratch.big[mine], first = scratch.first[owner];
            place_many<LEVEL_BLOCK>(queue, owner, scratch.count[owner], scratch.found + first,
                              scratch.slot + first, queue.order + front.tail + first, space);
        }
    }
};
