// The proposals of a round, a tile of rows at a time.  The rows: proposal_rows.cuh; the tiles:
// row_reduce.cuh.
//
// A block first lists the rows of its tile that have room.  The entries are copied into shared memory
// side by side, whatever rows they belong to; where most rows are full, row by row.  Then a thread
// takes a short row, a warp a long one.
#pragma once
#include "matchwood/proposal_rows.cuh"

// Measured: bench/factors/factor_gpu.py, H200.
constexpr int SHORT_ROW = 40;  // entries; a warp takes longer rows.  With 24 a 27-point mesh takes 4 times as long
constexpr int DENSE = 2;       // quarters of the entries of a tile; when rows with room have more, all are copied
constexpr int COPY_LANES = 8;  // lanes that copy a row

template <typename T>
__device__ __forceinline__ void copy_async(T* to, const T* from)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from),
                 "n"((int)sizeof(T)) : "memory");
}

__device__ __forceinline__ void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// A row of the list: its first entry in the tile, its entries (1 to 512) and its place in the tile.
struct ListedRow {
    unsigned word;
    __device__ __forceinline__ static ListedRow of(int begin, int length, int row)
    {
        return {(unsigned)begin | (unsigned)(length - 1) << 12 | (unsigned)row << 21};
    }
    __device__ __forceinline__ int begin() const { return word & 4095; }
    __device__ __forceinline__ int length() const { return (int)(word >> 12 & 511) + 1; }
    __device__ __forceinline__ int row() const { return word >> 21; }
};

// The shared memory of a block for a tile.  A tile has at most TILE + TILE / 4 rows and entries
// together, so that the list of rows fits after the entries.
template <typename I, typename W, int N, bool HASH, int TILE>
struct TileSpace {
    static_assert(TILE <= 2048, "a ListedRow has no more bits");
    static constexpr int PLACES = (TILE + longest_short_row(TILE)) * 33 / 32 + UNROLL * 33;
    static constexpr int ENTRIES = PLACES * (int)sizeof(Entry<I, W>);
    static constexpr int PARTS = PROPOSAL_BLOCK * N * (int)sizeof(typename Propose<I, W, N, HASH, false>::Entry);
    alignas(16) unsigned char storage[ENTRIES > PARTS ? ENTRIES : PARTS];
    int short_rows, long_rows, entries;

    // of the first round, which reads no columns, and of the others
    __device__ __forceinline__ W* values() { return reinterpret_cast<W*>(storage); }
    __device__ __forceinline__ Entry<I, W>* entries_at() { return reinterpret_cast<Entry<I, W>*>(storage); }
    __device__ __forceinline__ ListedRow* list(int rows)
    {
        return reinterpret_cast<ListedRow*>(storage + sizeof(storage)) - rows;
    }
};

// Start to copy all entries of a tile.  APART: the distance of two in shared memory, in elements.
template <int APART, typename T>
__device__ __forceinline__ void copy_entries(T* to, const T* from, int entries)
{
    static_assert(PROPOSAL_BLOCK % WARP == 0, "product_place(k + PROPOSAL_BLOCK) is product_place(k) + product_place(PROPOSAL_BLOCK)");
    to += product_place(threadIdx.x) * APART;
    from += threadIdx.x;
#pragma unroll 4
    for (int k = threadIdx.x; k < entries; k += PROPOSAL_BLOCK, to += PROPOSAL_BLOCK * 33 / 32 * APART, from += PROPOSAL_BLOCK) copy_async(to, from);
}

// List the rows of a tile that have room, short ones from the front, long ones from the back.  Rows
// without entries have no neighbour to propose to.  All threads of the block call, and wait afterwards.
template <typename Op, typename I, typename Space>
__device__ __forceinline__ void list_rows(const I* __restrict__ indptr, I row, int rows, I entry, Op& op, bool all,
                                          Space& space)
{
    ListedRow* list = space.list(rows);
    for (int first = warp() * WARP; first < rows; first += PROPOSAL_BLOCK) {
        int r = first + lane(), length = 0, begin = 0;
        bool room = false;
        if (r < rows) {
            begin = (int)(indptr[row + r] - entry);
            length = (int)(indptr[row + r + 1] - entry) - begin;
            room = all || has_room(op.p.state[(row + r) >> 5], (unsigned)(row + r));
        }
        if (room && length == 0) op.finish((I)(row + r), op.start((I)(row + r)));
        bool is_short = room && length > 0 && length <= SHORT_ROW, is_long = room && length > SHORT_ROW;
        unsigned short_ones = __ballot_sync(ALL, is_short), long_ones = __ballot_sync(ALL, is_long);
        int sum = __reduce_add_sync(ALL, room ? length : 0), short_at = 0, long_at = 0;
        if (lane() == 0) {
            if (short_ones != 0) short_at = atomicAdd(&space.short_rows, __popc(short_ones));
            if (long_ones != 0) long_at = atomicAdd(&space.long_rows, __popc(long_ones));
            if (sum != 0) atomicAdd(&space.entries, sum);
        }
        short_at = __shfl_sync(ALL, short_at, 0) + __popc(short_ones & lanes_below());
        long_at = rows - 1 - __shfl_sync(ALL, long_at, 0) - __popc(long_ones & lanes_below());
        if (is_short || is_long) list[is_short ? short_at : long_at] = ListedRow::of(begin, length, r);
    }
}

