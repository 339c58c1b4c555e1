// Cuthill-McKee level by level ("leveled").  Host side: gpu.py; the rule and the papers:
// __init__.py; what `order` and `owner` hold: places.cuh.
//
// One launch does all levels, so that a level costs a few barriers and not launches.  All
// components are ordered at once: their starts are the first level.  The front is a window of
// `order`; its vertices offer their places to their neighbours, which keep the least; then every
// vertex of the front places those that kept its own, by (degree, vertex).
//   narrow   a small front of short rows: a block, or a cluster of them, goes on by itself, the
//            front in shared memory, some lanes to a row.  Offer | count, rank, tell counts | write:
//            two barriers of the cluster for a level.
//   wide     all blocks.  Long rows are cut in pieces; whoever first offers to a vertex lists it.
//            Count children by owner, scan the counts, place children with their owner, rank them
//            among its children; owners with many sort them, a block to an owner.
//
// Races.  owner: places.cuh.  In a narrow level owners are read after a barrier behind all offers
// of the level; the next offers come after the barrier behind those reads.  The list of a wide
// level is in the order of arrival, and so are children with their owner before they are ranked;
// ranks do not depend on it.  Every word of `order`, `first` and the lists has one writer between
// two barriers.
#include "matchwood/edges.cuh"
#include "matchwood/places.cuh"
#include "matchwood/roll_call.cuh"

using Wide = unsigned long long;

// bench/ordering/rcm_gpu.py, H200, where nothing else is said.
constexpr int BLOCK = 1024;       // threads; one block on each multiprocessor
constexpr int ROOM_BYTES = 4096;  // shared memory of one of the six lists of a block
constexpr int SOLO = 1024;        // lanes for which one block goes on alone
constexpr int NARROW = 65536;     // lanes for which a cluster does
constexpr int SHORT = 128;        // entries of the longest row of a narrow level
constexpr int MANY = 4;           // entries of a lane where rows are longer than a warp
constexpr int UNEVEN = 64;        // rows that a block may have beyond twice its share
constexpr int LONG = 1024;        // entries; longer rows are cut into pieces so long
constexpr int BATCH = 4;          // entries that a lane has under way at once
constexpr int RANKED = 64;        // children of an owner that are ranked by counting

// Words of `control`; those of the roll call are 0 at every launch, all are at the first.
constexpr int REPORT = ROLL_WORDS;       // three in turn, of 5: what a narrow part has come to
constexpr int LONGEST = REPORT + 15;     // two in turn: longest row of the next front
constexpr int BIGS = LONGEST + 2;        // two in turn: owners of many, listed
constexpr int TAKEN = BIGS + 2;          // two in turn: and taken
constexpr int STAGE = TAKEN + 2;         // STARTING, RUNNING, DONE
constexpr int HEAD = STAGE + 1;          // and the rest of Front
constexpr int TAIL = STAGE + 2;
constexpr int DEPTH = STAGE + 3;
constexpr int LENGTH = STAGE + 4;
constexpr int WIDTH = STAGE + 5;
constexpr int FLIP = STAGE + 6;
constexpr int STARTING = 0, RUNNING = 1, DONE = 2;

// The front as every member knows it.
template <typename I>
struct Front {
    I head, tail;  // its window of `order`
    I depth;       // its level
    I longest;     // entries of its longest row
    I width;       // most vertices of two levels up to it that follow one another
    int flip;      // which of the words in turn the next wide level uses

    __device__ __forceinline__ I size() const { return tail - head; }

    // Go on to the next level, of `children` vertices.
    __device__ __forceinline__ void advance(I children, I longest_)
    {
        I both = size() + children;
        width = both > width ? both : width;
        head = tail;
        tail += children;
        depth += 1;
        longest = longest_;
    }
};

// Scratch of wide levels, n elements each unless said.
template <typename I>
struct Scratch {
    I *found, *slot;    // children as they were found; their number among those of their owner
    I *count, *first;   // by place of the owner: how many, and where they start
    I *child;           // children with their owners
    I *big;             // owners of more than RANKED children; n / RANKED
    I *piece;           // place and part of long rows; 4 nnz / LONG + 2
    I *sums;            // children of each block's share of owners
};

