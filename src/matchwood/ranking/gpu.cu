// PageRank on the GPU.  Host side: gpu.py; the rule: __init__.py.
//
// A warp has a piece: rows that follow each other, with at most MOST_ENTRIES entries.  Its lanes first
// read all entries of the piece side by side, whatever rows they are of, into shared memory: many
// independent reads hide how long each takes.  Then the rows are added up there, and become scores.
// A row of more than LONG entries has pieces of its own, each of which leaves its sum.
//
// Where neighbouring rows have about the same length, a lane has a row instead: then lanes that follow
// each other mostly read words that follow each other.
//
// An iteration is one launch, or two:
//   pull           all pieces; or pull_rows: all rows
//   finish_hubs    a warp to a row of more than LONG entries, where there are any
// Each warp of the next iteration adds up the sums over all vertices.  So no block has to be the last one
// here, which needs a fence in each: with that an iteration took an eighth longer (grid 2048^2, H200),
// perhaps since a fence empties the caches that neighbours read from.  If the last piece of a long row made
// its score in pull, an iteration took 2 % longer (R-MAT 22).
//
// Sums over all vertices are integers in units of 2^-60, which are the same in any order of additions;
// they are at most 2.  So the same rows and pieces give the same bits on any device.
//
// Races: what vertices give lies in two arrays that take turns, sums in three: one is read, one is added
// to, one is cleared.  A row writes its own words alone.  After the last iteration, launches that are under
// way write no scores.
#include "matchwood/atomics.cuh"
#include "matchwood/edges.cuh"
#include "matchwood/threads.cuh"

constexpr int BLOCK = 256;                 // threads
constexpr int WARPS = BLOCK / WARP;
constexpr int SPAN = 512;                  // entries and rows of a piece, but for its last row
constexpr int LONG = 256;                  // entries; longer rows have pieces of their own
constexpr int MOST_ENTRIES = SPAN + LONG;  // entries of a piece
constexpr int EACH = MOST_ENTRIES / WARP;  // entries for a lane
[[maybe_unused]] constexpr int ROW_SHIFT = 16;  // the size of a piece: rows << ROW_SHIFT | entries
constexpr int SLOTS = 64;                  // words for each sum, so that few warps add to the same one
constexpr int SETS = 3;                    // sets of sums, which take turns

// What is asked of an iteration besides what vertices give: by how much scores change, and the scores.
constexpr int CHANGES = 1, SCORES = 2;

// Words of a call, as doubles.
[[maybe_unused]] constexpr int ERROR = 0, ITERATIONS = 1, DONE = 2, WORDS = 3;

// Sums over all vertices: of changes, and of what vertices without arcs hold.
struct Sums {
    unsigned long long* words;  // [0, SLOTS): changes; [SLOTS, 2 SLOTS): held

    static constexpr double UNIT = 1.0 / (double)(1ll << 60);
    static constexpr int HALF = WARP / 2;

    // What a warp has found; all lanes call.
    __device__ __forceinline__ void add(long long piece, double changed, double held) const
    {
        changed = warp_reduce(changed, Plus());
        held = warp_reduce(held, Plus());
        if (lane() != 0) return;
        unsigned long long* mine = words + (piece & (SLOTS - 1));
        if (changed != 0) atomicAdd(mine, (unsigned long long)__double2ll_rn(changed / UNIT));
        if (held != 0) atomicAdd(mine + SLOTS, (unsigned long long)__double2ll_rn(held / UNIT));
    }

    // The lanes of the lower half have changes, the others what is held.
    __device__ __forceinline__ long long part() const
    {
        const unsigned long long* mine = words + lane() / HALF * SLOTS + lane() % HALF;
        long long sum = 0;
#pragma unroll
        for (int slot = 0; slot < SLOTS; slot += HALF) sum += (long long)mine[slot];
        return sum;
    }
};

// What all vertices did in the iteration before, and where this one adds to.
struct Turn {
    Sums before, now, after;
    double error, lost;

