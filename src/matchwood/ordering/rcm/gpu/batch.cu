// Cuthill-McKee in speculative batches ("batch").  Host side: batch.py; the rule and the papers:
// __init__.py of the folder above; what `order` and `owner` hold: queue.cuh.
//
// A batch is a window of `order`: some vertices, parents, whose children are to be placed.  Blocks take
// batches in order, offer the parents' places to their neighbours, and sort those that kept them
// before it is known whether all batches before have offered.  Owners are places, not numbers of
// batches, so one minimum decides between batches and between the parents of one.  Batches signal
// to each other:
//   discovered   this batch has offered; or, all up to it have: then what kept a place of the next
//                one is its child.  A warp looks back at the 32 batches before, so this goes 32 at a
//                time, and not from one to the next.
//   counted      where the children go, which number the next new batch gets, and the overhang:
//                children before these that are in no batch yet, because they are few.  From one
//                to the next, as soon as it is known, often before the sort.
//   completed    the overhang is written, so a batch may be made of it
//
// No deadlock, whatever blocks are running: a block that takes number b waits only for signals of
// batches before b and for b to be made, which is done by a batch before b; numbers are taken in order,
// so the batch of the lowest unfinished number is held by a running block and never waits for one
// that is not.  When the last vertex has its place, or no children are left, OVER is set, and blocks
// that wait leave: their batches have no children.  A block with children waits only for `completed`,
// after the children are written.
//
// Batches are kept in a ring buffer.  A signal carries the number of the batch, or how often the ring
// has wrapped round, so the ring needs no clearing; batch.py shows why it is large enough.
// Batches get numbers before it is known where they end, so some at the end of those made together
// may stay empty; `counted` leads past them, and the look back jumps over them.
//
// Races.  owner: queue.cuh; its readers take what they read for final only after `discovered`.
// That, `completed` and the publication of a batch are stored behind a barrier of the block and a
// fence, and read before a fence and a barrier: release and acquire, so what the sender did is
// visible to all threads of the receiver.  `counted` is three words, each with its tag, and guards
// nothing else, so relaxed accesses do.  An entry of the ring is written again only when its last
// reader has gone on: the writer's number depends on the reader's signal.  The holder of an empty
// batch may read it later; it then finds a larger number, and does nothing.
#include "matchwood/batch_children.cuh"

// The ring

// Measured: bench/ordering/rcm_gpu.py, H200.
constexpr int SLEEP_NANOSECONDS = 20;        // nanoseconds between two reads of a signal, at first,
constexpr int MOST_SLEEP_NANOSECONDS = 160;  // and at most

// Two bits below number + 1, in `discovered`.
constexpr unsigned int OFFERED = 1, VOID = 2, FULL = 3;
// 10 bits of carried vertices, 12 of their entries, 12 of the longest row.
constexpr int CARRIED_BITS = 10, VALUE_BITS = 12;
constexpr Wide CONTENT = (1ull << 40) - 1;

// The ring: `mask` + 1 words of every kind.
template <typename I>
struct Ring {
    unsigned int mask;
    int log;
    unsigned int *published, *discovered, *completed;  // number + 1; discovered: see below
    unsigned int *next;                                // where `counted` leads
    unsigned int *skip;                                // of an empty batch: the first of those made with it
    Wide *number, *carried, *out;                      // counted
    I *begin, *end;

    __device__ __forceinline__ Ring(unsigned int size, unsigned int* words, Wide* wide, I* places)
        : mask(size - 1), log(31 - __clz((int)size))
    {
        published = words;
        discovered = words + size;
        completed = words + 2 * (Wide)size;
        next = words + 3 * (Wide)size;
        skip = words + 4 * (Wide)size;
        number = wide;
        carried = wide + size;
        out = wide + 2 * (Wide)size;
        begin = places;
        end = places + size;
    }

    __device__ __forceinline__ unsigned int at(unsigned int b) const { return b & mask; }
    // 24 bits above 40 of content: how often the ring has wrapped round.
    __device__ __forceinline__ Wide tag(unsigned int b) const { return (Wide)((b >> log) + 1 & 0xffffff) << 40; }

