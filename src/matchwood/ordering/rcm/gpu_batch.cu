// Cuthill-McKee in speculative batches ("batch").  Host side: gpu_batch.py; the rule and the papers:
// __init__.py; what `order` and `owner` hold: places.cuh.
//
// A batch is a window of `order`: some vertices, parents now, whose children come next.  Blocks take
// batches in order, offer the parents' places to their neighbours, and sort those that kept them
// before it is known whether all batches before have offered.  Three signals run along the batches:
//   discovered   all batches before have offered: what kept a place of this batch is its child
//   counted      where the children go, which number the next new batch gets, and the overhang:
//                children before these that are in no batch yet, because they are few
//   completed    the overhang is written, so a batch may be made of it
// each sent as soon as it is known, often before the sort.  Owners are places, not numbers of
// batches, so one minimum decides between batches and between the parents of one.
//
// No deadlock, whatever blocks are running: a block that takes number b waits only for signals of
// batches before b and for b to be made, which is done by a batch before b; numbers are taken in
// order, so the batch of the lowest unfinished number is held by a running block and never waits for
// one that is not.  When the last vertex has its place, or no children are left, `done` is set, and
// whoever waits leaves: it has no children.  Who has some waits for nothing but `completed`, and
// that after they are written.
//
// Batches are kept in a ring.  Words of a batch b hold b + 1 once they are set, so the ring needs no
// clearing; gpu_batch.py shows why it is large enough.  New batches are made by their number before
// it is known where they end, so some may stay empty; the chain of signals leads past them.
//
// Races.  owner: places.cuh; its readers take what they read for final only after `discovered`.
// Signals are released behind a barrier of the block and acquired by thread 0 before one, so what
// the sender and all before it did is visible to all threads of the receiver.  What `counted` and
// the publication of a batch carry is written before the word and read after it.  An entry of the
// ring is written again only by a batch that comes, along the chain, after its last reader; the
// holder of an empty one may come later and then finds a larger number: it leaves it at that.
#include "matchwood/places.cuh"

using Wide = unsigned long long;

// bench/ordering/rcm_gpu.py, H200, where nothing else is said.
constexpr int BLOCK = 256;     // threads
constexpr int PARENTS = 256;   // of a batch, at most
constexpr int EACH_INT = 7;    // entries of a thread; odd, so that shared memory has no conflicts
constexpr int EACH_WIDE = 3;   // the same for 8-byte indices
constexpr int RANKED = 64;     // children of a parent that are ranked by counting
constexpr int EAGER = 8;       // entries of the longest row for which degrees are read with owners
constexpr int SLEEP = 20;      // nanoseconds at first between two looks at a signal,
constexpr int SLEEP_MOST = 160;  // and at most

// Words of `control`.
constexpr int TICKET = 0, OVER = 1, MADE = 2, COUNTERS = 3;
// Counters behind them, then cycles by stage.
constexpr int DEQUEUED = 0, EXECUTED = 1, EMPTY = 2, REDISCOVERIES = 3, REMOVED = 4, STAGES = 5;
constexpr int DISCOVER = 0, SORT = 1, REDISCOVER = 2, SIGNAL = 3, OUTPUT = 4, STALL = 5, ALL_STAGES = 6;

// The ring: words of 4 bytes and of an index each, `mask` + 1 of every kind.
template <typename I>
struct Ring {
    unsigned int mask;
    unsigned int *published, *discovered, *counted, *completed;
    unsigned int *next, *number, *value, *most;
    I *begin, *end, *out, *first;

    __device__ __forceinline__ Ring(unsigned int size, unsigned int* words, I* places) : mask(size - 1)
    {
        published = words;
        discovered = words + size;
        counted = words + 2 * (Wide)size;
        completed = words + 3 * (Wide)size;
        next = words + 4 * (Wide)size;
        number = words + 5 * (Wide)size;
        value = words + 6 * (Wide)size;
        most = words + 7 * (Wide)size;
        begin = places;
        end = places + size;
        out = places + 2 * (Wide)size;
        first = places + 3 * (Wide)size;
    }
};

