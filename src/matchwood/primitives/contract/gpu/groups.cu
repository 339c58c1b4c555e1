// Contraction by groups.  Host side and the idea: __init__.py.
//
// The entries of group c are those of its members, as labels: keys[starts[c]] ... keys[starts[c + 1] - 1].
// Their sums are written to the first counts[c] of these places, and from there to the result.  The
// order of entries within a row depends on scheduling.
//
// Races: places within a group are handed out by an atomic addition.  From then on a group is one warp's,
// or one block's.
#include "matchwood/tally.cuh"

constexpr int BLOCK = TALLY_BLOCK;  // threads
// Words: groups that are left to blocks; whether one has too many entries; and of the rows of the result
// the longest, how many have entries, and all entries.
constexpr int LISTED = 0, TOO_MANY = 1, LONGEST = 2, TIED = 3, TOTAL = 4;
[[maybe_unused]] constexpr int WORDS = 5;

// One thread per vertex: which of its group's places it has.  sizes: 0 before.
template <typename I>
__global__ void measure_groups(I n, const I* __restrict__ indptr, const I* __restrict__ labels, I* sizes,
                               I* __restrict__ offset)
{
    long long v = global_thread();
    if (v < n) offset[v] = take(&sizes[labels[v]], I(indptr[v + 1] - indptr[v]));
}

// `width` lanes per vertex.
template <typename I>
__global__ void bring_together(I n, const I* __restrict__ indptr, const I* __restrict__ indices,
                               const long long* __restrict__ data, const I* __restrict__ labels,
                               const I* __restrict__ starts, const I* __restrict__ offset, int width,
                               I* __restrict__ keys, long long* __restrict__ weights)
{
    long long v = global_thread() / width;
    if (v >= n) return;
    long long begin = indptr[v], end = indptr[v + 1], shift = starts[labels[v]] + offset[v] - begin;
    for (long long e = begin + threadIdx.x % width; e < end; e += width) {
        keys[shift + e] = labels[indices[e]];
        if (data != nullptr) weights[shift + e] = data[e];
    }
}

// A group: its entries, and where its sums go.
template <typename I>
struct Group {
    I c;
    long long begin, end;
    I* keys;
    long long* weights;
    bool is_weighted;
    long long* diagonal;

    __device__ __forceinline__ long long weight(long long e) const { return is_weighted ? weights[e] : 1; }

    __device__ __forceinline__ void put(long long place, I key, long long sum) const
    {
        keys[place] = key;
        weights[place] = sum;
    }
};

// A group of up to WIDTH entries by WIDTH lanes; returns the length of its row.  All lanes of the warp call.
template <int WIDTH, typename I>
__device__ __forceinline__ int add_by_lanes(const Group<I>& group)
{
    long long e = group.begin + (lane() & (WIDTH - 1));
    bool is_entry = e < group.end;
    I key = is_entry ? group.keys[e] : I(-1);
    long long w = is_entry ? group.weight(e) : 0, sum = 0;
    unsigned us = (0xffffffffu >> (WARP - WIDTH)) << (lane() & ~(WIDTH - 1));
    unsigned same = __match_any_sync(ALL, key) & us;
    if (!is_entry) same = 0;
    if (group.is_weighted) {
        for (unsigned left = same; __any_sync(ALL, left != 0); left &= left - 1) {
            long long its = __shfl_sync(ALL, w, left == 0 ? lane() : __ffs(left) - 1);
            if (left != 0) sum += its;
        }
    } else {
        sum = __popc(same);
    }
    bool is_first = is_entry && (same & lanes_below()) == 0, is_outer = is_first && key != group.c;
    unsigned outer = __ballot_sync(ALL, is_outer) & us;
    if (is_outer) group.put(group.begin + __popc(outer & lanes_below()), key, sum);
    if (is_first && !is_outer) group.diagonal[group.c] = sum;
    return __popc(outer);
}

// A group of up to WARP_ROW entries by a warp, with a table of its own in shared memory.
template <typename I>
__device__ __forceinline__ int add_by_warp(const Group<I>& group, const Table<I, long long, true>& table)
{
    int slots = (int)slots_of(group.end - group.begin);
    table.clear(slots, lane(), WARP);
    __syncwarp();
    for (long long e = group.begin + lane(); e < group.end; e += WARP)
        table.add(slots, group.keys[e], group.weight(e));
    __syncwarp();
    int length = 0;
    for (int s = lane(); s < slots; s += WARP) {
        I key = table.label(s);
        bool is_outer = key >= 0 && key != group.c;
        unsigned outer = __ballot_sync(ALL, is_outer);
        if (is_outer) group.put(group.begin + length + __popc(outer & lanes_below()), key, table.sum(s));
        if (key == group.c) group.diagonal[group.c] = table.sum(s);
        length += __popc(outer);
    }
    __syncwarp();  // before the table is cleared for the next group
    return length;
}

