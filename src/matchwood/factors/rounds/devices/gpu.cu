// Rounds of proposals of a partition, on a device that holds lists and not rows.  Host side: gpu.py; the idea
// and the rounds: __init__.py; the same steps on the CPU, with all encodings: cpu.py.
//
//   pack_rows          a warp per row: its strongest neighbours with room go into its vertex's list and proposals
//   propose_next       a thread per vertex of the partition: it proposes to the admissible ones of its list
//   count_proposals    a thread per place of a proposal
//   confirm_all        a thread per vertex of the graph: which of its proposals are answered
//   settle_rows        a thread per vertex of the partition: the preferred neighbours first
//
// Races: each thread or warp writes the places of its own vertex.  `taken` and `proposals` of others are read in
// steps in which no thread writes them; confirm_all reads and writes taken[u] in u's thread alone.
#include "matchwood/edge_order.cuh"
#include "matchwood/frontier.cuh"

constexpr int INCOMPLETE = 128;  // in size[v]: some neighbour with room is not in the list
constexpr int LENGTH_BITS = 127; // of size[v]

// Words of `control`.
constexpr int PROPOSED = 0;   // proposals of this round
constexpr int WANTED = 1;     // vertices whose row must travel
constexpr int CONFIRMED = 2;  // proposals of all vertices that were answered
constexpr int CHANGED = 3;    // vertices of the partition whose proposals have changed
[[maybe_unused]] constexpr int CONTROL_WORDS = 4;

using Wide = unsigned long long;

// As in matching/dominant/devices/steps.cuh: row i is the entries begins[i] to ends[i] - 1, of which first to last - 1
// lie at `columns`.  It is that of ids[i], or of base + i where ids is null.
template <typename I, typename P, typename W>
struct PassingRows {
    const I* ids;
    long long base;
    const P *begins, *ends;
    long long first, last;
    const I* columns;
    const W* weights;
};

// The arrays of a partition whose vertices are lo to hi - 1.
template <typename I, typename P, typename W>
struct Part {
    int n;
    long long lo, hi;
    unsigned char* taken;
    I* proposals;
    W* proposed_weights;
    I* chosen;
    W* chosen_weights;
    const P* start;  // of the lists
    unsigned char* size;
    I* columns;
    W* weights;
    I* wanted;
    unsigned long long* control;
};

struct Charge {
    bool on;
    unsigned int r;
    unsigned long long barrier;

    __device__ __forceinline__ bool of(long long v) const { return on && random_bit((unsigned int)v, r, barrier); }
};

// room[i] = entries of the list of the i-th vertex; their sums are where the lists begin.
template <typename P>
__global__ void list_rooms(long long rows, const P* offsets, int length, P* room)
{
    long long i = global_thread();
    if (i >= rows) return;
    P degree = offsets[i + 1] - offsets[i];
    room[i] = degree < length ? degree : (P)length;
}

template <typename I>
__device__ __forceinline__ bool is_chosen(const I* chosen, I v, int count)
{
    bool found = false;
    for (int j = 0; j < count; ++j) found |= chosen[j] == v;
    return found;
}

template <typename I>
__device__ __forceinline__ int count_held(const I* proposals, int room)
{
    int count = 0;
    while (count < room && proposals[count] >= 0) ++count;
    return count;
}

// A warp per row, as in matching/dominant/devices/gpu.cu.  Neighbours without room, and those that a vertex has, are
// left out; of the proposals also those of the same charge.
template <typename I, typename P, typename W>
__global__ void __launch_bounds__(256)
    pack_rows(long long rows, const __grid_constant__ PassingRows<I, P, W> passing,
              const __grid_constant__ Part<I, P, W> part, const __grid_constant__ Charge charge,
              unsigned long long seed, bool by_hash)
{
    const int n = part.n;
    for (long long i = global_thread() / WARP; i < rows; i += all_threads() / WARP) {
        long long begin = passing.begins[i], end = passing.ends[i];
        begin = (begin < passing.first ? passing.first : begin) - passing.first;
        end = (end > passing.last ? passing.last : end) - passing.first;
        I u = passing.ids != nullptr ? passing.ids[i] : (I)(passing.base + i);
        int have = part.taken[u];
        if (begin >= end || have == n) continue;
        long long at = u - part.lo, from = part.start[at];
        I* mine = part.proposals + (long long)u * n;
        W* mine_weights = part.proposed_weights + at * n;
        unsigned char word = part.size[at];
        WarpEdges<I, W> list{W(0), u, word & LENGTH_BITS, (int)(part.start[at + 1] - from), (word & INCOMPLETE) != 0};
        WarpEdges<I, W> best{W(0), u, count_held(mine, n - have), n - have, false};
        if (lane() < list.held) list.w = part.weights[from + lane()], list.v = part.columns[from + lane()];
        if (lane() < best.held) best.w = mine_weights[lane()], best.v = mine[lane()];
        bool charged = charge.of(u);
        for (long long k = begin; k < end; k += WARP) {
            long long entry = k + lane();
            W w = entry < end ? passing.weights[entry] : W(0);
            I v = entry < end ? passing.columns[entry] : u;
            bool there = entry < end && part.taken[v] != n && !is_chosen(part.chosen + at * n, v, have);
            bool admissible = there && !(charge.on && charge.of(v) == charged);
            bool heavy = value_bits(w) >= list.weakest(), strong = value_bits(w) >= best.weakest();
            unsigned votes = __ballot_sync(ALL, there && heavy);
            if (votes != __ballot_sync(ALL, there)) list.left_out = true;
            if (list.held == 0) list.fill(u, w, v, there, seed, by_hash), votes = 0;
            for (; votes != 0; votes &= votes - 1) {
                int owner = __ffs(votes) - 1;
                list.insert(u, __shfl_sync(ALL, w, owner), __shfl_sync(ALL, v, owner), seed, by_hash);
            }
            votes = __ballot_sync(ALL, admissible && strong);
            if (best.held == 0) best.fill(u, w, v, admissible, seed, by_hash), votes = 0;
            for (; votes != 0; votes &= votes - 1) {
                int owner = __ffs(votes) - 1;
                best.insert(u, __shfl_sync(ALL, w, owner), __shfl_sync(ALL, v, owner), seed, by_hash);
            }
        }
        if (lane() < list.held) part.weights[from + lane()] = list.w, part.columns[from + lane()] = list.v;
        if (lane() < best.held) mine_weights[lane()] = best.w, mine[lane()] = best.v;
        if (lane() == 0) part.size[at] = (unsigned char)(list.held | (list.left_out ? INCOMPLETE : 0));
    }
}

