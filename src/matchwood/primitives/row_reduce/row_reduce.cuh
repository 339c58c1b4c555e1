// Reduce over the entries of each row with an operation of your own: the generalised SpMV.  What
// it is for, and the instances: primitives/row_reduce.  The tiles: primitives/row_reduce/gpu.py.
//
// An operation is a struct with two types and five functions:
//
//     using Product, Accumulator;                       // trivial types of 4, 8, 12, ... bytes
//     Product multiply(I k, I col)                      // entry k; reads its value, x[col], ...
//     Accumulator start(I row)                          // neutral: merging two of them is one
//     void add(Accumulator& a, Product p)               // one more entry
//     void merge(Accumulator& a, const Accumulator& b)  // associative and commutative
//     void finish(I row, const Accumulator& a)          // once for every row: write the result
//
// What depends on the row belongs in `start` (which may keep it in the accumulator) and `add`.
// `finish` may also collect sums in members of the struct, for the block to reduce afterwards.
//
// How: the work is cut into tiles of about TILE rows and entries together, so that blocks are
// balanced whatever the lengths of rows are.  A block reads its entries side by side, whatever
// rows they belong to, and leaves their products in shared memory; all loads are coalesced and
// many are in flight.  Then 1, 2, 4 ... 32 lanes take a row each, by the mean length in the tile;
// up to a mean of 15 it is one, which adds in the order of the row, as a plain loop does.
// A row longer than TILE / 4 is cut into chunks, a block each; the last block to finish a chunk
// merges them in order.  The result therefore depends on the matrix alone, not on scheduling.
#pragma once
#include "matchwood/threads.cuh"

constexpr int ROW_BLOCK = 256;   // threads
constexpr int ROW_CHUNK = 8192;  // entries of a chunk
constexpr int ROW_EACH = 8;      // entries that a lane adds on average, at least
constexpr int ROW_MOST = 64;     // entries that a lane adds, at most; a warp takes longer rows
constexpr int CHUNK_AHEAD = 4;   // entries of a chunk that a thread loads before it uses the first

// TILE, the rows and entries of a tile together, is a template parameter: 2048 is best where
// products have 4 bytes or `multiply` reads no vector, 1024 where 8 bytes would leave too little
// of the L1 cache for the vector.  SpMV in float64 on an H200, 1024 against 2048: R-MAT 22 1.15
// against 2.00 ms, 27-point mesh 0.234 against 0.259; in float32 the 9-point grid takes 0.163 ms
// with 2048 and 0.200 with 1024 (bench/engines/gpu/primitives.py).
constexpr int longest_short_row(int tile) { return tile / 4; }
constexpr int entries_ahead(int tile) { return tile / ROW_BLOCK; }

// Move a value of any size between lanes.
template <typename T>
__device__ __forceinline__ T shuffle_down(const T& value, int step)
{
    static_assert(sizeof(T) % 4 == 0, "shuffle_down moves words of 4 bytes");
    union Words {
        T value;
        unsigned int word[sizeof(T) / 4];
        __device__ __forceinline__ Words() {}
    } words;
    words.value = value;
#pragma unroll
    for (int w = 0; w < (int)(sizeof(T) / 4); ++w)
        words.word[w] = __shfl_down_sync(ALL, words.word[w], step);
    return words.value;
}

// The first of every `width` lanes gets what all of them hold.  All lanes of the warp call.
template <typename Op>
__device__ __forceinline__ void merge_lanes(Op& op, typename Op::Accumulator& sum, int width)
{
    for (int step = width / 2; step > 0; step /= 2) op.merge(sum, shuffle_down(sum, step));
}

// Where products lie in shared memory: a gap after every 32 keeps rows whose length is a power of
// two from meeting in the same bank.
__device__ __forceinline__ int product_place(int k) { return k + (k >> 5); }

// What the block of a tile works on.
template <typename I>
struct RowTiles {
    const I* row;    // first row of a tile; ~row for a chunk of a long row
    const I* entry;  // first entry of a tile; both have one element more than there are tiles
};

template <int TILE, typename I, typename Op>
__device__ __forceinline__ void reduce_short_rows(const I* __restrict__ indptr,
                                                  const I* __restrict__ indices, I row, int rows,
                                                  I entry, int entries, Op& op,
                                                  typename Op::Product* products)
{
    using Product = typename Op::Product;
    using Accumulator = typename Op::Accumulator;
    constexpr int AHEAD = entries_ahead(TILE);
    __shared__ unsigned short starts[TILE + 1];

    for (int r = threadIdx.x; r <= rows; r += ROW_BLOCK)
        starts[r] = (unsigned short)(indptr[row + r] - entry);
    for (int first = threadIdx.x; first < entries; first += AHEAD * ROW_BLOCK) {
        I col[AHEAD];
        Product product[AHEAD];
        // past the end, read the last entry again: no branches between the loads
#pragma unroll
        for (int a = 0; a < AHEAD; ++a)
            col[a] = indices[entry + min(first + a * ROW_BLOCK, entries - 1)];
#pragma unroll
        for (int a = 0; a < AHEAD; ++a)
            product[a] = op.multiply(entry + min(first + a * ROW_BLOCK, entries - 1), col[a]);
#pragma unroll
        for (int a = 0; a < AHEAD; ++a)
            if (first + a * ROW_BLOCK < entries) products[product_place(first + a * ROW_BLOCK)] = product[a];
    }
    __syncthreads();

    // as many lanes for a row as have ROW_EACH entries to add on average
    int width = 1;
    while (width < WARP && entries >= 2 * ROW_EACH * width * rows) width *= 2;
    int together = ROW_BLOCK / width;  // rows at a time
    int most = ROW_MOST * width;       // longer rows are left to whole warps
    for (int first = 0; first < rows; first += together) {
        int r = first + threadIdx.x / width;
        int at = min(r, rows - 1);
        int begin = starts[at], end = starts[at + 1];
        bool mine = r < rows && end - begin <= most;
        Accumulator sum = op.start(row + at);
        if (mine)
            for (int k = begin + threadIdx.x % width; k < end; k += width)
                op.add(sum, products[product_place(k)]);
        merge_lanes(op, sum, width);
        if (mine && threadIdx.x % width == 0) op.finish(row + r, sum);
    }
    if (width == WARP) return;
    for (int first = warp() * WARP; first < rows; first += ROW_BLOCK) {
        int r = first + lane();
        unsigned left = __ballot_sync(ALL, r < rows && starts[min(r + 1, rows)] - starts[min(r, rows)] > most);
        for (; left != 0; left &= left - 1) {
            int at = first + __ffs(left) - 1;
            Accumulator sum = op.start(row + at);
            for (int k = starts[at] + lane(); k < starts[at + 1]; k += WARP)
                op.add(sum, products[product_place(k)]);
            merge_lanes(op, sum, WARP);
            if (lane() == 0) op.finish(row + at, sum);
        }
    }
}