    // Signal that batch b has offered, or that all up to it have.  Caller: one warp, after a fence.
    __device__ __forceinline__ void tell(unsigned int b, unsigned int state) const
    {
        if (lane() == 0) store_relaxed(&discovered[at(b)], b + 1 << 2 | state);
    }

    // Have all batches before b offered?  `wait`: until they have, or *over is set.  All lanes of one
    // warp call.
    __device__ bool look_back(unsigned int b, bool wait, const Wide* over) const
    {
        unsigned int from = b, ns = SLEEP_NANOSECONDS;  // from there to b all have
        while (true) {
            unsigned int q = from - 1 - lane(), word = 0;
            bool none = from <= (unsigned int)lane();
            if (!none) word = load_relaxed(&discovered[at(q)]);
            unsigned int state = none ? FULL : word >> 2 == q + 1 ? word & 3 : 0;
            unsigned full = __ballot_sync(ALL, state == FULL), open = __ballot_sync(ALL, state == 0);
            unsigned empty = __ballot_sync(ALL, state == VOID);
            int first = full != 0 ? __ffs(full) - 1 : WARP, gap = open != 0 ? __ffs(open) - 1 : WARP;
            int hole = empty != 0 ? __ffs(empty) - 1 : WARP;
            if (first < gap && first < hole) {
                fence();
                return true;
            }
            if (hole < gap) {
                unsigned int start = hole == lane() ? load_relaxed(&skip[at(q)]) : 0;
                from = __shfl_sync(ALL, start, hole);
                continue;
            }
            from -= gap;
            if (gap == WARP) continue;
            if (!wait || __any_sync(ALL, load_relaxed(over) != 0)) return false;
            __nanosleep(ns);
            if (ns < MOST_SLEEP_NANOSECONDS) ns *= 2;
        }
    }
};

// Words of `control`.
constexpr int TICKET = 0, OVER = 1, MADE = 2, COUNTERS = 3;
// Counters follow, then cycles by stage.
constexpr int DEQUEUED = 0, EXECUTED = 1, EMPTY = 2, REDISCOVERIES = 3, REMOVED = 4, STAGES = 5;
constexpr int DISCOVER = 0, SORT = 1, REDISCOVER = 2, SIGNAL = 3, OUTPUT = 4, STALL = 5, ALL_STAGES = 6;

// Clocks of thread 0.
struct Clock {
    Wide* cycles;
    long long since;
    long long spent[ALL_STAGES];

    __device__ __forceinline__ explicit Clock(Wide* words) : cycles(words), since(0), spent{}
    {
        if (cycles != nullptr) since = clock64();
    }
    __device__ __forceinline__ void lap(int stage)
    {
        if (cycles == nullptr) return;
        long long now = clock64();
        spent[stage] += now - since;
        since = now;
    }
    __device__ __forceinline__ void report()
    {
        if (cycles == nullptr) return;
        for (int k = 0; k < ALL_STAGES; ++k) atomicAdd(&cycles[k], (Wide)spent[k]);
    }
};

// The worker

constexpr int FORWARD = 0, MAKE = 1, LAST = 2;  // what becomes of the children

template <typename I>
struct Worker : Children<I> {
    using Mine = Shared<I>;
    using Children<I>::queue;
    using Children<I>::s;

    Ring<I> ring;
    Wide* control;
    I* spare;         // 2 n
    I total;          // vertices to place
    unsigned int delay;  // seed of random delays between stages; 0: none
    Clock clock;

    __device__ __forceinline__ bool is_over() const { return load_relaxed(&control[OVER]) != 0; }
    __device__ __forceinline__ unsigned int at(unsigned int b) const { return ring.at(b); }

