// Refining a partition on the GPU.  Host side: gpu.py; the rule: reference.py.
//
// refine_level is a level, from the first look to the best state: one cooperative kernel, with the phases of
// cpu.py and a barrier of the grid after each.  All blocks follow the same way through the phases: they decide
// by numbers that each reads after a barrier.  Vertices that must do something are listed, so that warps share
// them evenly; rows of more than HUB_ROW entries are left to blocks.
//
//   want         every vertex: whether it would like to move
//   afterburn    those that would: whether they move, seen that better ones move too
//   apply        movers: the change of the cut, who must look again; labels and weights of blocks change
//   look         movers and their neighbours: weights to the blocks around them (matchwood/tally.cuh)
//   gather       rebalancing: vertices of heavy blocks, and where they would go
//   select       which of them go, in their order: they are sorted, then a warp decides one after the other
//
// Races: a phase writes only what is of the vertex at hand, adds integers, which gives the same sum in any
// order, or claims a vertex by an atomic exchange.  Lists are in any order, and nothing depends on it.  apply
// writes labels of movers while others ask for them: these read `before` and `want` instead.
#include "matchwood/walks.cuh"

constexpr int TILE = SHARED_SLOTS;   // vertices that a block sorts in shared memory
[[maybe_unused]] constexpr int BLOCKS_PER_MULTIPROCESSOR = 3;

// A level and its state; what is not said there is in cpu.py.
template <typename I, typename C>
struct Refining : Walks<I, C> {
    using Base = Walks<I, C>;
    using Base::barrier, Base::counters, Base::for_all, Base::k, Base::n, Base::narrow, Base::rows, Base::sum_rows,
        Base::tally_rows, Base::wide;
    const long long* weights;
    const unsigned char* fixed;  // null: none
    int *labels, *kept, *before, *best, *want, *locked, *moved, *active;
    long long *inside, *gain;
    I *again, *listed, *movers;  // movers: also the sorted candidates
    Key *key, *pair;  // pair: the blocks that a sorted candidate leaves and joins
    long long* load;  // what it weighs
    I* candidate;
    long long *block_weight, *supply, *left;
    long long* histogram;  // BUCKETS for each block: the weight of its candidates; null where there are many blocks
    int* enough;           // of each block: the last bucket that is sorted
    const long long *limit, *ceiling;
    int step;

    __device__ __forceinline__ bool is_heavy(int b) const { return block_weight[b] > limit[b]; }
    __device__ __forceinline__ bool fits(int b, long long w) const { return block_weight[b] + w <= ceiling[b]; }
    __device__ __forceinline__ bool is_fixed(I v) const { return fixed != nullptr && fixed[v] != 0; }

    // What v is tied to: inside, gain and best.
    struct Look {
        const Refining& all;
        struct Row {
            I own;
        };

        __device__ __forceinline__ I label(I u) const { return (I)all.labels[u]; }
        __device__ __forceinline__ Row begin(I v) const { return Row{(I)all.labels[v]}; }
        __device__ __forceinline__ TalliedLabel<I> candidate(const Row& row, I v, I c, long long weight) const
        {
            if (c == row.own) return no_label<I>();
            return TalliedLabel<I>{(double)weight, mix64((unsigned long long)v * GOLDEN + (unsigned long long)c), c, weight};
        }
        __device__ __forceinline__ void settle(const Row&, I v, const TalliedLabel<I>& found, long long weight) const
        {
            all.inside[v] = weight;
            all.best[v] = (int)found.label;
            all.gain[v] = (found.label < 0 ? 0 : found.weight) - weight;
            all.active[v] = 0;
        }
    };

    // The best other block with room for v, which is in a heavy one.
    struct Room {
        const Refining& all;
        unsigned long long* count;
        struct Row {
            I own;
            long long weight;
        };

        __device__ __forceinline__ I label(I u) const { return (I)all.labels[u]; }
        __device__ __forceinline__ Row begin(I v) const { return Row{(I)all.labels[v], all.weights[v]}; }
        __device__ __forceinline__ TalliedLabel<I> candidate(const Row& row, I v, I c, long long weight) const
        {
            if (c == row.own || !all.fits((int)c, row.weight)) return no_label<I>();
            return TalliedLabel<I>{(double)weight, mix64((unsigned long long)v * GOLDEN + (unsigned long long)c), c, weight};
        }
        __device__ __forceinline__ void settle(const Row& row, I v, const TalliedLabel<I>& found, long long) const
        {
            all.want[v] = (int)found.label;
            if (found.label < 0) return;
            long long place = (long long)take(count, 1ull);
            all.candidate[place] = v;
            all.put_candidate(place, (int)row.own, row.weight, key_of(found.weight - all.inside[v], row.weight, false));
            add_signed(&all.supply[row.own], row.weight);
        }
    };

