// Rounds on a list of edges, on the GPU: for Boruvka's method and for Kruskal's.  Host side: gpu.py.
//
//   flatten         every vertex directly under its root
//   hook_trees      an edge that one of its trees has kept joins them, and is marked
//   shrink          the list without the edges within one tree; the others offered again
// A round is hook_trees and shrink; every tree with an edge is joined in it, so there are log2(n).
//
// Races: best[c] is lowered by atomics alone and the order is total; up[] is union-find
// (union_find.cuh), in which hooks go from larger to smaller roots; marks are set by atomicOr.  The
// order of the list depends on scheduling, but nothing that is read from it does.
#include "matchwood/frontier.cuh"
#include "matchwood/lists.cuh"
#include "matchwood/union_find.cuh"

constexpr int HOPS = 64;  // steps up a tree in one launch; no chain is longer than 64^4

// One thread per vertex, which goes at most HOPS steps up.  The first vertices may be at the end of a
// chain as long as the graph, and would follow it alone while the others wait.  So each launch
// brings every vertex nearer to its root, and *again says that some are not there yet.
template <typename I>
__global__ void flatten(I n, I* up, int* again)
{
    long long v = global_thread();
    if (v >= n) return;
    I first = load_relaxed(&up[v]), at = first;
    int hops = 0;
    for (; hops < HOPS; ++hops) {
        I above = load_relaxed(&up[at]);
        if (above == at) break;
        at = above;
    }
    if (at != first) store_relaxed(&up[v], at);
    if (hops == HOPS && load_relaxed(again) == 0) store_relaxed(again, 1);
}

// Edges in turn.  `entries` tells the entry of a word where words are ranks; null: the word does.
template <typename I>
__global__ void hook_trees(const unsigned long long* size, const I* ends, const Code* words, const Code* best,
                           const unsigned long long* order_words, const I* entries, I* up, Word* marks)
{
    Order order(order_words);
    long long count = (long long)*size;
    for (long long i = global_thread(); i < count; i += all_threads()) {
        I x = ends[2 * i], y = ends[2 * i + 1];
        Code word = words[i];
        if (best[x] != word && best[y] != word) continue;
        join_sets(up, x, y);
        set_bit(marks, entries == nullptr ? (I)order.place(word) : entries[word]);
    }
}

// Edges in turn, a whole warp at a time; the new list is offered to the trees as they are now.
template <typename I, typename B, bool EXACT>
__global__ void __launch_bounds__(LIST_BLOCK)
shrink(const unsigned long long* old_size, const I* __restrict__ old_ends, const Code* __restrict__ old_words,
       const B* __restrict__ bits, const unsigned long long* order_words, I* up, I* ends, Code* words,
       unsigned long long* size, unsigned long long room, Code* best)
{
    __shared__ I a[LIST_BLOCK / WARP][2 * WARP], b[LIST_BLOCK / WARP][2 * WARP];
    __shared__ Code w[LIST_BLOCK / WARP][2 * WARP];
    Order order(order_words);
    Appender<I> list{ends, words, size, room, a, b, w, 0};
    long long count = (long long)*old_size;
    for (long long first = global_thread() - lane(); first < count; first += all_threads()) {
        long long i = first + lane();
        I x = 0, y = 0;
        Code word = 0;
        if (i < count) {
            x = find_root(up, old_ends[2 * i]);
            y = find_root(up, old_ends[2 * i + 1]);
            word = old_words[i];
        }
        if (x != y) {
            offer<EXACT>(best, x, word, order, bits);
            offer<EXACT>(best, y, word, order, bits);
        }
        __syncwarp();
        list.push(x != y, x, y, word);
    }
    list.finish();
}
