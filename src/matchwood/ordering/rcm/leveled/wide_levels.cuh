// Levels of an order of Cuthill and McKee with many vertices or long rows, by all blocks.  Long rows are
// cut in pieces; the thread whose offer to a vertex is the first lists it.  Count children by owner, scan
// the counts, place children with their owner, rank them among its children.  The children of owners
// with many are sorted, one block per owner.
//
// Where the free vertices have fewer entries than the frontier, they look for their owners instead: each
// reads its whole row.  A neighbour that has its place is in the frontier, else the vertex would not be
// free; the least of those places is what offers come to.
//
// The list is in the order of arrival, and so are children with their owner before they are ranked;
// ranks do not depend on it.  A level of very many entries is left to the host, which has whole launches
// for it (huge_levels.cu).  Between two meetings every word of `order` and of the lists has one
// writer, and none that is read is written, but for owners while they are offered to.
#pragma once
#include "matchwood/edges.cuh"
#include "matchwood/levels.cuh"

// Measured: bench/ordering/rcm_gpu.py, H200.
constexpr int LONG_ROW = 1024;       // entries; longer rows are cut into pieces of this length
constexpr int LEVEL_BATCH = 4;       // entries whose loads a lane has in flight at once
constexpr int RANKED_CHILDREN = 64;  // children of an owner that are ranked by counting
constexpr int MANY_VERTICES = 16;    // one vertex of so many: entries of a larger frontier are counted
constexpr int MANY_ENTRIES = 8;      // one entry of so many: of a larger frontier, free vertices' as well
constexpr int LATE = 4;              // times the vertices still to come: entries of those are counted first
constexpr int SEEKERS = 8;           // vertices of a lane that seek in turn: all atomics on the one counter wait
constexpr int ENTRIES_SOUGHT = 16;   // entries that a free vertex reads alone; then its warp helps

// How a wide level is found.
enum Way { OFFER, SEEK, LEAVE_OFFER, LEAVE_SEEK };

// The place of a vertex of the frontier, which starts at `head`, else none().
template <typename I>
__device__ __forceinline__ I place_in_front(const Places<I>& places, const I* place, I head, I u)
{
    I at = load_relaxed(&place[u]);
    return at >= head ? at : places.none();  // smaller ones only where the pattern is not symmetric
}