// The proposals of a tile.  All threads of the block call, and get whether their rows proposed.
template <typename I, typename W, int N, bool HASH, bool FIRST, int TILE>
__device__ __forceinline__ bool propose_tile(const I* __restrict__ indptr, const Problem<I, W>& p, bool charged, I tile,
                                             TileSpace<I, W, N, HASH, TILE>& space)
{
    using Op = Propose<I, W, N, HASH, FIRST>;
    I row = p.tile_row[tile], next = p.tile_row[tile + 1], entry = p.tile_entry[tile];
    int entries = (int)(p.tile_entry[tile + 1] - entry);
    if (row < 0) {
        if (FIRST && threadIdx.x == 0) p.common[tile] = 0;
        return propose_chunk<I, W, N, HASH, FIRST>(p, charged, tile, (I)~row, entry, entries, space.storage);
    }
    Op op{p, charged, false};
    int rows = (int)((next < 0 ? ~next : next) - row);
    W* values = space.values();
    Entry<I, W>* staged = space.entries_at();
    const ListedRow* list = space.list(rows);
    const W* data = p.data + entry;
    typename Op::Key differ = 0, common = FIRST ? 0 : WeightKey<W>::of(p.common[tile]);
    if (FIRST) copy_entries<1>(values, data, entries);
    if (threadIdx.x == 0) space.short_rows = space.long_rows = space.entries = 0;
    __syncthreads();
    list_rows(indptr, row, rows, entry, op, FIRST, space);
    __syncthreads();
    int short_rows = space.short_rows, long_rows = space.long_rows;
    if (!FIRST) {
        const I* indices = p.indices + entry;
        if (space.entries * 4 > entries * DENSE) {
            copy_entries<sizeof(Entry<I, W>) / sizeof(I)>(&staged->col, indices, entries);
            if (common == 0) copy_entries<sizeof(Entry<I, W>) / sizeof(W)>(&staged->value, data, entries);
        } else {
            for (int r = threadIdx.x / COPY_LANES; r < short_rows + long_rows; r += PROPOSAL_BLOCK / COPY_LANES) {
                ListedRow listed = list[r < short_rows ? r : rows - 1 - (r - short_rows)];
                int end = listed.begin() + listed.length();
                for (int k = listed.begin() + threadIdx.x % COPY_LANES; k < end; k += COPY_LANES) {
                    Entry<I, W>& entry = staged[product_place(k)];
                    copy_async(&entry.col, &indices[k]);
                    if (common == 0) copy_async(&entry.value, &data[k]);
                }
            }
        }
    }
    wait_for_copies();
    __syncthreads();
    if (FIRST) common = WeightKey<W>::of(values[0]);
    Entries<I, W> from{values, staged, p.indices + entry, common};
    for (int r = warp(); r < long_rows; r += PROPOSAL_BLOCK / WARP) {
        ListedRow listed = list[rows - 1 - r];
        propose_long(from, (I)(row + listed.row()), listed.begin(), listed.begin() + listed.length(), op, differ);
    }
    for (int r = threadIdx.x; r < short_rows; r += PROPOSAL_BLOCK) {
        ListedRow listed = list[r];
        propose_short(from, (I)(row + listed.row()), listed.begin(), listed.begin() + listed.length(), op, differ);
    }
    if (FIRST) {
        bool mixed = __syncthreads_or(differ != 0);
        if (threadIdx.x == 0) p.common[tile] = mixed || entries == 0 ? W(0) : WeightKey<W>::weight(common);
    }
    return op.proposed;
}
