// [0,n]-factors on the GPU: one kernel for all rounds.  Host: gpu.py.  The rule and the paper:
// __init__.py.
//
//   begin     all vertices have room; their charges for the first round
//   propose   one pass over the matrix, a tile of rows at a time: each vertex with room writes
//             those it prefers into its free places
//   confirm   one thread per vertex: which proposals were answered, whether room is left, and the
//             charge of the next round
//   settle    one thread per vertex: unanswered places become -1, the preferred neighbour first
//
// A round is `propose` and `confirm`; after each all blocks wait for each other.  `begin` is left out
// where the first round has no charges: there all vertices have room, and no state is read.
//
// A bit of `confirmed` says whether a place is confirmed or free; free places hold the proposals of
// this round, or old ones that are not read.  `state` has a word for 32 vertices
// (matchwood/proposals.cuh), of which `propose` loads half a word for each entry; for millions of
// vertices they lie in the L2 cache.  Charges are hashed once per vertex and round, where the word is
// made.  Hashing them for every entry would cost some 170 instructions per entry (counted, not
// timed), more than all other work.  `common` has the weight that all entries of a tile share, or 0: in later
// rounds such a tile needs no weights, and its rows are read up to the first vertices with room.
//
// Races: `propose` reads `state` and `confirmed`, and each row writes its own places.  `confirm`
// reads all places and writes none; each vertex has its own byte of `confirmed`, each warp its own
// word of `state`.  Flags are set to 1 by relaxed stores, in any order.
#include "matchwood/atomics.cuh"
#include "matchwood/edge_order.cuh"
#include "matchwood/grid_barrier.cuh"
#include "matchwood/hashing.cuh"
#include "matchwood/proposals.cuh"

// ---- propose: a tile of rows at a time.  The rows: proposals.cuh; the tiles: row_reduce.cuh.
//
// A block first lists the rows of its tile that have room.  The entries are copied into shared memory
// side by side, whatever rows they belong to; where most rows are full, row by row.  Then a thread
// takes a short row, a warp a long one.

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

// A row of the list: its first entry in the tile, the number of entries (1 to 512), its place in the tile.
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

    // values: in the first round, which reads no columns; entries_at: in the others
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

// ---- rounds

// Words of `flags`: three that the host reads; whether any vertex proposed, and was answered, in an even and in an
// odd round; two of the barrier.
constexpr int STOP = 0, ROUNDS = 1, IDLE = 2, PROPOSED = 3, ANSWERED = 5, BARRIER = 7;
[[maybe_unused]] constexpr int WORDS = 9;
// What a launch does.
constexpr int BEGIN = 1, PROPOSE = 2, CONFIRM = 4, SETTLE = 8;

// Blocks of a multiprocessor; more would have too few registers.
template <typename W, int N> constexpr int BLOCKS = N <= 2 && sizeof(W) == 4 ? 10 : 6;

struct Charges {
    long long period, uncharged;  // on in all rounds k but those with k % period == uncharged
    unsigned long long barrier, seed;
    unsigned int r;  // number of the round
    bool on;

    __device__ __forceinline__ bool on_in(int k) const { return k % period != uncharged; }
    __device__ __forceinline__ void set_round(int k)
    {
        on = on_in(k);
        r = (unsigned)(hash2(0, k, seed) >> 32) | 1;
    }
    __device__ __forceinline__ bool of(long long v) const { return on && random_bit((unsigned)v, r, barrier); }
};

__device__ __forceinline__ long long whole_warps(long long rows) { return (rows + WARP - 1) / WARP * WARP; }

// ---- begin ----

// One thread per vertex, whole warps.
template <typename I, typename W>
__device__ __forceinline__ void begin(const Problem<I, W>& p, I rows, I tiles, const Charges& charges)
{
    for (long long t = global_thread(); t < tiles; t += all_threads()) p.common[t] = 0;
    for (long long v = global_thread(); v < whole_warps(rows); v += all_threads()) {
        bool room = v < rows;
        if (room) p.confirmed[v] = 0;
        write_state(&p.state[v / 32], room, room && charges.of(v));
    }
}

// ---- confirm ----

// The places of v that are confirmed now; *any becomes true when v has proposed.
template <typename I, int N>
__device__ __forceinline__ unsigned answered(const I* neighbours, int n, I v, unsigned taken, bool* any)
{
    unsigned now = taken;
    if (N == 2 && n == 2) {
        const Two<I>* pairs = reinterpret_cast<const Two<I>*>(neighbours);
        Two<I> mine = pairs[v], none = {I(-1), I(-1)};
        bool first = !(taken & 1) && mine.first >= 0, second = !(taken & 2) && mine.second >= 0;
        Two<I> one = first ? pairs[mine.first] : none, other = second ? pairs[mine.second] : none;
        *any = first || second;
        if (one.first == v || one.second == v) now |= 1;
        if (other.first == v || other.second == v) now |= 2;
        return now;
    }
#pragma unroll
    for (int s = 0; s < N; ++s) {
        if (s >= n || (taken >> s & 1)) continue;
        I w = neighbours[(long long)v * n + s];
        if (w < 0) continue;
        *any = true;
        bool mutual = false;
#pragma unroll
        for (int t = 0; t < N; ++t)
            if (t < n) mutual |= neighbours[(long long)w * n + t] == v;
        if (mutual) now |= 1u << s;
    }
    return now;
}