// The least place of a neighbour in the frontier, none() without one.  All lanes of the warp call.
template <typename I>
__device__ __forceinline__ I least_place(const Places<I>& places, const I* place, I head, I begin, I end)
{
    I least = places.none(), alone = end - begin > ENTRIES_SOUGHT ? begin + ENTRIES_SOUGHT : end;
    for (I at = begin; at < alone; at += LEVEL_BATCH) {
        I u[LEVEL_BATCH];
#pragma unroll
        for (int k = 0; k < LEVEL_BATCH; ++k) u[k] = at + k < alone ? places.indices[at + k] : I(-1);
#pragma unroll
        for (int k = 0; k < LEVEL_BATCH; ++k)
            if (u[k] >= 0) least = Least()(least, place_in_front(places, place, head, u[k]));
    }
    for (unsigned left = __ballot_sync(ALL, alone < end); left != 0; left &= left - 1) {
        int owner = __ffs(left) - 1;
        I from = __shfl_sync(ALL, alone, owner), to = __shfl_sync(ALL, end, owner), found = places.none();
        for (I at = from + lane(); at < to; at += WARP)
            found = Least()(found, place_in_front(places, place, head, places.indices[at]));
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
    const Places<I>& places;
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
                I length = places.degree(load_relaxed(&places.order[place]));
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
            return places.degree(load_relaxed(&places.order[front.head + i]));
        });
    }
    __device__ Wide free_entries()
    {
        return count_entries(places.n, [&](Wide v) {
            I degree = places.degree((I)v);
            return load_relaxed(&places.owner[v]) == places.none() ? degree : I(0);
        });
    }

    // The frontier offers, or, where they have fewer entries, free vertices seek.  It is left to the host
    // where even these are more than `huge`, or a row is longer than `huge_row`: one block would sort
    // the children of its vertex.  `sought` is what free vertices have, if they are to seek.  Meets.
    __device__ Way way(I total, Wide huge, Wide huge_row, Wide& sought)
    {
        Wide size = front.size();
        bool many = size > (Wide)places.n / MANY_VERTICES;
        if (front.longest <= LONG_ROW && !many) return OFFER;
        bool leave = (Wide)front.longest > huge_row;
        // A large frontier at the end: its vertices have an entry at least, and are all over the graph.
        bool late = many && size > (Wide)(total - front.tail) * LATE;
        Wide open = late ? free_entries() : 0;
        Wide arcs = late && open < size ? size : front_entries();
        if (!late) {
            if (arcs <= (Wide)places.indptr[places.n] / MANY_ENTRIES && arcs <= huge)
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
            store_relaxed(&scratch.place[load_relaxed(&places.order[at])], at);
        }
        roll.meet();
        constexpr int TURN = SEEKERS * WARP;
        for (Wide at = (Wide)warp_ * TURN + lane(); at < (Wide)places.n + lane(); at += (Wide)warps * TURN) {
            I least[SEEKERS];  // the owner at first
            unsigned votes[SEEKERS];
            int all = 0;
#pragma unroll
            for (int k = 0; k < SEEKERS; ++k)
                least[k] = at + k * WARP < (Wide)places.n ? load_relaxed(&places.owner[at + k * WARP]) : I(-1);
#pragma unroll
            for (int k = 0; k < SEEKERS; ++k) {
                I begin = 0, end = 0;
                if (least[k] == places.none()) {
                    begin = places.indptr[at + k * WARP];
                    end = places.indptr[at + k * WARP + 1];
                }
                least[k] = least_place(places, scratch.place, front.head, begin, end);
                votes[k] = __ballot_sync(ALL, least[k] < places.none());
                all += __popc(votes[k]);
            }
            if (all == 0) continue;
            Wide slot = lane() == 0 ? roll.add(all) : 0;
            slot = __shfl_sync(ALL, slot, 0);
#pragma unroll
            for (int k = 0; k < SEEKERS; ++k) {
                if (least[k] < places.none()) {
                    I v = (I)(at + k * WARP);
                    store_relaxed(&places.owner[v], least[k]);
                    scratch.found[slot + __popc(votes[k] & lanes_below())] = v;
                    longest = Most()(longest, places.degree(v));
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
        for (int k = 0; k < LEVEL_BATCH; ++k) seen[k] = w[k] >= 0 ? load_relaxed(&places.owner[w[k]]) : I(-1);
#pragma unroll
        for (int k = 0; k < LEVEL_BATCH; ++k) {
            fresh[k] = false;
            if (seen[k] > p[k]) fresh[k] = atomicMin(&places.owner[w[k]], p[k]) == places.none();
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
                if (end - begin > LONG_ROW) end = begin;
            }
            auto read = [&](I at) { return places.indices[at]; };
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
            I place = scratch.piece[2 * at], v = load_relaxed(&places.order[place]);
            I begin = places.indptr[v] + scratch.piece[2 * at + 1] * LONG_ROW, end = places.indptr[v + 1];
            I length = end - begin < LONG_ROW ? end - begin : I(LONG_ROW);
            for (I start = 0; start < length; start += WARP * LEVEL_BATCH) {
                I w[LEVEL_BATCH], p[LEVEL_BATCH];
#pragma unroll
                for (int k = 0; k < LEVEL_BATCH; ++k) {
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
            I w = scratch.found[c], owner = places.owner[w];
            scratch.child[scratch.first[owner] + scratch.slot[c]] = w;
        }
    }

    // Each child counts those before it among the children of its owner.
    __device__ void rank_children(Wide children, Wide thread, Wide threads)
    {
        for (Wide c = thread; c < children; c += threads) {
            I w = scratch.child[c], owner = places.owner[w], size = scratch.count[owner];
            if (size > RANKED_CHILDREN) continue;
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
            place_many<LEVEL_BLOCK>(places, owner, scratch.count[owner], scratch.found + first,
                              scratch.slot + first, places.order + front.tail + first, space);
        }
    }
};