    // Thread 0, for tests: wait in one of four cases, for a time that depends on batch, stage and seed.
    __device__ void delay_at_random(unsigned int stage) const
    {
        if (delay == 0) return;
        unsigned int x = (s.batch * 8 + stage) * 2654435761u ^ delay * 2246822519u;
        x = (x ^ x >> 15) * 2246822519u;
        x ^= x >> 13;
        if ((x & 3) != 0) return;
        long long until = clock64() + (x >> 8 & 0x3fff);
        while (clock64() < until) __nanosleep(40);
    }

    // Thread 0: wait for a word of this batch.  False: all is over.
    __device__ bool await(const unsigned int* word)
    {
        unsigned int ns = SLEEP_NANOSECONDS;
        while (load_acquire(word) != s.batch + 1) {
            if (is_over()) return false;
            __nanosleep(ns);
            if (ns < MOST_SLEEP_NANOSECONDS) ns *= 2;
        }
        return true;
    }

    // Thread 0: take the next number and wait until there is such a batch.
    __device__ void take_batch()
    {
        unsigned int ns = SLEEP_NANOSECONDS;
        s.over = is_over();
        if (s.over) return;
        s.batch = (unsigned int)atomicAdd(&control[TICKET], 1ull);
        unsigned int seen = 0, here = at(s.batch);
        while ((int)((seen = load_acquire(&ring.published[here])) - (s.batch + 1)) < 0) {
            if (is_over()) {
                s.over = true;
                return;
            }
            __nanosleep(ns);
            if (ns < MOST_SLEEP_NANOSECONDS) ns *= 2;
        }
        s.over = false;
        s.begin = load_relaxed(&ring.begin[here]);
        s.end = load_relaxed(&ring.end[here]);
        s.next = load_relaxed(&ring.next[here]);
        s.empty = seen != s.batch + 1 || s.begin == s.end;
        s.discovered = s.counted = s.far = false;
        s.small = 0;
        s.large = s.most = 0;
        s.longest = 0;
    }

    // Thread 0: is it known where the children go?  If so, read it.
    __device__ bool read_counted(bool wait)
    {
        unsigned int here = at(s.batch), ns = SLEEP_NANOSECONDS;
        Wide tag = ring.tag(s.batch), number, carried, out;
        while (true) {
            number = load_relaxed(&ring.number[here]);
            carried = load_relaxed(&ring.carried[here]);
            out = load_relaxed(&ring.out[here]);
            if ((number & ~CONTENT) == tag && (carried & ~CONTENT) == tag && (out & ~CONTENT) == tag) break;
            if (!wait || is_over()) return false;
            __nanosleep(ns);
            if (ns < MOST_SLEEP_NANOSECONDS) ns *= 2;
        }
        s.number = (unsigned int)number;
        s.out = (I)(out & CONTENT);
        s.first = s.out - (I)(carried & ((1 << CARRIED_BITS) - 1));
        s.carried = (unsigned int)(carried >> CARRIED_BITS) & ((1 << VALUE_BITS) - 1);
        s.carried_most = (unsigned int)(carried >> (CARRIED_BITS + VALUE_BITS)) & ((1 << VALUE_BITS) - 1);
        return true;
    }