    // ---- phases

    // v is one of those that move in this step, to want[v].
    __device__ __forceinline__ void will_move(I v) const
    {
        moved[v] = step;
        before[v] = labels[v];
    }

    // All of `items` that move in this step do so, and they and their neighbours look, or all vertices: what the
    // cut loses by it.
    __device__ __forceinline__ long long apply(const I* items, unsigned long long count, bool all_look)
    {
        __shared__ long long lost;
        unsigned long long *delta = counters.fresh(), *stirred = counters.fresh();
        long long mine = 0;
        auto visit = [&](I v, long long e, bool is_one) {
            I u = is_one ? rows.indices[e] : I(0);
            bool first = is_one && load_relaxed(&active[u]) == 0 && atomicExch(&active[u], 1) == 0;
            append(again, stirred, u, first);
            int own = before[v], target = want[v];
            long long part = 0;
            if (is_one && moved[u] == step)  // its other end counts this edge as well
                part = (before[u] != own) - (want[u] != target);
            else if (is_one)
                part = 2 * ((labels[u] != own) - (labels[u] != target));
            return part == 0 ? 0ll : part * (long long)rows.weight(e);
        };
        auto settle = [&](I v, long long sum) {
            if (atomicExch(&active[v], 1) == 0) again[take(stirred, 1ull)] = v;
            mine += sum;
            add_signed(&block_weight[before[v]], -weights[v]);
            add_signed(&block_weight[want[v]], weights[v]);
            labels[v] = want[v];
        };
        sum_rows(items, count, [&](I v) { return moved[v] == step; }, visit, settle);
        mine = block_reduce(mine, 0ll, Plus());
        if (threadIdx.x == 0 && mine != 0) add_signed(reinterpret_cast<long long*>(delta), mine);
        ++step;
        barrier.wait();
        if (threadIdx.x == 0) lost = (long long)load_relaxed(delta) / 2;
        tally_rows(all_look ? nullptr : again, all_look ? (unsigned long long)n : load_relaxed(stirred), Look{*this});
        barrier.wait();
        return lost;
    }

    // The weight above the limits, and how many blocks are too heavy.  All threads of a block get it.
    __device__ __forceinline__ long long excess(int* heavy = nullptr) const
    {
        __shared__ long long sums[2];
        long long over = 0, blocks = 0;
        for (int b = threadIdx.x; b < k; b += BLOCK) {
            if (!is_heavy(b)) continue;
            over += block_weight[b] - limit[b];
            ++blocks;
        }
        over = block_reduce(over, 0ll, Plus());
        blocks = block_reduce(blocks, 0ll, Plus());
        if (threadIdx.x == 0) sums[0] = over, sums[1] = blocks;
        __syncthreads();
        over = sums[0];
        if (heavy != nullptr) *heavy = (int)sums[1];
        __syncthreads();
        return over;
    }

    // Who moves, and where to: the length of the list that has them all, 0 where none moves.
    __device__ __forceinline__ unsigned long long jet(int quarters, int iteration, bool keep)
    {
        unsigned long long *wishes = counters.fresh(), *any = counters.fresh();
        for_all(best, [&](I v, bool is_one, int goal) {
            if (is_one) {
                if (keep) kept[v] = labels[v];
                if (goal != NONE) {
                    long long g = gain[v];
                    bool may = locked[v] != iteration - 1 && !is_fixed(v);
                    if (!may || !(g >= 0 || -g < inside[v] * quarters / 4)) goal = NONE;
                }
                want[v] = goal;
            }
            append(listed, wishes, v, goal != NONE);
        });
        barrier.wait();
        unsigned long long count = load_relaxed(wishes);
        bool moves = false;
        auto visit = [&](I v, long long e, bool is_one) {
            if (!is_one) return 0ll;
            I u = rows.indices[e];
            int label = labels[u], goal = want[u], target = want[v];
            if (goal != NONE && (gain[u] > gain[v] || (gain[u] == gain[v] && u < v))) label = goal;
            if (label == target) return (long long)rows.weight(e);
            return label == labels[v] ? -(long long)rows.weight(e) : 0ll;
        };
        auto settle = [&](I v, long long sum) {
            if (sum < 0) return;
            locked[v] = iteration;
            will_move(v);
            moves = true;
        };
        sum_rows(listed, count, [](I) { return true; }, visit, settle);
        if (moves) store_relaxed(any, 1ull);
        barrier.wait();
        return load_relaxed(any) != 0 ? count : 0;
    }