// log2 of the lanes that a row gets in a narrow level: all its entries, or a warp.
template <typename I>
__device__ __forceinline__ int lanes_log(I longest)
{
    int log = 1;
    while (log < 5 && (I(1) << log) < longest) ++log;
    return log;
}

// Rows of a block's part of the front, and of what it finds.
template <typename I>
struct Near {
    static constexpr int ROOM = ROOM_BYTES / sizeof(I);

    I vertex[2][ROOM], begin[2][ROOM], length[2][ROOM];
    unsigned int in_warp[2][BLOCK / WARP];
    unsigned int counts[2][CLUSTER], longest[2][CLUSTER];  // stored here by each of the blocks
    unsigned int mine;                                     // longest row found by this block
};

// The rows of a side offer their places.
template <typename I>
__device__ __forceinline__ void offer_rows(
    const Places<I>& places, const Near<I>& near, int side, int rows, I place, int log)
{
    for (int j = threadIdx.x >> log; j < rows; j += BLOCK >> log) {
        I begin = near.begin[side][j], length = near.length[side][j];
        for (I e = threadIdx.x & ((1 << log) - 1); e < length; e += 1 << log)
            atomicMin(&places.owner[places.indices[begin + e]], I(place + j));
    }
}

// The children of the rows of a side, in their order, go to the other side, or to `target` if there
// is one.  Returns how many there are.  COUNT entries to a lane.
template <int COUNT, typename I>
__device__ __forceinline__ int place_rows(
    const Places<I>& places, Near<I>& near, int side, int rows, I place, int log, I* target)
{
    int total = 0, turn = 0, group = lane() >> log << log;
    unsigned lower = (1u << group) - 1, inside = (log == 5 ? ALL : (1u << (1 << log)) - 1) << group;
    I most = 0;
    for (int from = 0; from < rows; from += BLOCK >> log, turn = 1 - turn) {
        int j = from + (threadIdx.x >> log), e = lane() - group;
        I w[COUNT], begin[COUNT], degree[COUNT], owner[COUNT];
        bool mine[COUNT];
#pragma unroll
        for (int k = 0; k < COUNT; ++k) {
            mine[k] = j < rows && e + k * WARP < near.length[side][j];
            if (mine[k]) w[k] = places.indices[near.begin[side][j] + e + k * WARP];
        }
#pragma unroll
        for (int k = 0; k < COUNT; ++k) {
            if (mine[k]) {
                owner[k] = load_relaxed(&places.owner[w[k]]);
                begin[k] = places.indptr[w[k]];
                degree[k] = places.indptr[w[k] + 1];
            }
        }
        int before = 0, all = 0, siblings = 0;
#pragma unroll
        for (int k = 0; k < COUNT; ++k) {
            mine[k] = mine[k] && owner[k] == place + j;
            degree[k] = mine[k] ? degree[k] - begin[k] : places.n;  // more than any
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
                                   (its == degree[k] && its != places.n && other * WARP + s < k * WARP + e);
                }
            }
        }
        if (lane() == 0) near.in_warp[turn][warp()] = all;
        __syncthreads();
        int part = lane() < BLOCK / WARP ? near.in_warp[turn][lane()] : 0;
        int start = warp_exclusive_sum(part), sum = __shfl_sync(ALL, start + part, WARP - 1);
        start = total + __shfl_sync(ALL, start, warp()) + before;
        total += sum;