    // Sums of set `turn` are made by this launch.
    __device__ __forceinline__ Turn(int turn, unsigned long long* sums)
        : before{sums + (turn + SETS - 1) % SETS * 2 * SLOTS},
          now{sums + turn * 2 * SLOTS},
          after{sums + (turn + 1) % SETS * 2 * SLOTS}
    {
    }

    // Add up; `part` is that of `before`.  All lanes of the warp call.
    __device__ __forceinline__ void look(long long part)
    {
        part = warp_reduce<Sums::HALF>(part, Plus());
        error = (double)__shfl_sync(ALL, part, 0) * Sums::UNIT;
        lost = (double)__shfl_sync(ALL, part, Sums::HALF) * Sums::UNIT;
    }

    // By one warp of the grid: clear the next sums, and note what is known.  Once done, sums stay 0, so that
    // later launches see no change either.
    __device__ __forceinline__ void note(double limit, double* words) const
    {
        for (int slot = lane(); slot < 2 * SLOTS; slot += WARP) after.words[slot] = 0;
        if (lane() != 0 || words[DONE] != 0) return;
        words[ERROR] = error;
        if (error < limit)
            words[DONE] = 1;
        else
            words[ITERATIONS] += 1;
    }
};

// The score of a vertex from what it pulled; adds to the warp's sums: changes, and what is held.
template <typename W>
struct Scores {
    const W* share;
    const W* jump;      // null: the same everywhere
    const W* dangling;  // null: as jump
    W* scores;
    W* given;
    double damping, even, mass;
    int asked;

    __device__ __forceinline__ void take(long long v, double pulled, double& change, double& lost) const
    {
        take(v, pulled, share[v], asked & CHANGES ? scores[v] : W(0), change, lost);
    }

    // `part`: its share; `before`: its score so far.
    __device__ __forceinline__ void take(long long v, double pulled, W part, W before, double& change,
                                         double& lost) const
    {
        double to = jump == nullptr ? even : (double)jump[v];
        double after = dangling == nullptr ? to : (double)dangling[v];
        W score = (W)(damping * pulled + (mass * after + (1.0 - damping) * to));
        if (asked & CHANGES) change += fabs((double)score - (double)before);
        if (part == W(0)) lost += (double)score;
        if (asked & SCORES) scores[v] = score;
        given[v] = score * part;
    }
};

// One thread to a vertex: what it gives at first, and what those without arcs hold.
template <typename W>
__global__ void begin(long long n, const W* share, const W* scores, W* given, unsigned long long* sums)
{
    long long v = global_thread();
    double lost = 0;
    if (v < n) {
        given[v] = scores[v] * share[v];
        if (share[v] == W(0)) lost = (double)scores[v];
    }
    Sums{sums}.add(v / WARP, 0.0, lost);
}

// What entries k * WARP + lane of a piece bring, for k = FROM .. TO - 1.
template <int FROM, int TO, typename I, typename W>
__device__ __forceinline__ void gather(long long from, int count, const I* __restrict__ indices,
                                       const W* __restrict__ weights, const W* __restrict__ given, W (&received)[EACH])
{
    I who[EACH];
#pragma unroll
    for (int k = FROM; k < TO; ++k) {
        int at = k * WARP + lane();
        who[k] = at < count ? __ldcs(&indices[from + at]) : I(-1);  // once: the cache is for `given`
    }
#pragma unroll
    for (int k = FROM; k < TO; ++k) received[k] = who[k] >= 0 ? given[who[k]] : W(0);
    if (weights == nullptr) return;
#pragma unroll
    for (int k = FROM; k < TO; ++k)
        if (who[k] >= 0) received[k] *= weights[from + (k * WARP + lane())];
}