    // A round of rebalancing: how many of `movers` move.
    __device__ __forceinline__ unsigned long long rebalance(int turn, int heavy)
    {
        unsigned long long *count = counters.fresh(), *hard = counters.fresh(), *taken = counters.fresh();
        for_all(labels, [&](I v, bool is_one, int own) {
            bool is_hard = false, is_easy = false;
            long long w = 0;
            if (is_one && is_heavy(own) && !is_fixed(v)) {
                int target = best[v];
                w = weights[v];
                is_easy = target != NONE && w != 0 && fits(target, w);
                is_hard = target != NONE && w != 0 && !is_easy;
                want[v] = is_easy ? target : NONE;
            }
            append(listed, hard, v, is_hard);
            long long place = append(candidate, count, v, is_easy);
            if (!is_easy) return;
            put_candidate(place, own, w, key_of(gain[v], w, false));
            add_signed(&supply[own], w);
        });
        barrier.wait();
        if (load_relaxed(hard) != 0) {
            tally_rows(listed, load_relaxed(hard), Room{*this, count});
            barrier.wait();
        }
        int is_short = 0;
        for (int b = threadIdx.x; b < k; b += BLOCK) is_short |= supply[b] < block_weight[b] - limit[b];
        if (__syncthreads_or(is_short)) {
            for_all(labels, [&](I v, bool is_one, int own) {
                int goal = NONE;
                long long w = is_one ? weights[v] : 0;
                if (w != 0 && supply[own] < block_weight[own] - limit[own] && !is_fixed(v) && want[v] == NONE)
                    goal = any_with_room(v, own, w, turn);
                long long place = append(candidate, count, v, goal != NONE);
                if (goal == NONE) return;
                want[v] = goal;
                put_candidate(place, own, w, key_of(-inside[v], w, true));
            });
            barrier.wait();
        }
        long long size = (long long)load_relaxed(count), first = 0, few = size;
        if (histogram != nullptr && size > WORTH_FILTER) {
            few = filter(size);
            first = size;
        }
        sort_candidates(first, few);
        if (blockIdx.x == 0) select(few, heavy, first > 0, taken);
        barrier.wait();
        if (load_relaxed(taken) == TOO_FEW) {
            sort_candidates(0, size);
            if (blockIdx.x == 0) select(size, heavy, false, taken);
            barrier.wait();
        }
        for (long long b = global_thread(); b < k; b += all_threads()) supply[b] = 0;
        if (histogram != nullptr)
            for (long long i = global_thread(); i < (long long)k * BUCKETS; i += all_threads()) histogram[i] = 0;
        return load_relaxed(taken);
    }

    __device__ __forceinline__ void put_candidate(long long place, int own, long long w, Key mine) const
    {
        key[place] = mine;
        if (histogram != nullptr) add_signed(&histogram[(long long)own * BUCKETS + bucket_of(mine)], w);
    }

    // Copies those of the candidates that may be needed behind all of them: how many.
    __device__ __forceinline__ long long filter(long long size)
    {
        unsigned long long* few = counters.fresh();
        for (long long b = global_thread() / WARP; b < k; b += all_threads() / WARP) {
            if (!is_heavy((int)b)) continue;
            long long wanted = PLENTY * (block_weight[b] - limit[b]), before = 0;
            int last = BUCKETS;
            for (int first = 0; first < BUCKETS && last == BUCKETS; first += WARP) {
                long long w = histogram[b * BUCKETS + first + lane()], sum = warp_exclusive_sum(w) + w;
                unsigned reached = __ballot_sync(ALL, before + sum >= wanted);
                if (reached != 0) last = first + __ffs(reached) - 1;
                before += __shfl_sync(ALL, sum, WARP - 1);
            }
            if (lane() == 0) enough[b] = last;
        }
        barrier.wait();
        for (long long i = global_thread(); i - lane() < size; i += all_threads()) {
            I v = i < size ? candidate[i] : I(0);
            Key mine = i < size ? key[i] : Key(0);
            bool stays = i < size && bucket_of(mine) <= enough[labels[v]];
            long long place = append(candidate + size, few, v, stays);
            if (stays) key[size + place] = mine;
        }
        barrier.wait();
        return (long long)load_relaxed(few);
    }

