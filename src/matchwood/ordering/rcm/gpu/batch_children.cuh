// The children of a batch of parents, in shared memory: offer places to all neighbours, keep those
// that kept one, sort them by (parent, degree, vertex).  One block.
#pragma once
#include "matchwood/queue.cuh"

using Wide = unsigned long long;

// Measured: bench/ordering/rcm_gpu.py, H200.
constexpr int BATCH_BLOCK = 512;           // threads; two blocks on each multiprocessor
constexpr int MOST_PARENTS = 512;          // of a batch, at most; not more than threads
constexpr int SHARED_BYTES = 92160;        // bytes for Shared
constexpr int ENTRIES_PER_THREAD = 7;      // entries of a thread; odd, so that shared memory has no conflicts
constexpr int ENTRIES_PER_THREAD_64 = 3;   // the same for 8-byte indices
constexpr int BATCH_RANKED_CHILDREN = 64;  // children of a parent up to which each counts those before it
constexpr int EAGER_ROW = 8;               // entries of the longest row for which degrees are read with owners

// What the threads of a block share.
template <typename I>
struct Shared {
    static constexpr int EACH = sizeof(I) == 4 ? ENTRIES_PER_THREAD : ENTRIES_PER_THREAD_64;
    static constexpr int SLOTS = EACH * BATCH_BLOCK;  // entries of a batch's rows, at most
    static constexpr int HALF = SLOTS / 2;

    I vertex[2][SLOTS], degree[2][SLOTS];
    unsigned short parent[2][SLOTS];
    I row[MOST_PARENTS];                              // where the parents' rows begin
    int offset[MOST_PARENTS + 1], start[MOST_PARENTS + 1]; // their entries, and their children, before them
    SortSpace<BATCH_BLOCK> space;

    unsigned int batch, next;     // this one, and the one that is signalled
    I begin, end;                 // its parents
    bool over, empty, discovered, counted, far;
    int longest;                  // entries of the longest row; children of the largest parent
    I out, first;                 // where the children go; where the overhang begins
    unsigned int number, carried, carried_most;  // next new batch; entries of the overhang, longest row
    Wide small;                   // entries of the children's rows of at most HALF entries
    unsigned int large, most;     // the number of their longer rows; the longest row
    int action;
    unsigned int made;            // batches
    I each;                       // parents of each; 0: cut by entries
};

template <typename I>
struct Children {
    using Mine = Shared<I>;

    Queue<I> queue;
    Mine& s;

    // The parents' rows.
    __device__ void load_rows()
    {
        int rows = (int)(s.end - s.begin);
        I length = 0;
        if ((int)threadIdx.x < rows) {
            I v = load_relaxed(&queue.order[s.begin + threadIdx.x]);
            s.row[threadIdx.x] = queue.indptr[v];
            length = queue.degree(v);
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

    // Offer the places; the longest row decides how many threads a parent gets.
    __device__ void discover()
    {
        int rows = (int)(s.end - s.begin), log = 0;
        while (log < 5 && 1 << log < s.longest) ++log;
        for (int p = threadIdx.x >> log; p < rows; p += BATCH_BLOCK >> log) {
            I row = s.row[p];
            int from = s.offset[p], length = s.offset[p + 1] - from;
            for (int e = threadIdx.x & ((1 << log) - 1); e < length; e += 1 << log) {
                I w = queue.indices[row + e];
                atomicMin(&queue.owner[w], I(s.begin + p));
                s.vertex[0][from + e] = w;
                s.parent[0][from + e] = (unsigned short)p;
            }
        }
    }

    // The same for one row that does not fit.
    __device__ void discover_far()
    {
        I v = load_relaxed(&queue.order[s.begin]);
        for (long long e = queue.indptr[v] + threadIdx.x; e < queue.indptr[v + 1]; e += BATCH_BLOCK)
            atomicMin(&queue.owner[queue.indices[e]], s.begin);
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
        bool eager = fresh && s.longest <= EAGER_ROW;
        Wide small = 0;
        unsigned int large = 0, most = 0;
#pragma unroll
        for (int k = 0; k < Mine::EACH; ++k) {
            int i = threadIdx.x * Mine::EACH + k;
            owner[k] = -2;
            if (i < size) {
                w[k] = s.vertex[side][i];
                p[k] = s.parent[side][i];
                owner[k] = load_relaxed(&queue.owner[w[k]]);
                if (eager) degree[k] = queue.degree(w[k]);
            }
        }
#pragma unroll
        for (int k = 0; k < Mine::EACH; ++k) {
            int i = threadIdx.x * Mine::EACH + k;
            bool mine = owner[k] >= 0 && owner[k] == s.begin + p[k];
            if (mine && !eager) degree[k] = fresh ? queue.degree(w[k]) : s.degree[side][i];
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
                s.parent[1 - side][before] = (unsigned short)p[k];
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
        I v = load_relaxed(&queue.order[s.begin]);
        I begin = queue.indptr[v], end = queue.indptr[v + 1], found = 0;
        Wide small = 0;
        unsigned int large = 0, most = 0;
        for (long long e = begin; e < end; e += BATCH_BLOCK) {
            I w = 0, degree = 0;
            int mine = 0, all;
            if (e + threadIdx.x < end) {
                w = queue.indices[e + threadIdx.x];
                mine = load_relaxed(&queue.owner[w]) == s.begin;
            }
            if (mine) {
                degree = queue.degree(w);
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
        if (s.longest <= BATCH_RANKED_CHILDREN) {
            for (int i = threadIdx.x; i < size; i += BATCH_BLOCK) {
                int p = s.parent[1][i], from = s.start[p], to = s.start[p + 1], rank = 0;
                I degree = s.degree[1][i];
                if (to - from > 1)
                    for (int k = from; k < to; ++k)
                        rank += s.degree[1][k] < degree || (s.degree[1][k] == degree && k < i);
                s.vertex[0][from + rank] = s.vertex[1][i];
                s.degree[0][from + rank] = degree;
                s.parent[0][from + rank] = (unsigned short)p;
            }
            __syncthreads();
            return;
        }
        int side = 1;
        auto pass = [&](auto digit) {
            sort_by_digit<BATCH_BLOCK>(s.space, size, digit, [&](long long i, long long place) {
                s.vertex[1 - side][place] = s.vertex[side][i];
                s.degree[1 - side][place] = s.degree[side][i];
                s.parent[1 - side][place] = s.parent[side][i];
            });
            side = 1 - side;
        };
        I bits = 0;
        for (int i = threadIdx.x; i < size; i += BATCH_BLOCK) bits |= s.degree[1][i];
        int top = bits == 0 ? 0 : 64 - __clzll((long long)bits);
        top = block_reduce(top, 0, Most());
        if (threadIdx.x == 0) s.longest = top;
        __syncthreads();
        top = s.longest;
        for (int shift = 0; shift < top; shift += DIGIT_BITS)
            pass([&](long long i) { return (int)(s.degree[side][i] >> shift & (DIGITS - 1)); });
        for (int shift = 0; parents - 1 >> shift > 0; shift += DIGIT_BITS)
            pass([&](long long i) { return s.parent[side][i] >> shift & (DIGITS - 1); });
        if (side == 1) {
            for (int i = threadIdx.x; i < size; i += BATCH_BLOCK) {
                s.vertex[0][i] = s.vertex[1][i];
                s.degree[0][i] = s.degree[1][i];
                s.parent[0][i] = s.parent[1][i];
            }
        }
        __syncthreads();
    }
};