    // Thread 0: `size` children are known, and where they go.  Decide what becomes of them, and
    // signal that to the next batch.
    __device__ void signal_counted(I size)
    {
        delay_at_random(2);
        I end = s.out + size, nodes = end - s.first;
        Wide value = s.small + (Wide)s.large * Mine::SLOTS + s.carried;
        unsigned int most = s.most > s.carried_most ? s.most : s.carried_most;
        bool followed = (int)(s.number - s.next) > 0;  // there is a batch after this one
        s.counted = true;
        if (end >= total || (nodes == 0 && !followed)) {
            s.action = LAST;
            store_relaxed(&control[MADE], (Wide)s.number);
            fence();
            atomicExch(&control[OVER], 1ull);
            return;
        }
        bool few = 2 * nodes <= MOST_PARENTS && 2 * value <= Mine::SLOTS;
        unsigned int there = at(s.next), number = s.number;
        if (few && followed) {
            s.action = FORWARD;
        } else {
            s.action = MAKE;
            // equal numbers of parents if even the longest rows fit so; else cut by entries
            I each = Mine::SLOTS / most < MOST_PARENTS ? I(Mine::SLOTS / most) : I(MOST_PARENTS);
            I even = (nodes + each - 1) / each;
            I cut = 1 + 2 * (I)s.large + (I)((s.small + s.carried) / Mine::HALF) + (nodes - 1) / MOST_PARENTS;
            if (even <= cut) {
                s.each = (nodes + even - 1) / even;
                s.made = (unsigned int)((nodes + s.each - 1) / s.each);
            } else {
                s.each = 0;
                s.made = (unsigned int)cut;
            }
            number += s.made;
        }
        Wide tag = ring.tag(s.next), carried = 0;
        if (s.action == FORWARD) carried = (Wide)nodes | value << CARRIED_BITS | (Wide)most << (CARRIED_BITS + VALUE_BITS);
        store_relaxed(&ring.out[there], tag | (Wide)end);
        store_relaxed(&ring.number[there], tag | number);
        store_relaxed(&ring.carried[there], tag | carried);
    }

    // Where batch j of those made leads; its maker sends the signal of an empty one.
    __device__ __forceinline__ void link(unsigned int j, unsigned int used)
    {
        unsigned int b = s.number + j, here = at(b);
        store_relaxed(&ring.next[here], j + 1 < used ? b + 1 : s.number + s.made);
        if (j >= used) {
            store_relaxed(&ring.begin[here], I(0));
            store_relaxed(&ring.end[here], I(0));
            store_relaxed(&ring.skip[here], s.number + used);
        }
    }

    // Make batches of the overhang and of `size` children, whose rows' lengths are degree(i).
    template <typename Degree>
    __device__ void make_batches(I size, Degree degree)
    {
        I end = s.out + size;
        unsigned int used = s.made;
        if (s.each > 0) {
            for (unsigned int j = threadIdx.x; j < s.made; j += BATCH_BLOCK) {
                I from = s.first + (I)j * s.each;
                store_relaxed(&ring.begin[at(s.number + j)], from);
                store_relaxed(&ring.end[at(s.number + j)], end - from < s.each ? end : I(from + s.each));
                link(j, used);
            }
        } else {
            // A batch ends before and behind a row longer than HALF, where the entries of the short
            // ones before reach a multiple of HALF, and after MOST_PARENTS vertices.  So its rows have
            // at most HALF + HALF entries, or it is one vertex.
            I carried = s.out - s.first;
            Wide before = s.carried;
            unsigned int cuts = 0;
            for (I tile = 0; tile < size; tile += BATCH_BLOCK) {
                I i = tile + (I)threadIdx.x;
                bool is_child = size - tile > (I)threadIdx.x, cut = false;
                I length = is_child ? degree(i) : I(0), last = is_child && i > 0 ? degree(i - 1) : I(0);
                bool large = length > Mine::HALF;
                Wide entries = large ? 0 : (Wide)length, all_entries;
                Wide sum = before + block_exclusive_sum(entries, &all_entries);
                if (is_child && carried + i > 0) {
                    Wide window = i == 0 ? 0 : (sum - (last > Mine::HALF ? 0 : (Wide)last)) / Mine::HALF;
                    cut = large || last > Mine::HALF || sum / Mine::HALF != window || (carried + i) % MOST_PARENTS == 0;
                }
                unsigned int all_cuts;
                unsigned int j = cuts + block_exclusive_sum((unsigned int)cut, &all_cuts) + 1;
                if (cut) {
                    store_relaxed(&ring.begin[at(s.number + j)], s.out + i);
                    store_relaxed(&ring.end[at(s.number + j - 1)], s.out + i);
                }
                before += all_entries;
                cuts += all_cuts;
            }
            used = cuts + 1;
            if (threadIdx.x == 0) {
                store_relaxed(&ring.begin[at(s.number)], s.first);
                store_relaxed(&ring.end[at(s.number + cuts)], end);
            }
            for (unsigned int j = threadIdx.x; j < s.made; j += BATCH_BLOCK) link(j, used);
        }
        __syncthreads();
        fence();
        for (unsigned int j = threadIdx.x; j < s.made; j += BATCH_BLOCK) {
            unsigned int b = s.number + j;
            if (j >= used) store_relaxed(&ring.discovered[at(b)], b + 1 << 2 | VOID);
            store_relaxed(&ring.published[at(b)], b + 1);
        }
    }