    // The first block with room for v, from a hashed one on, or NONE.
    __device__ __forceinline__ int any_with_room(I v, int own, long long w, int turn) const
    {
        int first = (int)(hash2((long long)v, turn, 0) % (unsigned long long)k);
        for (int i = 0; i < k; ++i) {
            int c = first + i < k ? first + i : first + i - k;
            if (c != own && fits(c, w)) return c;
        }
        return NONE;
    }

    // `size` candidates, those from the first-th on, in their order into `movers`: tiles are sorted, then each looks
    // for its place in the others.
    __device__ __forceinline__ void sort_candidates(long long first, long long size)
    {
        Key* keys = key + first;
        I* vertices = candidate + first;
        for (long long tile = blockIdx.x; tile * TILE < size; tile += gridDim.x) {
            long long from = tile * TILE, many = size - from < TILE ? size - from : TILE;
            int padded = WARP;
            while (padded < many) padded *= 2;
            for (int t = threadIdx.x; t < padded; t += BLOCK) {
                wide[t] = t < many ? keys[from + t] : ~Key(0);
                narrow[t] = t < many ? vertices[from + t] : I(0);
            }
            sort_tile(wide, narrow, padded);
            for (int t = threadIdx.x; t < many; t += BLOCK) {
                if (size <= TILE)
                    put_sorted(t, narrow[t]);
                else
                    keys[from + t] = wide[t], vertices[from + t] = narrow[t];
            }
            __syncthreads();
        }
        if (size <= TILE) return;
        barrier.wait();
        for (long long i = global_thread(); i < size; i += all_threads()) {
            put_sorted(place_in_tiles<TILE>(keys, vertices, size, i), vertices[i]);
        }
        barrier.wait();
    }

    __device__ __forceinline__ void put_sorted(long long place, I v) const
    {
        movers[place] = v;
        pair[place] = (Key)labels[v] << 32 | (unsigned)want[v];
        load[place] = weights[v];
    }

    // Candidates in their order leave blocks that are too heavy, until none is.  Of a heavy block `left` has what
    // must leave it, of others the room, and -1 where one had none for a candidate: they take no more.  A warp has
    // 32 candidates at a time, and goes from one that is still wanted to the next.  Of `movers` those that move
    // stay, at its beginning.  `filtered`: where a block that has more candidates stays too heavy, that was too
    // few.  The first block calls.
    __device__ __forceinline__ void select(long long size, int heavy, bool filtered, unsigned long long* taken)
    {
        __shared__ long long going_all;
        long long* room = k <= TILE ? reinterpret_cast<long long*>(wide) : left;
        for (int b = threadIdx.x; b < k; b += BLOCK)
            room[b] = is_heavy(b) ? block_weight[b] - limit[b] : max(ceiling[b] - block_weight[b], 0ll);
        __syncthreads();
        if (warp() == 0) {
            long long done = 0, w_next = 0;
            Key next = 0;
            if (lane() < size) next = pair[lane()], w_next = load[lane()];
            for (long long first = 0; first < size && heavy > 0; first += WARP) {
                bool is_open = first + lane() < size, goes = false;
                int own = (int)(next >> 32), target = is_open ? (int)(unsigned)next : own;
                long long w = w_next;
                if (first + WARP + lane() < size) next = pair[first + WARP + lane()], w_next = load[first + WARP + lane()];
                while (heavy > 0) {
                    long long need = room[own], space = room[target];
                    is_open = is_open && need > 0 && space >= 0;
                    unsigned open = __ballot_sync(ALL, is_open);
                    if (open == 0) break;
                    bool ends = false;
                    if (lane() == __ffs(open) - 1) {
                        is_open = false;
                        goes = w <= space;
                        room[target] = goes ? space - w : -1;
                        if (goes) room[own] = need - w;
                        ends = goes && need <= w;
                    }
                    heavy -= __any_sync(ALL, ends);
                    __syncwarp();
                }
                unsigned going = __ballot_sync(ALL, goes);
                I v = goes ? movers[first + lane()] : I(0);
                __syncwarp();
                if (goes) movers[done + __popc(going & lanes_below())] = v;
                done += __popc(going);
            }
            if (lane() == 0) going_all = done;
        }
        __syncthreads();
        bool is_short = false;
        for (int b = threadIdx.x; filtered && b < k; b += BLOCK)
            is_short |= is_heavy(b) && enough[b] < BUCKETS && room[b] > 0;
        if (__syncthreads_or(is_short)) {
            if (threadIdx.x == 0) store_relaxed(taken, TOO_FEW);
            return;
        }
        for (long long i = threadIdx.x; i < going_all; i += BLOCK) will_move(movers[i]);
        if (threadIdx.x == 0) store_relaxed(taken, (unsigned long long)going_all);
    }