template <typename I, typename P, typename W>
__global__ void propose_next(const __grid_constant__ Part<I, P, W> part, const __grid_constant__ Charge charge)
{
    const int n = part.n;
    long long u = part.lo + global_thread(), at = u - part.lo;
    bool wants = false, changed = false;
    if (u < part.hi) {
        I* mine = part.proposals + u * n;
        bool had = mine[0] >= 0;
        for (int j = 0; j < n; ++j) mine[j] = I(-1);
        int have = part.taken[u], word = part.size[at], count = 0;
        bool charged = charge.of(u);
        for (int k = 0; k < (word & LENGTH_BITS) && count < n - have; ++k) {
            I v = part.columns[part.start[at] + k];
            if (part.taken[v] == n || is_chosen(part.chosen + at * n, v, have)) continue;
            if (charge.on && charge.of(v) == charged) continue;
            mine[count] = v;
            part.proposed_weights[at * n + count] = part.weights[part.start[at] + k];
            ++count;
        }
        wants = count < n - have && (word & INCOMPLETE) != 0;
        if (wants) {
            for (int j = 0; j < count; ++j) mine[j] = I(-1);
            part.size[at] = 0;
        }
        changed = had || count > 0;
    }
    append(part.wanted, &part.control[WANTED], (I)u, wants);
    unsigned votes = __ballot_sync(ALL, changed);
    if (lane() == 0 && votes != 0) take(&part.control[CHANGED], Wide(__popc(votes)));
}

template <typename I>
__global__ void count_proposals(long long places, const I* proposals, unsigned long long* control)
{
    long long k = global_thread();
    unsigned votes = __ballot_sync(ALL, k < places && proposals[k] >= 0);
    if (lane() == 0 && votes != 0) take(&control[PROPOSED], Wide(__popc(votes)));
}

template <typename I, typename P, typename W>
__global__ void confirm_all(long long vertices, const __grid_constant__ Part<I, P, W> part)
{
    long long u = global_thread(), own = (u - part.lo) * part.n;
    if (u >= vertices) return;
    int n = part.n, have = part.taken[u], before = have;
    for (int j = 0; j < n; ++j) {
        I v = part.proposals[u * n + j];
        if (v < 0) break;
        bool answered = false;
        for (int i = 0; i < n; ++i) answered |= part.proposals[(long long)v * n + i] == (I)u;
        if (!answered) continue;
        if (part.lo <= u && u < part.hi) {
            part.chosen[own + have] = v;
            part.chosen_weights[own + have] = part.proposed_weights[own + j];
        }
        ++have;
    }
    if (have == before) return;
    part.taken[u] = (unsigned char)have;
    take(&part.control[CONFIRMED], Wide(have - before));
}

template <typename I, typename P, typename W>
__global__ void settle_rows(const __grid_constant__ Part<I, P, W> part, unsigned long long seed, bool by_hash)
{
    long long u = part.lo + global_thread();
    if (u >= part.hi) return;
    int n = part.n, count = part.taken[u];
    I* mine = part.chosen + (u - part.lo) * n;
    W* weights = part.chosen_weights + (u - part.lo) * n;
    for (int j = 1; j < count; ++j) {
        I v = mine[j];
        W w = weights[j];
        int place = j;
        for (; place > 0 && prefers(w, (I)u, v, weights[place - 1], (I)u, mine[place - 1], seed, by_hash); --place) {
            mine[place] = mine[place - 1];
            weights[place] = weights[place - 1];
        }
        mine[place] = v;
        weights[place] = w;
    }
    for (int j = count; j < n; ++j) {
        mine[j] = I(-1);
        weights[j] = W(0);
    }
}