constexpr int FORWARD = 0, MAKE = 1, LAST = 2;  // what becomes of the children

// What the threads of a block share.
template <typename I>
struct Shared {
    static constexpr int EACH = sizeof(I) == 4 ? EACH_INT : EACH_WIDE;
    static constexpr int SLOTS = EACH * BLOCK;  // entries of a batch's rows, at most
    static constexpr int HALF = SLOTS / 2;

    I vertex[2][SLOTS], degree[2][SLOTS];
    unsigned char parent[2][SLOTS];
    I row[PARENTS];                              // where the parents' rows begin
    int offset[PARENTS + 1], start[PARENTS + 1]; // their entries, and their children, before them
    SortSpace<BLOCK> space;

    unsigned int batch, next;     // this one, and the one that is signalled
    I begin, end;                 // its parents
    bool over, empty, discovered, counted, far;
    int longest;                  // entries of the longest row; children of the largest parent
    I out, first;                 // where the children go; where the overhang begins
    unsigned int number, carried, carried_most;  // next new batch; entries of the overhang, longest row
    Wide small;                   // children: entries of their rows, without those longer than HALF,
    unsigned int large, most;     // which are so many; the longest row
    int action;
    unsigned int made;            // batches
    I each;                       // parents of each; 0: cut by entries
};

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

template <typename I>
struct Worker {
    using Mine = Shared<I>;

    Places<I> places;
    Ring<I> ring;
    Mine& s;
    Wide* control;
    I* spare;         // 2 n
    I total;          // vertices to place
    unsigned int delay;  // seed of random delays between stages; 0: none
    Clock clock;

    __device__ __forceinline__ bool is_over() const { return load_relaxed(&control[OVER]) != 0; }
    __device__ __forceinline__ unsigned int at(unsigned int b) const { return b & ring.mask; }