    // Vertices move back to the best state: how many.
    __device__ __forceinline__ unsigned long long back()
    {
        unsigned long long* count = counters.fresh();
        for_all(labels, [&](I v, bool is_one, int label) {
            bool differs = is_one && label != kept[v];
            if (differs) {
                want[v] = kept[v];
                will_move(v);
            }
            append(movers, count, v, differs);
        });
        barrier.wait();
        return load_relaxed(count);
    }

    // From the labels, of that cut, to the best state: excess, cut, iterations.  What moves vertices, and `apply`,
    // stand here once: they are long.
    __device__ __forceinline__ void run(const int* quarters, int temperatures, int patience, int rounds,
                                        long long* score)
    {
        enum { START, JET, REBALANCE, BACK } next = START;
        long long cut = score[1], over = 0, best_cut = cut, best_over = 0, first_cut = 0, first_over = 0;
        int iteration = 0, phase = 0, idle = 0, turn = 0, heavy = 0;
        bool found = false, keep = true, moves = false;  // a better state; the labels are the best ones
        while (true) {
            unsigned long long count = 0;
            if (next == JET) {
                count = jet(quarters[phase], iteration, keep);
                moves = count > 0;
                keep = false;
            } else if (next == REBALANCE) {
                count = rebalance(turn, heavy);
            } else if (next == BACK) {
                count = back();
            }
            if (count > 0 || next == START) cut -= apply(next == JET ? listed : movers, count, next == START);
            if (next == JET || (next == REBALANCE && count > 0)) {
                turn = next == JET ? 0 : turn + 1;
                over = excess(&heavy);
                if (heavy > 0 && turn < rounds) {
                    next = REBALANCE;
                    continue;
                }
            }
            if (next == JET || next == REBALANCE) {  // an iteration has ended
                ++iteration;
                ++idle;
                if (over < best_over || (over == best_over && cut < best_cut)) {
                    if (over < best_over || 1000 * (best_cut - cut) > best_cut) idle = 0;
                    best_cut = cut, best_over = over;
                    found = keep = true;
                }
                if (moves && idle < (found ? patience : (patience + 1) / 2)) {
                    next = JET;
                    continue;
                }
                if (!keep) {
                    next = BACK;
                    continue;
                }
            }
            if (next == START) {
                best_over = over = excess();
            } else {  // a temperature has ended
                bool same = first_over == best_over && first_cut == best_cut;
                phase = same && phase + 1 < temperatures ? temperatures - 1 : phase + 1;
                if (phase >= temperatures) break;
            }
            idle = 0;
            first_over = best_over, first_cut = best_cut;
            next = JET;
        }
        if (global_thread() == 0) score[0] = best_over, score[1] = cut, score[2] = iteration;
    }
};

template <typename I, typename C>
__global__ void __launch_bounds__(BLOCK, BLOCKS_PER_MULTIPROCESSOR)
    refine_level(I n, const I* indptr, const I* indices, const long long* data, long long longest, int k,
                 const long long* weights, const unsigned char* fixed, int* labels, int* numbers, long long* sums,
                 I* lists, unsigned long long* key, long long* block_weight, long long* of_blocks, const long long* limit,
                 const long long* ceiling, long long* histogram, int* enough, I* spare_key, C* spare_weight, long long spare_slots, int spares,
                 const int* quarters, int temperatures, int patience, int rounds, unsigned int* gate,
                 unsigned long long* words, long long* score)
{
    __shared__ Key wide[TILE];
    __shared__ I narrow[TILE];
    long long each = n;
    Walks<I, C> walks{n, {indptr, indices, data}, longest, k, lists + 2 * each, spare_key, spare_weight, spare_slots,
                      spares, GridBarrier(gate), {words, 0}, wide, narrow};
    Refining<I, C> level{walks, weights, fixed,
                         labels, numbers, numbers + each, numbers + 2 * each, numbers + 3 * each, numbers + 4 * each,
                         numbers + 5 * each, numbers + 6 * each, sums, sums + each, lists, lists + each, lists + 3 * each,
                         key, key + 2 * each, reinterpret_cast<long long*>(key) + 3 * each, lists + 4 * each,
                         block_weight, of_blocks, of_blocks + k, histogram, enough, limit, ceiling, 0};
    level.run(quarters, temperatures, patience, rounds, score);
}