    // The children are written: pass the overhang on, or make batches.
    template <typename Degree>
    __device__ void finish(I size, Degree degree)
    {
        __shared__ bool leave;
        __syncthreads();
        if (threadIdx.x == 0) {
            clock.lap(OUTPUT);
            delay_at_random(3);
            leave = s.action == LAST;
            if (!leave && s.out > s.first) leave = !await(&ring.completed[at(s.batch)]);
            clock.lap(STALL);
            if (!leave && s.action == FORWARD && s.out + size > s.first) {
                fence();
                store_relaxed(&ring.completed[at(s.next)], s.next + 1);
            }
        }
        __syncthreads();
        if (!leave && s.action == MAKE) make_batches(size, degree);
        __syncthreads();
    }

    // One batch.  False: all is over.
    __device__ bool work(Wide* counters)
    {
        __shared__ bool leave;
        this->load_rows();
        bool far = s.far;
        if (threadIdx.x == 0) {
            leave = false;
            delay_at_random(0);
        }
        if (far)
            this->discover_far();
        else
            this->discover();
        __syncthreads();
        if (warp() == 0) {
            clock.lap(DISCOVER);
            if (lane() == 0) delay_at_random(1);
            fence();
            ring.tell(s.batch, OFFERED);
            bool known = ring.look_back(s.batch, far, &control[OVER]);  // where the row does not fit, there is no other work
            if (far) clock.lap(STALL);
            if (known) ring.tell(s.batch, FULL);
            if (lane() == 0) {
                s.discovered = known;
                leave = far && !known;
            }
            clock.lap(SIGNAL);
        }
        __syncthreads();
        if (leave) return false;
        bool early = s.discovered;
        I size = far ? this->keep_far() : (I)this->keep(0, s.offset[s.end - s.begin], true);
        if (threadIdx.x == 0) {
            clock.lap(REDISCOVER);
            if (early && read_counted(false)) signal_counted(size);
            clock.lap(SIGNAL);
        }
        __syncthreads();
        if (size > Mine::SLOTS) return place_far(size);
        this->sort((int)size);
        if (warp() == 0) {
            clock.lap(SORT);
            if (!early) {
                bool known = ring.look_back(s.batch, true, &control[OVER]);
                clock.lap(STALL);
                if (known) ring.tell(s.batch, FULL);
                if (lane() == 0) {
                    leave = !known;
                    s.small = 0;
                    s.large = s.most = 0;
                }
                clock.lap(SIGNAL);
            }
        }
        __syncthreads();
        if (leave) return false;
        int side = 0;
        if (!early) {
            int left = this->keep(0, (int)size, false);
            side = 1;
            if (threadIdx.x == 0) {
                clock.lap(REDISCOVER);
                if (counters != nullptr && left < size) {
                    atomicAdd(&counters[REDISCOVERIES], 1ull);
                    atomicAdd(&counters[REMOVED], (Wide)(size - left));
                }
            }
            size = left;
        }
        if (threadIdx.x == 0 && !s.counted) {
            leave = !read_counted(true);
            clock.lap(STALL);
            if (!leave) signal_counted(size);
            clock.lap(SIGNAL);
        }
        __syncthreads();
        if (leave) return false;
        for (int i = threadIdx.x; i < (int)size; i += BATCH_BLOCK)
            store_relaxed(&queue.order[s.out + i], s.vertex[side][i]);
        finish(size, [&](I i) { return s.degree[side][i]; });
        return true;
    }