    // Thread 0: a while that depends on batch, stage and seed.
    __device__ void dawdle(unsigned int stage) const
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
        unsigned int ns = SLEEP;
        while (load_acquire(word) != s.batch + 1) {
            if (is_over()) return false;
            __nanosleep(ns);
            if (ns < SLEEP_MOST) ns *= 2;
        }
        return true;
    }

    // Thread 0: take the next number and wait until there is such a batch.
    __device__ void take_batch()
    {
        unsigned int ns = SLEEP;
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
            if (ns < SLEEP_MOST) ns *= 2;
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

    // The parents' rows.
    __device__ void load_rows()
    {
        int rows = (int)(s.end - s.begin);
        I length = 0;
        if ((int)threadIdx.x < rows) {
            I v = load_relaxed(&places.order[s.begin + threadIdx.x]);
            s.row[threadIdx.x] = places.indptr[v];
            length = places.degree(v);
            if (length > Mine::SLOTS) s.far = true;  // then it is the only one
        }
        int mine = length > Mine::SLOTS ? Mine::SLOTS : (int)length, all;
        unsigned int longest = __reduce_max_sync(ALL, (unsigned int)mine);
        if (lane() == 0) atomicMax(&s.longest, (int)longest);
        int before = block_exclusive_sum(mine, &all);
        if ((int)threadIdx.x < rows) s.offset[threadIdx.x] = before;
        if (threadIdx.x == 0) s.offset[rows] = all;
        __syncthreads();
    }

    // Offer the places; threads to a parent by the longest row.
    __device__ void discover()
    {
        int rows = (int)(s.end - s.begin), log = 0;
        while (log < 5 && 1 << log < s.longest) ++log;
        for (int p = threadIdx.x >> log; p < rows; p += BLOCK >> log) {
            I row = s.row[p];
            int from = s.offset[p], length = s.offset[p + 1] - from;
            for (int e = threadIdx.x & ((1 << log) - 1); e < length; e += 1 << log) {
                I w = places.indices[row + e];
                atomicMin(&places.owner[w], I(s.begin + p));
                s.vertex[0][from + e] = w;
                s.parent[0][from + e] = (unsigned char)p;
            }
        }
    }

    // The same for one row that does not fit.
    __device__ void discover_far()
    {
        I v = load_relaxed(&places.order[s.begin]);
        for (long long e = places.indptr[v] + threadIdx.x; e < places.indptr[v + 1]; e += BLOCK)
            atomicMin(&places.owner[places.indices[e]], s.begin);
    }

    // Tell the next batch that all up to this one have offered.  Thread 0, behind a barrier.
    __device__ void signal_discovered()
    {
        dawdle(1);
        fence();
        store_release(&ring.discovered[at(s.next)], s.next + 1);
    }

    // Add children of this thread to the sums of the block.  All threads of the warp call.
    __device__ __forceinline__ void add_sums(Wide small, unsigned int large, unsigned int most)
    {
        small = warp_reduce(small, Plus());
        large = __reduce_add_sync(ALL, large);
        most = __reduce_max_sync(ALL, most);
        if (lane() == 0 && most > 0) {
            atomicAdd(&s.small, small);
            atomicAdd(&s.large, large);
            atomicMax(&s.most, most);
        }
    }

    __device__ __forceinline__ void sum_child(I degree, Wide& small, unsigned int& large, unsigned int& most)
    {
        unsigned int length = degree > Mine::SLOTS ? (unsigned int)Mine::SLOTS : (unsigned int)degree;
        if (length > Mine::HALF)
            ++large;
        else
            small += length;
        most = length > most ? length : most;
    }

    // Keep of `size` entries of a side those that have a place of this batch, on the other side.
    // `fresh`: degrees are to be looked up, and `start` filled.  Returns how many there are.
    __device__ int keep(int side, int size, bool fresh)
    {
        I w[Mine::EACH], owner[Mine::EACH], degree[Mine::EACH];
        int p[Mine::EACH], count = 0, all;
        bool eager = fresh && s.longest <= EAGER;
        Wide small = 0;
        unsigned int large = 0, most = 0;
#pragma unroll
        for (int k = 0; k < Mine::EACH; ++k) {
            int i = threadIdx.x * Mine::EACH + k;
            owner[k] = -2;
            if (i < size) {
                w[k] = s.vertex[side][i];
                p[k] = s.parent[side][i];
                owner[k] = load_relaxed(&places.owner[w[k]]);
                if (eager) degree[k] = places.degree(w[k]);
            }
        }
#pragma unroll
        for (int k = 0; k < Mine::EACH; ++k) {
            int i = threadIdx.x * Mine::EACH + k;
            bool mine = owner[k] >= 0 && owner[k] == s.begin + p[k];
            if (mine && !eager) degree[k] = fresh ? places.degree(w[k]) : s.degree[side][i];
            owner[k] = mine;
            count += mine;
            if (mine) sum_child(degree[k], small, large, most);
        }
        int before = block_exclusive_sum(count, &all);
#pragma unroll
        for (int k = 0; k < Mine::EACH; ++k) {
            int i = threadIdx.x * Mine::EACH + k;
            if (fresh && i < size && i == s.offset[p[k]]) s.start[p[k]] = before;
            if (owner[k] == 1) {
                s.vertex[1 - side][before] = w[k];
                s.degree[1 - side][before] = degree[k];
                s.parent[1 - side][before] = (unsigned char)p[k];
                ++before;
            }
        }
        if (fresh && threadIdx.x == 0) s.start[s.end - s.begin] = all;
        add_sums(small, large, most);
        __syncthreads();
        return all;
    }

    // The children of one parent whose row does not fit, in the order of the row, as far as there is
    // room on side 1.  Returns how many there are.
    __device__ I keep_far()
    {
        I v = load_relaxed(&places.order[s.begin]);
        I begin = places.indptr[v], end = places.indptr[v + 1], found = 0;
        Wide small = 0;
        unsigned int large = 0, most = 0;
        for (long long e = begin; e < end; e += BLOCK) {
            I w = 0, degree = 0;
            int mine = 0, all;
            if (e + threadIdx.x < end) {
                w = places.indices[e + threadIdx.x];
                mine = load_relaxed(&places.owner[w]) == s.begin;
            }
            if (mine) {
                degree = places.degree(w);
                sum_child(degree, small, large, most);
            }
            long long place = found + block_exclusive_sum(mine, &all);
            if (mine && place < Mine::SLOTS) {
                s.vertex[1][place] = w;
                s.degree[1][place] = degree;
                s.parent[1][place] = 0;
            }
            found += all;
        }
        add_sums(small, large, most);
        if (threadIdx.x == 0) {
            s.start[0] = 0;
            s.start[1] = (int)(found < Mine::SLOTS ? found : I(Mine::SLOTS));
        }
        __syncthreads();
        return found;
    }

    // Sort `size` children on side 1, which are in the order of (parent, vertex), by (parent,
    // degree, vertex), to side 0.
    __device__ void sort(int size)
    {
        int parents = (int)(s.end - s.begin), family = 0;
        if ((int)threadIdx.x < parents) family = s.start[threadIdx.x + 1] - s.start[threadIdx.x];
        if (threadIdx.x == 0) s.longest = 0;
        __syncthreads();
        unsigned int largest = __reduce_max_sync(ALL, (unsigned int)family);
        if (lane() == 0) atomicMax(&s.longest, (int)largest);
        __syncthreads();
        if (s.longest <= RANKED) {
            for (int i = threadIdx.x; i < size; i += BLOCK) {
                int p = s.parent[1][i], from = s.start[p], to = s.start[p + 1], rank = 0;
                I degree = s.degree[1][i];
                if (to - from > 1)
                    for (int k = from; k < to; ++k)
                        rank += s.degree[1][k] < degree || (s.degree[1][k] == degree && k < i);
                s.vertex[0][from + rank] = s.vertex[1][i];
                s.degree[0][from + rank] = degree;
                s.parent[0][from + rank] = (unsigned char)p;
            }
            __syncthreads();
            return;
        }
        int side = 1;
        auto pass = [&](auto digit) {
            sort_by_digit<BLOCK>(s.space, size, digit, [&](long long i, long long place) {
                s.vertex[1 - side][place] = s.vertex[side][i];
                s.degree[1 - side][place] = s.degree[side][i];
                s.parent[1 - side][place] = s.parent[side][i];
            });
            side = 1 - side;
        };
        I bits = 0;
        for (int i = threadIdx.x; i < size; i += BLOCK) bits |= s.degree[1][i];
        int top = bits == 0 ? 0 : 64 - __clzll((long long)bits);
        top = block_reduce(top, 0, Most());
        if (threadIdx.x == 0) s.longest = top;
        __syncthreads();
        top = s.longest;
        for (int shift = 0; shift < top; shift += DIGIT_BITS)
            pass([&](long long i) { return (int)(s.degree[side][i] >> shift & (DIGITS - 1)); });
        if (parents > 1) pass([&](long long i) { return (int)s.parent[side][i]; });
        if (side == 1) {
            for (int i = threadIdx.x; i < size; i += BLOCK) {
                s.vertex[0][i] = s.vertex[1][i];
                s.degree[0][i] = s.degree[1][i];
                s.parent[0][i] = s.parent[1][i];
            }
        }
        __syncthreads();
    }

    // Thread 0: is it known where the children go?  If so, read it.
    __device__ bool read_counted(bool wait)
    {
        const unsigned int* word = &ring.counted[at(s.batch)];
        if (wait ? !await(word) : load_acquire(word) != s.batch + 1) return false;
        unsigned int here = at(s.batch);
        s.out = load_relaxed(&ring.out[here]);
        s.first = load_relaxed(&ring.first[here]);
        s.number = load_relaxed(&ring.number[here]);
        s.carried = load_relaxed(&ring.value[here]);
        s.carried_most = load_relaxed(&ring.most[here]);
        return true;
    }

    // Thread 0: `size` children are known, and where they go.  Decide what becomes of them, and
    // tell the next batch.
    __device__ void signal_counted(I size)
    {
        dawdle(2);
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
        bool few = 2 * nodes <= PARENTS && 2 * value <= Mine::SLOTS;
        unsigned int there = at(s.next), number = s.number;
        if (few && followed) {
            s.action = FORWARD;
        } else {
            s.action = MAKE;
            // equal numbers of parents if even the longest rows fit so; else cut by entries
            I each = Mine::SLOTS / most < PARENTS ? I(Mine::SLOTS / most) : I(PARENTS);
            I even = (nodes + each - 1) / each;
            I cut = 1 + 2 * (I)s.large + (I)((s.small + s.carried) / Mine::HALF) + (nodes - 1) / PARENTS;
            if (even <= cut) {
                s.each = (nodes + even - 1) / even;
                s.made = (unsigned int)((nodes + s.each - 1) / s.each);
            } else {
                s.each = 0;
                s.made = (unsigned int)cut;
            }
            number += s.made;
        }
        bool forward = s.action == FORWARD;
        store_relaxed(&ring.out[there], end);
        store_relaxed(&ring.first[there], forward ? s.first : end);
        store_relaxed(&ring.number[there], number);
        store_relaxed(&ring.value[there], forward ? (unsigned int)value : 0u);
        store_relaxed(&ring.most[there], forward ? most : 0u);
        store_release(&ring.counted[there], s.next + 1);
    }

    // Thread 0: the first `made` numbers are batches, `used` of them filled.
    __device__ __forceinline__ void publish(unsigned int j, unsigned int used, I begin, I end)
    {
        unsigned int b = s.number + j, here = at(b);
        store_relaxed(&ring.begin[here], begin);
        store_relaxed(&ring.end[here], end);
        store_relaxed(&ring.next[here], j + 1 < used ? b + 1 : s.number + s.made);
    }

    // Make batches of the overhang and of `size` children, whose rows' lengths are degree(i).
    template <typename Degree>
    __device__ void make_batches(I size, Degree degree)
    {
        I end = s.out + size;
        unsigned int used = s.made;
        if (s.each > 0) {
            for (unsigned int j = threadIdx.x; j < s.made; j += BLOCK) {
                I from = s.first + (I)j * s.each;
                publish(j, used, from, end - from < s.each ? end : from + s.each);
            }
        } else {
            // A batch ends before and behind a row longer than HALF, where the entries of the short
            // ones before reach a multiple of HALF, and after PARENTS vertices.  So its rows have
            // at most HALF + HALF entries, or it is one vertex.
            I carried = s.out - s.first;
            Wide before = s.carried;
            unsigned int cuts = 0;
            for (I tile = 0; tile < size; tile += BLOCK) {
                I i = tile + (I)threadIdx.x;
                bool is_child = size - tile > (I)threadIdx.x, cut = false;
                I length = is_child ? degree(i) : I(0), last = is_child && i > 0 ? degree(i - 1) : I(0);
                bool large = length > Mine::HALF;
                Wide entries = large ? 0 : (Wide)length, all_entries;
                Wide sum = before + block_exclusive_sum(entries, &all_entries);
                if (is_child && carried + i > 0) {
                    Wide window = i == 0 ? 0 : (sum - (last > Mine::HALF ? 0 : (Wide)last)) / Mine::HALF;
                    cut = large || last > Mine::HALF || sum / Mine::HALF != window || (carried + i) % PARENTS == 0;
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
            for (unsigned int j = threadIdx.x; j < s.made; j += BLOCK) {
                if (j < used)
                    store_relaxed(&ring.next[at(s.number + j)], j + 1 < used ? s.number + j + 1 : s.number + s.made);
                else
                    publish(j, used, 0, 0);
            }
        }
        __syncthreads();
        fence();
        for (unsigned int j = threadIdx.x; j < s.made; j += BLOCK)
            store_release(&ring.published[at(s.number + j)], s.number + j + 1);
    }

    // The children are written: pass the overhang on, or make batches.
    template <typename Degree>
    __device__ void finish(I size, Degree degree)
    {
        __shared__ bool leave;
        __syncthreads();
        if (threadIdx.x == 0) {
            clock.lap(OUTPUT);
            dawdle(3);
            leave = s.action == LAST;
            if (!leave && s.out > s.first) leave = !await(&ring.completed[at(s.batch)]);
            clock.lap(STALL);
            if (!leave && s.action == FORWARD && s.out + size > s.first) {
                fence();
                store_release(&ring.completed[at(s.next)], s.next + 1);
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
        load_rows();
        bool far = s.far;
        if (threadIdx.x == 0) {
            leave = false;
            dawdle(0);
        }
        if (far)
            discover_far();
        else
            discover();
        __syncthreads();
        if (threadIdx.x == 0) {
            clock.lap(DISCOVER);
            fence();
            s.discovered = load_acquire(&ring.discovered[at(s.batch)]) == s.batch + 1;
            if (!s.discovered && far) {  // nothing to do meanwhile
                leave = !await(&ring.discovered[at(s.batch)]);
                s.discovered = true;
                clock.lap(STALL);
            }
            if (s.discovered && !leave) signal_discovered();
            clock.lap(SIGNAL);
        }
        __syncthreads();
        if (leave) return false;
        bool early = s.discovered;
        I size = far ? keep_far() : (I)keep(0, s.offset[s.end - s.begin], true);
        if (threadIdx.x == 0) {
            clock.lap(REDISCOVER);
            if (early && read_counted(false)) signal_counted(size);
            clock.lap(SIGNAL);
        }
        __syncthreads();
        if (size > Mine::SLOTS) return place_far(size);
        sort((int)size);
        if (threadIdx.x == 0) {
            clock.lap(SORT);
            if (!early) {
                leave = !await(&ring.discovered[at(s.batch)]);
                clock.lap(STALL);
                if (!leave) signal_discovered();
                s.small = 0;
                s.large = s.most = 0;
                clock.lap(SIGNAL);
            }
        }
        __syncthreads();
        if (leave) return false;
        int side = 0;
        if (!early) {
            int left = keep(0, (int)size, false);
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
        for (int i = threadIdx.x; i < (int)size; i += BLOCK)
            store_relaxed(&places.order[s.out + i], s.vertex[side][i]);
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
        I* target = places.order + s.out;
        place_many<BLOCK>(places, s.begin, size, spare + s.out, spare + places.n + s.out, target, s.space);
        if (threadIdx.x == 0) clock.lap(SORT);
        finish(size, [&](I i) { return places.degree(target[i]); });
        return true;
    }
};

// Any number of blocks.  Caller: owner, starts and the first batches as reset_batches sets them.
// `stats`: count and time.
template <typename I>
__global__ void __launch_bounds__(BLOCK, 4) place_batches(
    I n, const I* indptr, const I* indices, I total, I* order, I* owner, I* spare, unsigned int ring_size,
    unsigned int* words, I* places, unsigned int delay, bool stats, unsigned long long* control)
{
    __shared__ Shared<I> s;
    Wide* counters = stats ? control + COUNTERS : nullptr;
    Worker<I> worker{{n, indptr, indices, order, owner}, Ring<I>(ring_size, words, places), s, control, spare,
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

// Owners, starts, and batches of `each` starts; signals of the first one.
template <typename I>
__global__ void reset_batches(I n, const I* starts, I n_starts, I each, I* order, I* owner, unsigned int ring_size,
                              unsigned int* words, I* places)
{
    long long thread = global_thread();
    Ring<I> ring(ring_size, words, places);
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
        ring.discovered[thread] = ring.counted[thread] = thread == 0;
        ring.completed[thread] = 0;
    }
    if (thread == 0) {
        ring.out[0] = ring.first[0] = n_starts;
        ring.number[0] = batches;
        ring.value[0] = ring.most[0] = 0;
    }
}

// Starts have no owner that could be taken from them.
template <typename I>
__global__ void own_starts(const I* starts, I n_starts, I* owner)
{
    long long thread = global_thread();
    if (thread < n_starts) owner[starts[thread]] = -1;
}
