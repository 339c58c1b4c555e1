// Greedy matching on the GPU.  Host side: gpu.py, which sorts the edges before take_edges.
//
//   count_upper    for each vertex, the number of its neighbours with a larger number
//   list_edges     these edges: both ends, and the inverted bits of the weight, as sort keys
//   hash_edges     inverted hashes that decide between equal weights
//   take_edges     one cooperative launch: goes through the sorted edges
//
// take_edges works on a window of edges at a time, in rounds of two steps:
//   bid     an edge whose ends are both free writes its place in the order to both ends, by minimum
//   take    an edge that finds its own place at both ends comes before all edges that it shares an
//           end with, so it is in the greedy matching; the others stay for the next round
//
// Races.  bids[v] is changed by atomicMin alone.  The upper bits of a bid hold the number of the
// round, counted down, and the lower ones the place.  So every bid of a round replaces all older
// ones, and no array has to be cleared.  In `take` at most one edge writes the mates of a vertex: the
// first edge of both its ends.
#include "matchwood/first_edge.cuh"
#include "matchwood/frontier.cuh"
#include "matchwood/grid_barrier.cuh"
#include "matchwood/sorted_row.cuh"

constexpr int BLOCK = 512;  // threads of a block
constexpr int PLACE_BITS = 40;   // bits of a bid; the others count rounds since the bids were cleared
constexpr unsigned long long MOST_ROUNDS = 1ull << 24;  // rounds between two clearings of the bids

// Words of `control`.
constexpr int SIZES = 0;    // lengths of the two lists of edges that are not decided yet
constexpr int NEXT = 2;     // the first edge after the window
constexpr int ROUNDS = 3;   // so far
constexpr int LEFT = 4;     // rounds until this launch ends
[[maybe_unused]] constexpr int CONTROL_WORDS = 5;

using Wide = unsigned long long;

template <typename I>
__global__ void count_upper(I n, const I* indptr, const I* indices, I* counts)
{
    long long v = global_thread();
    if (v >= n) return;
    I end = indptr[v + 1];
    counts[v] = end - first_not_below(indices, indptr[v], end, (I)v);
}

// WIDTH lanes per vertex.  ends[v]: the number of edges of vertices 0 .. v, an inclusive prefix sum.
template <typename I, typename W, int WIDTH>
__global__ void list_edges(I n, const I* indptr, const I* indices, const W* data, const I* ends, I* tails,
                           I* heads, W* keys)
{
    long long v = global_thread() / WIDTH;
    if (v >= n) return;
    long long from = indptr[v + 1], to = ends[v], count = v > 0 ? to - ends[v - 1] : to;
    for (long long k = lane() % WIDTH; k < count; k += WIDTH) {
        tails[to - count + k] = (I)v;
        heads[to - count + k] = indices[from - count + k];
        reinterpret_cast<WeightBits<W>*>(keys)[to - count + k] =
            ~reinterpret_cast<const WeightBits<W>*>(data)[from - count + k];
    }
}

template <typename I>
__global__ void hash_edges(I m, const I* tails, const I* heads, unsigned long long seed, unsigned long long* hashes)
{
    long long k = global_thread();
    if (k < m) hashes[k] = ~tie_hash(tails[k], heads[k], seed);
}

// Cooperative.  Caller: mate all -1, bids all ones, control 0 but for LEFT; barrier words 0.
// Ends when all edges are decided or LEFT rounds are over; may be launched again.
// undecided: two lists of `window` places.
template <typename I>
__global__ void __launch_bounds__(BLOCK, 2)
    take_edges(long long m, long long window, const I* order, const I* tails, const I* heads, I* mate,
               unsigned long long* bids, I* undecided, unsigned long long* control, unsigned int* words)
{
    GridBarrier barrier(words);
    Wide next = load_relaxed(&control[NEXT]), round = load_relaxed(&control[ROUNDS]);
    Wide left = load_relaxed(&control[LEFT]);
    Wide size = load_relaxed(&control[SIZES + round % 2]);
    bool leader = blockIdx.x == 0 && threadIdx.x == 0;
    barrier.wait();  // all threads have read the control words
    for (; (size > 0 || next < (Wide)m) && left > 0; --left) {
        // bid: from the list, or from a new window when it is empty
        bool fresh = size == 0;
        Wide begin = next, count = fresh ? (Wide)m - next : size;
        if (fresh) {
            if (count > (Wide)window) count = window;
            next += count;
        }
        const I* list = undecided + round % 2 * window;
        I* others = undecided + (round + 1) % 2 * window;
        Wide* others_size = &control[SIZES + (round + 1) % 2];
        Wide stamp = (MOST_ROUNDS - 1 - round % MOST_ROUNDS) << PLACE_BITS;
        for (Wide base = global_thread() - lane(); base < count; base += all_threads()) {
            Wide k = base + lane();
            I place = 0;
            bool open = k < count;
            if (open) {
                place = fresh ? (I)(begin + k) : load_relaxed(&list[k]);
                I edge = order[place], u = tails[edge], v = heads[edge];
                open = load_relaxed(&mate[u]) < 0 && load_relaxed(&mate[v]) < 0;
                if (open) {
                    lower_to(&bids[u], stamp | (Wide)place);
                    lower_to(&bids[v], stamp | (Wide)place);
                }
            }
            append(others, others_size, place, open);
        }
        barrier.wait();
        size = load_relaxed(others_size);
        if (leader) {
            store_relaxed(&control[SIZES + round % 2], Wide(0));
            store_relaxed(&control[NEXT], next);
            store_relaxed(&control[ROUNDS], round + 1);
        }
        for (Wide k = global_thread(); k < size; k += all_threads()) {
            I place = load_relaxed(&others[k]), edge = order[place], u = tails[edge], v = heads[edge];
            Wide mine = stamp | (Wide)place;
            if (load_relaxed(&bids[u]) == mine && load_relaxed(&bids[v]) == mine) {
                store_relaxed(&mate[u], v);
                store_relaxed(&mate[v], u);
            }
        }
        barrier.wait();
        ++round;
        if (round % MOST_ROUNDS == 0) break;  // the host clears the bids
    }
}