// Merge `count` accumulators in a fixed order; right in lane 0.  All lanes of the warp call.  Not
// inlined, since it is seldom reached and large for operations with large accumulators.
template <typename I, typename Op>
__device__ __noinline__ typename Op::Accumulator merge_list(
    Op op, I row, const typename Op::Accumulator* list, unsigned int count)
{
    typename Op::Accumulator sum = op.start(row);
    for (unsigned int c = lane(); c < count; c += WARP) op.merge(sum, list[c]);
    merge_lanes(op, sum, WARP);
    return sum;
}

// One chunk of a long row; the last block to finish one merges them all.
// Races: partial results are written before, and read after, a fence around the count of chunks.
template <typename I, typename Op>
__device__ __forceinline__ void reduce_chunk(const I* __restrict__ indptr,
                                             const I* __restrict__ indices, I row, I entry,
                                             int entries, Op& op, unsigned char* partials,
                                             unsigned int* chunks_done,
                                             typename Op::Accumulator* parts)
{
    using Accumulator = typename Op::Accumulator;
    Accumulator sum = op.start(row);
    for (int first = threadIdx.x; first < entries; first += CHUNK_AHEAD * ROW_BLOCK) {
        I col[CHUNK_AHEAD];
        typename Op::Product product[CHUNK_AHEAD];
#pragma unroll
        for (int a = 0; a < CHUNK_AHEAD; ++a)
            col[a] = indices[entry + min(first + a * ROW_BLOCK, entries - 1)];
#pragma unroll
        for (int a = 0; a < CHUNK_AHEAD; ++a)
            product[a] = op.multiply(entry + min(first + a * ROW_BLOCK, entries - 1), col[a]);
#pragma unroll
        for (int a = 0; a < CHUNK_AHEAD; ++a)
            if (first + a * ROW_BLOCK < entries) op.add(sum, product[a]);
    }
    parts[threadIdx.x] = sum;
    __syncthreads();
    if (warp() != 0) return;

    sum = merge_list(op, row, parts, ROW_BLOCK);
    I row_start = indptr[row];
    unsigned int chunks = (unsigned int)((indptr[row + 1] - row_start + ROW_CHUNK - 1) / ROW_CHUNK);
    if (chunks > 1) {
        long long first_tile = blockIdx.x - (long long)(entry - row_start) / ROW_CHUNK;
        Accumulator* partial = reinterpret_cast<Accumulator*>(partials) + first_tile;
        bool last = false;
        if (lane() == 0) {
            partial[blockIdx.x - first_tile] = sum;
            __threadfence();
            last = atomicAdd(&chunks_done[first_tile], 1u) == chunks - 1;
            __threadfence();
        }
        if (!__shfl_sync(ALL, last, 0)) return;
        sum = merge_list(op, row, partial, chunks);
    }
    if (lane() == 0) op.finish(row, sum);
}

// One block per tile, ROW_BLOCK threads; all threads call.  Threads return at different times: wait
// for the block before going on together.  The tiles must have been made for this TILE.
// partials and chunks_done are null where no row has more than one chunk (gpu.py, Tiles.scratch).
template <int TILE, typename I, typename Op>
__device__ __forceinline__ void reduce_rows(const I* __restrict__ indptr,
                                            const I* __restrict__ indices, RowTiles<I> tiles,
                                            Op& op, unsigned char* partials,
                                            unsigned int* chunks_done)
{
    constexpr int PRODUCTS =
        (TILE + longest_short_row(TILE)) * 33 / 32 * (int)sizeof(typename Op::Product);
    constexpr int PARTS = ROW_BLOCK * (int)sizeof(typename Op::Accumulator);
    __shared__ alignas(16) unsigned char storage[PRODUCTS > PARTS ? PRODUCTS : PARTS];
    I row = tiles.row[blockIdx.x], next = tiles.row[blockIdx.x + 1];
    I entry = tiles.entry[blockIdx.x], end = tiles.entry[blockIdx.x + 1];
    if (row >= 0)
        reduce_short_rows<TILE>(indptr, indices, row, (int)((next < 0 ? ~next : next) - row), entry,
                          (int)(end - entry), op,
                          reinterpret_cast<typename Op::Product*>(storage));
    else
        reduce_chunk(indptr, indices, (I)~row, entry, (int)(end - entry), op, partials,
                     chunks_done, reinterpret_cast<typename Op::Accumulator*>(storage));
}