// One thread per vertex, whole warps.  A vertex that found no neighbour in a round without charges
// never will, and its neighbours are full: it counts as full too, unless the matrix is not symmetric
// (`directed`); there ANSWERED is set as well where anything was confirmed.  `begun`: states can be read.
template <typename I, typename W, int N>
__device__ __forceinline__ void confirm(const Problem<I, W>& p, I rows, bool begun, bool charged,
                                        const Charges& next, bool directed, int* news_flag)
{
    unsigned all = (1u << p.n) - 1;
    for (long long v = global_thread(); v < whole_warps(rows); v += all_threads()) {
        bool room = v < rows, news = false;
        if (begun) {
            unsigned long long word = p.state[v / 32];
            if (word == 0) continue;
            room = room && has_room(word, (unsigned)v);
        }
        if (room) {
            unsigned taken = begun ? p.confirmed[v] : 0;
            bool any = false;
            unsigned now = answered<I, N>(p.neighbours, p.n, (I)v, taken, &any);
            news = now != taken;
            if (news || !begun) p.confirmed[v] = (unsigned char)now;
            room = now != all && (charged || any || directed);
        }
        write_state(&p.state[v / 32], room, room && next.of(v));
        if (directed && __any_sync(ALL, news) && lane() == 0) store_relaxed(news_flag, 1);
    }
}

// ---- settle ----

// One thread per vertex.  Most neighbours are in place already, and nothing is written for them.
template <typename I, typename W>
__device__ __forceinline__ void settle(const Problem<I, W>& p, I rows, bool by_hash)
{
    int n = p.n;
    for (long long v = global_thread(); v < rows; v += all_threads()) {
        unsigned taken = p.confirmed[v];
        I* list = p.neighbours + v * n;
        W* weight = p.weights + v * n;
        int kept = 0;
        for (int s = 0; s < n; ++s) {
            if (!(taken >> s & 1)) continue;
            I w = list[s];
            W heavy = weight[s];
            int place = kept++;
            for (; place > 0 && prefers(heavy, (I)v, w, weight[place - 1], (I)v, list[place - 1], p.seed, by_hash); --place) {
                list[place] = list[place - 1];
                weight[place] = weight[place - 1];
            }
            if (place == s) continue;
            list[place] = w;
            weight[place] = heavy;
        }
        for (; kept < n; ++kept) {
            list[kept] = I(-1);
            weight[kept] = W(0);
        }
    }
}

// ---- all of it ----

// The `steps` of the rounds k to last - 1, on a grid of resident blocks.  Stops when the factor is
// maximal, or after `most_idle` rounds in a row that confirm nothing (`idle` of them before this launch).
// Settles then, or after the last round where SETTLE says so.  Not to be launched after it has stopped.
template <typename I, typename W, int N, bool HASH, int TILE>
__global__ void __launch_bounds__(PROPOSAL_BLOCK, BLOCKS<W, N>)
rounds(I rows, I tiles, const I* __restrict__ indptr, const I* __restrict__ indices, const W* __restrict__ data,
       const I* __restrict__ tile_row, const I* __restrict__ tile_entry, unsigned char* partials,
       unsigned int* chunks_done, unsigned long long* state, unsigned char* confirmed, W* common, I* neighbours,
       W* weights, int n, long long period, long long uncharged, unsigned long long barrier, unsigned long long seed,
       bool directed, bool fresh, int steps, int k, int last, long long idle, long long most_idle, int* flags)
{
    __shared__ TileSpace<I, W, N, HASH, TILE> space;
    Problem<I, W> p{indptr, indices, data, tile_row, tile_entry, partials, chunks_done,
                    state, confirmed, common, neighbours, weights, seed, n};
    Charges charges{period, uncharged, barrier, seed, 0, false};
    GridBarrier grid(reinterpret_cast<unsigned int*>(flags) + BARRIER);
    if (steps & BEGIN) {
        charges.set_round(k);
        begin(p, rows, tiles, charges);
        grid.wait();
    }
    bool done = steps & SETTLE;
    for (; k < last; ++k) {
        bool first = k == 0 && fresh, charged = charges.on_in(k);
        int* proposed = &flags[PROPOSED + k % 2];
        int* news = &flags[ANSWERED + k % 2];
        if (steps & PROPOSE) {
            bool any = false;
            for (I tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
                if (first)
                    any |= propose_tile<I, W, N, HASH, true, TILE>(indptr, p, false, tile, space);
                else
                    any |= propose_tile<I, W, N, HASH, false, TILE>(indptr, p, charged, tile, space);
                __syncthreads();
            }
            if (__any_sync(ALL, any) && lane() == 0 && load_relaxed(proposed) == 0) store_relaxed(proposed, 1);
            if (!(steps & CONFIRM)) continue;
            grid.wait();
        }
        bool stop = !charged && load_relaxed(proposed) == 0;  // line 23: maximal
        if (global_thread() == 0) {  // not read before the next round
            store_relaxed(&flags[PROPOSED + (k + 1) % 2], 0);
            store_relaxed(&flags[ANSWERED + (k + 1) % 2], 0);
        }
        charges.set_round(k + 1);
        if (!stop || first) confirm<I, W, N>(p, rows, !first, charged, charges, directed, news);
        grid.wait();
        if (directed) idle = load_relaxed(news) ? 0 : idle + 1;
        if (global_thread() == 0) flags[STOP] = stop, flags[ROUNDS] = k + 1, flags[IDLE] = (int)idle;
        if (stop || idle == most_idle) {
            done = true;
            break;
        }
    }
    if (done) settle(p, rows, HASH);
}