// What is known of the rows, from each thread's.  All threads of the block call.
__device__ __forceinline__ void add_rows(unsigned long long longest, unsigned long long tied, unsigned long long total,
                                         unsigned long long* words)
{
    longest = block_reduce(longest, 0ull, Most());
    tied = block_reduce(tied, 0ull, Plus());
    total = block_reduce(total, 0ull, Plus());
    if (threadIdx.x != 0 || tied == 0) return;
    if (load_relaxed(&words[LONGEST]) < longest) raise_to(&words[LONGEST], longest);
    atomicAdd(&words[TIED], tied);
    atomicAdd(&words[TOTAL], total);
}

// WIDTH lanes per group; the warp together where a group has more entries.  diagonal: 0 before.
template <typename I, int WIDTH>
__global__ void __launch_bounds__(BLOCK)
    add_groups(I count, const I* __restrict__ starts, I* keys, long long* weights, bool is_weighted, I* counts,
               long long* diagonal, I* listed, unsigned long long* words)
{
    __shared__ I table_keys[SHARED_SLOTS];
    __shared__ long long table_weights[SHARED_SLOTS];
    Table<I, long long, true> own{table_keys + warp() * WARP_SLOTS, table_weights + warp() * WARP_SLOTS};
    long long c = global_thread() / WIDTH, begin = c < count ? starts[c] : 0, end = c < count ? starts[c + 1] : 0;
    bool is_mine = (lane() & (WIDTH - 1)) == 0 && c < count, is_short = end - begin <= WIDTH;
    Group<I> group{(I)c, begin, is_short ? end : begin, keys, weights, is_weighted, diagonal};
    int length = add_by_lanes<WIDTH>(group);
    for (unsigned left = __ballot_sync(ALL, is_mine && !is_short); left != 0; left &= left - 1) {
        int owner = __ffs(left) - 1;
        group.c = __shfl_sync(ALL, (I)c, owner);
        group.begin = __shfl_sync(ALL, begin, owner);
        group.end = __shfl_sync(ALL, end, owner);
        int found = 0;
        if (group.end - group.begin <= WARP)
            found = add_by_lanes<WARP>(group);
        else if (group.end - group.begin <= WARP_ROW)
            found = add_by_warp(group, own);
        else if (lane() == 0) {
            listed[take(&words[LISTED], 1ull)] = group.c;
            if (group.end - group.begin > MEDIUM_ROW) store_relaxed(&words[TOO_MANY], 1ull);
        }
        if (lane() == owner) length = found;
    }
    if (is_mine) counts[c] = (I)length;  // of those listed later
    if (!is_mine) length = 0;
    add_rows(length, length > 0, length, words);
}

// A block per listed group, which has at most MEDIUM_ROW entries: otherwise nothing is done.
template <typename I>
__global__ void __launch_bounds__(BLOCK)
    add_listed(const I* __restrict__ starts, I* keys, long long* weights, bool is_weighted, I* counts,
               long long* diagonal, const I* __restrict__ listed, unsigned long long* words)
{
    __shared__ I table_keys[SHARED_SLOTS];
    __shared__ long long table_weights[SHARED_SLOTS];
    Table<I, long long, true> table{table_keys, table_weights};
    if (load_relaxed(&words[TOO_MANY]) != 0) return;
    unsigned long long longest = 0, tied = 0, total = 0;
    for (long long k = blockIdx.x; k < (long long)load_relaxed(&words[LISTED]); k += gridDim.x) {
        I c = listed[k];
        Group<I> group{c, starts[c], starts[c + 1], keys, weights, is_weighted, diagonal};
        int slots = (int)slots_of(group.end - group.begin);
        table.clear(slots, threadIdx.x, BLOCK);
        __syncthreads();
        for (long long e = group.begin + threadIdx.x; e < group.end; e += BLOCK)
            table.add(slots, group.keys[e], group.weight(e));
        __syncthreads();
        int length = 0;
        for (int first = 0; first < slots; first += BLOCK) {
            int s = first + threadIdx.x, all;
            I key = s < slots ? table.label(s) : I(-1);
            bool is_outer = key >= 0 && key != c;
            int before = block_exclusive_sum((int)is_outer, &all);
            if (is_outer) group.put(group.begin + length + before, key, table.sum(s));
            if (key == c) diagonal[c] = table.sum(s);
            length += all;
        }
        if (threadIdx.x != 0) continue;
        counts[c] = (I)length;
        longest = longest < length ? length : longest;
        tied += length > 0;
        total += length;
    }
    add_rows(longest, tied, total, words);
}

// `width` lanes per group: its row, from where it was added up to where it belongs.
template <typename I>
__global__ void copy_rows(I count, const I* __restrict__ starts, const I* __restrict__ keys,
                          const long long* __restrict__ weights, const I* __restrict__ indptr, int width,
                          I* __restrict__ indices, long long* __restrict__ data)
{
    long long c = global_thread() / width;
    if (c >= count) return;
    long long end = indptr[c + 1], shift = starts[c] - indptr[c];
    for (long long e = indptr[c] + threadIdx.x % width; e < end; e += width) {
        indices[e] = keys[shift + e];
        data[e] = weights[shift + e];
    }
}