#pragma unroll
        for (int k = 0; k < COUNT; ++k) {
            if (!mine[k]) continue;
            int at = start + rank[k];
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

// Narrow levels by one cluster (TOGETHER) or one block, until the front grows wide or ends, all
// `total` vertices are placed, two levels have `limit` vertices, or `stop` comes.  A block goes on with
// the children that it found, unless some found far more than others.
template <bool TOGETHER, typename I>
__device__ __forceinline__ void go_narrow(
    const Places<I>& places, Near<I>& near, Front<I>& front, I total, I limit, I stop)
{
    constexpr int BLOCKS = TOGETHER ? CLUSTER : 1;
    constexpr I LIMIT = TOGETHER ? NARROW : SOLO;
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
            for (int j = threadIdx.x; j < rows; j += BLOCK) {
                I v = load_relaxed(&places.order[place + j]);
                near.begin[side][j] = places.indptr[v];
                near.length[side][j] = places.degree(v);
            }
            __syncthreads();
        }
        int log = lanes_log(front.longest);
        bool lone = front.longest <= WARP;
        offer_rows(places, near, side, rows, place, log);
        barrier();
        int count = lone ? place_rows<1>(places, near, side, rows, place, log, (I*)nullptr)
                         : place_rows<MANY>(places, near, side, rows, place, log, (I*)nullptr);
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
        I* target = places.order + front.tail + before;
        if (most <= Near<I>::ROOM) {
            for (int i = threadIdx.x; i < count; i += BLOCK) store_relaxed(&target[i], near.vertex[1 - side][i]);
        } else if (lone) {
            place_rows<1>(places, near, side, rows, place, log, target);
        } else {
            place_rows<MANY>(places, near, side, rows, place, log, target);
        }
        front.advance(sum, longest);
        if (sum == 0 || front.tail >= total || front.width >= limit || front.depth >= stop || longest > SHORT ||
            sum > BLOCKS * Near<I>::ROOM)
            return;
        I lanes = sum << lanes_log(longest);
        if (lanes > 2 * LIMIT || (TOGETHER && lanes < SOLO / 4)) return;
        known = most <= Near<I>::ROOM && most <= 2 * sum / BLOCKS + UNEVEN;
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

// What all blocks do in a wide level; every step is done by all threads of all members.
template <typename I>
struct Level {
    const Places<I>& places;
    const Scratch<I>& scratch;
    RollCall& roll;
    unsigned long long* control;
    const Front<I>& front;
    int warp_, warps;

    // Vertices of the front with long rows list pieces of them.  Returns the number of all.
    __device__ Wide list_pieces()
    {
        for (Wide at = (Wide)warp_ * WARP; at < (Wide)front.size(); at += (Wide)warps * WARP) {
            I place = front.head + (I)(at + lane()), parts = 0;
            if (at + lane() < (Wide)front.size()) {
                I length = places.degree(load_relaxed(&places.order[place]));
                if (length > LONG) parts = (length + LONG - 1) / LONG;
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

    // Vertices w (or -1) get the offer of places p; those that had none yet are listed.
    __device__ __forceinline__ void offer(const I (&w)[BATCH], const I (&p)[BATCH], I& longest)
    {
        I seen[BATCH];
        bool fresh[BATCH];
#pragma unroll
        for (int k = 0; k < BATCH; ++k) seen[k] = w[k] >= 0 ? load_relaxed(&places.owner[w[k]]) : I(-1);
#pragma unroll
        for (int k = 0; k < BATCH; ++k) {
            fresh[k] = false;
            if (seen[k] > p[k]) fresh[k] = atomicMin(&places.owner[w[k]], p[k]) == places.none();
        }
        unsigned votes[BATCH];
        int all = 0;
#pragma unroll
        for (int k = 0; k < BATCH; ++k) {
            votes[k] = __ballot_sync(ALL, fresh[k]);
            all += __popc(votes[k]);
        }
        if (all == 0) return;
        Wide slot = lane() == 0 ? roll.add(all) : 0;
        slot = __shfl_sync(ALL, slot, 0);
#pragma unroll
        for (int k = 0; k < BATCH; ++k) {
            if (fresh[k]) {
                scratch.found[slot + __popc(votes[k] & lanes_below())] = w[k];
                I degree = places.degree(w[k]);
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
                I v = load_relaxed(&places.order[first + lane()]);
                begin = places.indptr[v];
                end = places.indptr[v + 1];
                if (end - begin > LONG) end = begin;
            }
            WarpRows<I> rows(begin, end);
            for (I start = 0; start < rows.total; start += WARP * BATCH) {
                I w[BATCH], p[BATCH];
#pragma unroll
                for (int k = 0; k < BATCH; ++k) {
                    I t = start + k * WARP + lane();
                    int row = rows.owner(t);
                    I entry = rows.entry(t, row);
                    w[k] = t < rows.total ? places.indices[entry] : I(-1);
                    p[k] = first + row;
                }
                offer(w, p, longest);
            }
        }
    }

    __device__ void offer_pieces(Wide pieces, I& longest)
    {
        for (Wide at = warp_; at < pieces; at += warps) {
            I place = scratch.piece[2 * at], v = load_relaxed(&places.order[place]);
            I begin = places.indptr[v] + scratch.piece[2 * at + 1] * LONG, end = places.indptr[v + 1];
            I length = end - begin < LONG ? end - begin : I(LONG);
            for (I start = 0; start < length; start += WARP * BATCH) {
                I w[BATCH], p[BATCH];
#pragma unroll
                for (int k = 0; k < BATCH; ++k) {
                    I t = start + k * WARP + lane();
                    w[k] = t < length ? places.indices[begin + t] : I(-1);
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
            I owner = is_child ? places.owner[scratch.found[at + lane()]] : I(-1);
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
        for (I j = threadIdx.x; j < rows; j += BLOCK) sum += count[j];
        sum = block_reduce(sum, I(0), Plus());
        if (threadIdx.x == 0) store_relaxed(&scratch.sums[roll.rank], sum);
        roll.meet();
        sum = 0;
        for (int b = threadIdx.x; b < roll.rank; b += BLOCK) sum += load_relaxed(&scratch.sums[b]);
        block_exclusive_sum(sum, &all);
        I start = all;
        for (I tile = 0; tile < rows; tile += BLOCK) {
            I j = tile + threadIdx.x, mine = j < rows ? count[j] : I(0);
            I before = block_exclusive_sum(mine, &all);
            if (j < rows) {
                scratch.first[front.head + from + j] = start + before;
                if (mine > RANKED) scratch.big[atomicAdd(bigs, 1ull)] = front.head + from + j;
            }
            start += all;
        }
        roll.meet();
    }

    __device__ void gather_children(Wide children, Wide thread, Wide threads)
    {
        for (Wide c = thread; c < children; c += threads) {
            I w = scratch.found[c], owner = places.owner[w];
            scratch.child[scratch.first[owner] + scratch.slot[c]] = w;
        }
    }

    // Each child counts those before it among the children of its owner.
    __device__ void rank_children(Wide children, Wide thread, Wide threads)
    {
        for (Wide c = thread; c < children; c += threads) {
            I w = scratch.child[c], owner = places.owner[w], size = scratch.count[owner];
            if (size > RANKED) continue;
            I first = scratch.first[owner], rank = 0;
            if (size > 1) {
                I degree = places.degree(w);
                for (I k = first; k < first + size; ++k) {
                    I other = scratch.child[k], its = places.degree(other);
                    rank += its < degree || (its == degree && other < w);
                }
            }
            store_relaxed(&places.order[front.tail + first + rank], w);
        }
    }

    // A block to each owner of many; `found` and `slot` are not needed any more.
    __device__ void place_bigs(Wide bigs, unsigned long long* taken, SortSpace<BLOCK>& space)
    {
        __shared__ Wide next;
        while (true) {
            if (threadIdx.x == 0) next = atomicAdd(taken, 1ull);
            __syncthreads();
            Wide mine = next;
            __syncthreads();
            if (mine >= bigs) return;
            I owner = scratch.big[mine], first = scratch.first[owner];
            place_many<BLOCK>(places, owner, scratch.count[owner], scratch.found + first,
                              scratch.slot + first, places.order + front.tail + first, space);
        }
    }
};

template <typename I>
struct Search {
    Places<I> places;
    Scratch<I> scratch;
    RollCall& roll;
    unsigned long long* control;
    Front<I> front;
    Near<I>& near;
    SortSpace<BLOCK>& space;
    int warp_, warps;
    I total, limit;

    __device__ __forceinline__ bool leads() const { return roll.rank == 0 && threadIdx.x == 0; }
    __device__ __forceinline__ bool ended() const
    {
        return front.head == front.tail || front.tail >= total || front.width >= limit;
    }

    __device__ void start(const I* starts, I n_starts)
    {
        Wide threads = (Wide)warps * WARP, thread = (Wide)warp_ * WARP + lane();
        for (Wide v = thread; v < (Wide)places.n; v += threads) {
            places.owner[v] = places.none();
            scratch.count[v] = 0;
        }
        roll.meet();
        for (Wide i = thread; i < (Wide)n_starts; i += threads) {
            I v = starts[i];
            store_relaxed(&places.order[i], v);
            store_relaxed(&places.owner[v], I(-1));
            Wide degree = (Wide)places.degree(v);
            if (load_relaxed(&control[LENGTH]) < degree) raise_to(&control[LENGTH], degree);
        }
        roll.meet();
        front = {0, n_starts, 0, (I)load_relaxed(&control[LENGTH]), n_starts, 0};
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
        Wide threads = (Wide)warps * WARP, thread = (Wide)warp_ * WARP + lane();
        int flip = front.flip;
        Wide pieces = front.longest > LONG ? level.list_pieces() : 0;
        I longest = 0;
        level.offer_short(longest);
        level.offer_pieces(pieces, longest);
        longest = warp_reduce(longest, Most());
        if (lane() == 0 && longest > 0) atomicMax(&control[LONGEST + flip], (Wide)longest);
        Wide children = roll.meet();
        longest = (I)load_relaxed(&control[LONGEST + flip]);
        if (children > 0 && front.size() + (I)children < limit) {
            level.count_children(children);
            if (leads()) {  // free since the level before, and not used before the next
                store_relaxed(&control[LONGEST + 1 - flip], 0ull);
                store_relaxed(&control[BIGS + 1 - flip], 0ull);
                store_relaxed(&control[TAKEN + 1 - flip], 0ull);
            }
            roll.meet();
            level.scan_counts(&control[BIGS + flip]);
            level.gather_children(children, thread, threads);
            roll.meet();
            level.rank_children(children, thread, threads);
            Wide bigs = load_relaxed(&control[BIGS + flip]);
            if (bigs > 0) level.place_bigs(bigs, &control[TAKEN + flip], space);
            roll.meet();
            front.flip = 1 - flip;
        }
        front.advance((I)children, longest);
    }

    __device__ void step(I stop)
    {
        bool near_by = front.longest <= SHORT && front.size() <= NARROW;
        I lanes = near_by ? front.size() << lanes_log(front.longest) : I(NARROW) + 1;
        if (lanes <= SOLO && front.size() <= Near<I>::ROOM)
            narrow<false>(stop);
        else if (lanes <= NARROW && front.size() <= CLUSTER * Near<I>::ROOM)
            narrow<true>(stop);
        else
            wide();
    }
};

// Caller: control 0 at the first launch, its first ROLL_WORDS words at every one; block BLOCK; grid a
// multiple of CLUSTER.  `total` vertices can be reached from the starts.  Gives up when two levels that
// follow one another have `limit` vertices.  Stops after `patience` levels, to be launched again, so
// that the host is heard now and then.
template <typename I>
__global__ void CLUSTERED __launch_bounds__(BLOCK, 1) place_levels(
    I n, const I* indptr, const I* indices, const I* starts, I n_starts, I total, I limit, I patience, I* order,
    I* owner, I* found, I* slot, I* count, I* first, I* child, I* big, I* piece, I* sums,
    unsigned long long* control)
{
    __shared__ Near<I> near;
    __shared__ SortSpace<BLOCK> space;
    RollCall roll;
    if (!roll.sign_in(control)) return;
    Search<I> search{{n, indptr, indices, order, owner}, {found, slot, count, first, child, big, piece, sums},
                     roll, control, {}, near, space, warp() * roll.members + roll.rank,
                     roll.members * (BLOCK / WARP), total, limit};
    Front<I>& front = search.front;
    if (load_relaxed(&control[STAGE]) == STARTING)
        search.start(starts, n_starts);
    else
        front = {(I)load_relaxed(&control[HEAD]), (I)load_relaxed(&control[TAIL]), (I)load_relaxed(&control[DEPTH]),
                 (I)load_relaxed(&control[LENGTH]), (I)load_relaxed(&control[WIDTH]),
                 (int)load_relaxed(&control[FLIP])};
    I stop = n - front.depth > patience ? front.depth + patience : n;
    while (front.depth < stop && !search.ended()) search.step(stop);
    roll.meet();  // everyone has read what is written now
    if (search.leads()) {
        control[HEAD] = front.head;
        control[TAIL] = front.tail;
        control[DEPTH] = front.depth;
        control[LENGTH] = front.longest;
        control[WIDTH] = front.width;
        control[FLIP] = front.flip;
        control[STAGE] = search.ended() ? DONE : RUNNING;
    }
}
