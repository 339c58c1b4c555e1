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
    pack_rows(long long rows, const I* ids, long long base, const P* begins, const P* ends, long long first,
              long long last, const I* columns, const W* weights, int n, long long lo, bool charged, unsigned int r,
              unsigned long long barrier, const unsigned char* taken, const I* chosen, const P* start,
              unsigned char* size, I* list_columns, W* list_weights, I* proposals, W* proposed_weights,
              unsigned long long seed, bool by_hash)
{
    for (long long i = global_thread() / WARP; i < rows; i += all_threads() / WARP) {
        long long begin = begins[i], end = ends[i];
        begin = (begin < first ? first : begin) - first;
        end = (end > last ? last : end) - first;
        I u = ids != nullptr ? ids[i] : (I)(base + i);
        int have = taken[u];
        if (begin >= end || have == n) continue;
        long long at = u - lo, from = start[at];
        I* mine = proposals + (long long)u * n;
        W* mine_weights = proposed_weights + at * n;
        unsigned char word = size[at];
        WarpEdges<I, W> list{W(0), u, word & LENGTH_BITS, (int)(start[at + 1] - from), (word & INCOMPLETE) != 0};
        WarpEdges<I, W> best{W(0), u, count_held(mine, n - have), n - have, false};
        if (lane() < list.held) list.w = list_weights[from + lane()], list.v = list_columns[from + lane()];
        if (lane() < best.held) best.w = mine_weights[lane()], best.v = mine[lane()];
        bool charge = charged && random_bit((unsigned int)u, r, barrier);
        for (long long k = begin; k < end; k += WARP) {
            long long entry = k + lane();
            W w = entry < end ? weights[entry] : W(0);
            I v = entry < end ? columns[entry] : u;
            bool there = entry < end && taken[v] != n && !is_chosen(chosen + at * n, v, have);
            bool admissible = there && !(charged && random_bit((unsigned int)v, r, barrier) == charge);
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
        if (lane() < list.held) list_weights[from + lane()] = list.w, list_columns[from + lane()] = list.v;
        if (lane() < best.held) mine_weights[lane()] = best.w, mine[lane()] = best.v;
        if (lane() == 0) size[at] = (unsigned char)(list.held | (list.left_out ? INCOMPLETE : 0));
    }
}

template <typename I, typename P, typename W>
__global__ void propose_next(int n, long long lo, long long hi, bool charged, unsigned int r, unsigned long long barrier,
                             const unsigned char* taken, const I* chosen, const P* start, unsigned char* size,
                             const I* list_columns, const W* list_weights, I* proposals, W* proposed_weights, I* wanted,
                             unsigned long long* control)
{
    long long u = lo + global_thread(), at = u - lo;
    bool wants = false, changed = false;
    if (u < hi) {
        I* mine = proposals + u * n;
        bool had = mine[0] >= 0;
        for (int j = 0; j < n; ++j) mine[j] = I(-1);
        int have = taken[u], word = size[at], count = 0;
        bool charge = charged && random_bit((unsigned int)u, r, barrier);
        for (int k = 0; k < (word & LENGTH_BITS) && count < n - have; ++k) {
            I v = list_columns[start[at] + k];
            if (taken[v] == n || is_chosen(chosen + at * n, v, have)) continue;
            if (charged && random_bit((unsigned int)v, r, barrier) == charge) continue;
            mine[count] = v;
            proposed_weights[at * n + count] = list_weights[start[at] + k];
            ++count;
        }
        wants = count < n - have && (word & INCOMPLETE) != 0;
        if (wants) {
            for (int j = 0; j < count; ++j) mine[j] = I(-1);
            size[at] = 0;
        }
        changed = had || count > 0;
    }
    append(wanted, &control[WANTED], (I)u, wants);
    unsigned votes = __ballot_sync(ALL, changed);
    if (lane() == 0 && votes != 0) take(&control[CHANGED], Wide(__popc(votes)));
}

template <typename I>
__global__ void count_proposals(long long places, const I* proposals, unsigned long long* control)
{
    long long k = global_thread();
    unsigned votes = __ballot_sync(ALL, k < places && proposals[k] >= 0);
    if (lane() == 0 && votes != 0) take(&control[PROPOSED], Wide(__popc(votes)));
}

template <typename I, typename W>
__global__ void confirm_all(long long vertices, int n, long long lo, long long hi, const I* proposals,
                            const W* proposed_weights, unsigned char* taken, I* chosen, W* chosen_weights,
                            unsigned long long* control)
{
    long long u = global_thread();
    if (u >= vertices) return;
    int have = taken[u], before = have;
    for (int j = 0; j < n; ++j) {
        I v = proposals[u * n + j];
        if (v < 0) break;
        bool answered = false;
        for (int i = 0; i < n; ++i) answered |= proposals[(long long)v * n + i] == (I)u;
        if (!answered) continue;
        if (lo <= u && u < hi) {
            chosen[(u - lo) * n + have] = v;
            chosen_weights[(u - lo) * n + have] = proposed_weights[(u - lo) * n + j];
        }
        ++have;
    }
    if (have == before) return;
    taken[u] = (unsigned char)have;
    take(&control[CONFIRMED], Wide(have - before));
}

template <typename I, typename W>
__global__ void settle_rows(int n, long long lo, long long hi, const unsigned char* taken, I* chosen, W* chosen_weights,
                            unsigned long long seed, bool by_hash)
{
    long long u = lo + global_thread();
    if (u >= hi) return;
    I* mine = chosen + (u - lo) * n;
    W* weights = chosen_weights + (u - lo) * n;
    int count = taken[u];
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