// The rows of a piece, from the values of all its entries; `from` is the first entry.
template <typename I, typename W>
__device__ __forceinline__ void add_rows(long long first, int rows, long long from, const I* __restrict__ indptr,
                                         const W* values, const Scores<W>& all, double& change, double& lost)
{
    int lanes = 1;
    while (2 * lanes * rows <= WARP) lanes *= 2;
    for (int start = 0; start < rows; start += WARP / lanes) {
        int slot = start + lane() / lanes, mine = lane() & (lanes - 1);
        long long v = first + slot;
        W sum = 0;
        if (slot < rows) {
            int end = (int)(indptr[v + 1] - from);
#pragma unroll 4
            for (int at = (int)(indptr[v] - from) + mine; at < end; at += lanes) sum += values[at];
        }
        for (int step = lanes / 2; step > 0; step /= 2) sum += __shfl_xor_sync(ALL, sum, step);
        if (slot < rows && mine == 0) all.take(v, (double)sum, change, lost);
    }
}

// Piece p begins at entry[p], and with row[p] unless it is of a long row; those pieces are first.
template <typename I, typename W>
__global__ void __launch_bounds__(BLOCK)
    pull(I pieces, const I* __restrict__ row, const I* __restrict__ entry, const int* __restrict__ size,
         const I* __restrict__ indptr, const I* __restrict__ indices, const W* __restrict__ weights,
         const W* __restrict__ given, const W* share, const W* jump, const W* dangling, double damping, double even,
         double limit, int turn, int asked, double* words, W* scores, W* next_given, unsigned long long* sums,
         double* hub_sums)
{
    __shared__ W all_values[WARPS][MOST_ENTRIES];
    long long p = global_thread() / WARP;
    if (p >= pieces) return;
    long long first = row[p], from = entry[p];
    int rows = size[p] >> ROW_SHIFT, count = size[p] & ((1 << ROW_SHIFT) - 1);
    Turn turns(turn, sums);
    W received[EACH];
    constexpr int MOST_LANES = SPAN / WARP;
    gather<0, MOST_LANES>(from, count, indices, weights, given, received);
    if (count > SPAN)
        gather<MOST_LANES, EACH>(from, count, indices, weights, given, received);
    else
#pragma unroll
        for (int k = MOST_LANES; k < EACH; ++k) received[k] = W(0);
    W* values = all_values[warp()];
    if (rows == 0) {
        double sum = 0;
#pragma unroll
        for (int k = 0; k < EACH; ++k) sum += (double)received[k];
        sum = warp_reduce(sum, Plus());
        if (lane() == 0) hub_sums[p] = sum;
    } else {
#pragma unroll
        for (int k = 0; k < EACH; ++k) values[k * WARP + lane()] = received[k];
    }
    __syncwarp();
    turns.look(turns.before.part());  // not earlier: the registers are for what is read
    if (p == 0) turns.note(limit, words);
    if (rows == 0 || turns.error < limit) return;
    Scores<W> all{share, jump, dangling, scores, next_given, damping, even, damping * turns.lost, asked};
    double change = 0, lost = 0;
    add_rows(first, rows, from, indptr, values, all, change, lost);
    turns.now.add(p, change, lost);
}