    // The rest of a batch of one parent with more children than fit: they are sorted in device
    // memory, by counting the digits of their degrees.
    __device__ bool place_far(I size)
    {
        __shared__ bool leave;
        if (threadIdx.x == 0) {
            leave = false;
            if (!s.counted) {
                leave = !read_counted(true);
                clock.lap(STALL);
                if (!leave) signal_counted(size);
                clock.lap(SIGNAL);
            }
        }
        __syncthreads();
        if (leave) return false;
        I* target = queue.order + s.out;
        place_many<BATCH_BLOCK>(queue, s.begin, size, spare + s.out, spare + queue.n + s.out, target, s.space);
        if (threadIdx.x == 0) clock.lap(SORT);
        finish(size, [&](I i) { return queue.degree(target[i]); });
        return true;
    }
};

// Any number of blocks.  Caller: owner, starts and the first batches as reset_batches sets them.
// Ends early when the host sets OVER.  `stats`: count and time.
template <typename I>
__global__ void __launch_bounds__(BATCH_BLOCK, 2) place_batches(
    I n, const I* indptr, const I* indices, I total, I* order, I* owner, I* spare, unsigned int ring_size,
    unsigned int* words, unsigned long long* wide, I* places, unsigned int delay, bool stats,
    unsigned long long* control)
{
    extern __shared__ __align__(16) unsigned char memory[];
    static_assert(sizeof(Shared<I>) <= SHARED_BYTES, "batch.py asks for SHARED_BYTES bytes");
    Shared<I>& s = *reinterpret_cast<Shared<I>*>(memory);
    Wide* counters = stats ? control + COUNTERS : nullptr;
    Worker<I> worker{{{n, indptr, indices, order, owner}, s}, Ring<I>(ring_size, words, wide, places), control, spare,
                     total, delay, Clock(threadIdx.x == 0 && stats ? counters + STAGES : nullptr)};
    while (true) {
        if (threadIdx.x == 0) {
            worker.take_batch();
            worker.clock.lap(STALL);
            if (stats && !s.over) {
                atomicAdd(&counters[DEQUEUED], 1ull);
                atomicAdd(&counters[s.empty ? EMPTY : EXECUTED], 1ull);
            }
        }
        __syncthreads();
        bool over = s.over, empty = s.empty;
        __syncthreads();
        if (over || (!empty && !worker.work(counters))) break;
    }
    worker.clock.report();
}

// Set owners, starts, batches of `each` starts, and the signals to the first batch.
template <typename I>
__global__ void reset_batches(I n, const I* starts, I n_starts, I each, I* order, I* owner, unsigned int ring_size,
                              unsigned int* words, unsigned long long* wide, I* places)
{
    long long thread = global_thread();
    Ring<I> ring(ring_size, words, wide, places);
    unsigned int batches = (unsigned int)((n_starts + each - 1) / each);
    if (thread < n) owner[thread] = n;
    if (thread < n_starts) order[thread] = starts[thread];
    if (thread < (long long)batches) {
        ring.begin[thread] = (I)thread * each;
        ring.end[thread] = thread + 1 < (long long)batches ? (I)(thread + 1) * each : n_starts;
        ring.next[thread] = (unsigned int)thread + 1;
    }
    if (thread < (long long)ring_size) {
        ring.published[thread] = thread < (long long)batches ? (unsigned int)thread + 1 : 0;
        ring.discovered[thread] = ring.completed[thread] = 0;
        ring.number[thread] = thread == 0 ? ring.tag(0) | batches : 0;
        ring.carried[thread] = thread == 0 ? ring.tag(0) : 0;
        ring.out[thread] = thread == 0 ? ring.tag(0) | (Wide)n_starts : 0;
    }
}

// Starts have no owner that could be taken from them.
template <typename I>
__global__ void own_starts(const I* starts, I n_starts, I* owner)
{
    long long thread = global_thread();
    if (thread < n_starts) owner[starts[thread]] = -1;
}