// A lane to ROWS rows, WARP apart.  The indices of the warp's rows go through BYTES of shared memory, where
// they fit.  AT_ONCE entries of each row are read at the same time.
template <typename I, typename W, int ROWS, int AT_ONCE, int BYTES>
__global__ void __launch_bounds__(BLOCK)
    pull_rows(I n, const I* __restrict__ indptr, const I* __restrict__ indices, const W* __restrict__ given,
              const W* share, const W* jump, const W* dangling, double damping, double even, double limit, int turn,
              int asked, double* words, W* scores, W* next_given, unsigned long long* sums)
{
    constexpr int STAGE = BYTES / sizeof(I);
    __shared__ I staged[WARPS][STAGE];
    long long group = global_thread() / WARP, first = group * (WARP * ROWS);
    if (first >= n) return;
    long long last = first + WARP * ROWS < n ? first + WARP * ROWS : (long long)n;
    long long from = indptr[first], count = indptr[last] - from;
    long long begin[ROWS];
    int length[ROWS], longest = 0;
    W part[ROWS], before[ROWS], sum[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        long long v = first + r * WARP + lane();
        bool is_row = v < n;
        begin[r] = is_row ? indptr[v] : 0;
        length[r] = is_row ? (int)(indptr[v + 1] - begin[r]) : 0;
        part[r] = is_row ? share[v] : W(1);
        before[r] = is_row && asked & CHANGES ? scores[v] : W(0);
        sum[r] = W(0);
        longest = longest < length[r] ? length[r] : longest;
    }
    Turn turns(turn, sums);
    long long known = turns.before.part();  // looked at below, so that the reads before need not wait for it
    const I* entries = indices;
    long long zero = 0;  // the entry with which `entries` begins
    if (count <= STAGE) {
        I* mine = staged[warp()];
#pragma unroll 8
        for (int k = lane(); k < (int)count; k += WARP) mine[k] = indices[from + k];
        __syncwarp();
        entries = mine;
        zero = from;
    }
    for (int k = 0; k < longest; k += AT_ONCE) {
        W received[ROWS][AT_ONCE];
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
#pragma unroll
            for (int j = 0; j < AT_ONCE; ++j)
                received[r][j] = k + j < length[r] ? given[entries[begin[r] - zero + (k + j)]] : W(0);
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
#pragma unroll
            for (int j = 0; j < AT_ONCE; ++j) sum[r] += received[r][j];
    }
    turns.look(known);
    if (group == 0) turns.note(limit, words);
    if (turns.error < limit) return;
    Scores<W> all{share, jump, dangling, scores, next_given, damping, even, damping * turns.lost, asked};
    double change = 0, lost = 0;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        long long v = first + r * WARP + lane();
        if (v < n) all.take(v, (double)sum[r], part[r], before[r], change, lost);
    }
    turns.now.add(group, change, lost);
}

// Pieces of hub h: hub_begin[h] .. hub_begin[h + 1] - 1.
template <typename I, typename W>
__global__ void finish_hubs(I hubs, const I* __restrict__ hub, const I* __restrict__ hub_begin,
                            const double* __restrict__ hub_sums, const W* share, const W* jump, const W* dangling,
                            double damping, double even, double limit, int turn, int asked, W* scores, W* next_given,
                            unsigned long long* sums)
{
    long long h = global_thread() / WARP;
    if (h >= hubs) return;
    Turn turns(turn, sums);
    turns.look(turns.before.part());
    if (turns.error < limit) return;
    Scores<W> all{share, jump, dangling, scores, next_given, damping, even, damping * turns.lost, asked};
    double sum = 0, change = 0, lost = 0;
    for (I p = hub_begin[h] + lane(); p < hub_begin[h + 1]; p += WARP) sum += hub_sums[p];
    sum = warp_reduce(sum, Plus());
    if (lane() == 0) all.take(hub[h], sum, change, lost);
    turns.now.add(h, change, lost);
}

// One warp, after an iteration: how much it changed, and whether it was the last one.
__global__ void end_iteration(double limit, int turn, unsigned long long* sums, double* words)
{
    Turn turns(turn, sums);
    turns.look(turns.before.part());
    if (lane() != 0 || words[DONE] != 0) return;
    words[ERROR] = turns.error;
    if (turns.error < limit) words[DONE] = 1;
}

constexpr int TILE = 2048;  // rows and entries that a warp renumbers

// The entries of row r, which was row perm[r], as numbers r << 32 | column; place: the new numbers.
template <typename I>
__global__ void renumber(I n, I nnz, const I* __restrict__ old_indptr, const I* __restrict__ indices,
                         const I* __restrict__ perm, const I* __restrict__ place, const I* __restrict__ indptr,
                         unsigned long long* __restrict__ keys)
{
    for_tiles<TILE>(n, nnz, indptr, [&](I r, I begin, I end) {
        I shift = old_indptr[perm[r]] - indptr[r];
        WarpRows<I> rows(begin, end);
        rows.for_entries([&](int owner, I e, bool is_entry) {
            I from = __shfl_sync(ALL, shift, owner);
            unsigned long long row = (unsigned long long)__shfl_sync(ALL, r, owner);
            if (is_entry) keys[e] = row << 32 | (unsigned long long)place[indices[e + from]];
        });
    });
}
