// Strongly connected components on the GPU: the largest one, and vertices that are one by
// themselves.  The rest and the numbering: propagation.cu.  Host side: __init__.py.  The rule and the
// papers: ../__init__.py.
//
// One launch, whose steps are parted by barriers of the grid:
//   start     vertices without arcs to or from others are done; the pivot has the highest product
//             of degrees
//   search    what the pivot reaches; then, within that, what reaches the pivot
//   finish    vertices reached both ways are the pivot's component
//   trim      a few rounds: vertices without open ones before or behind them
//   peel      the same for as many rounds as that takes away many: a round reads only the
//             neighbours of those that the round before took away, and lowers their counters
//
// A search is passes over all open vertices: each looks for a reached one among those it has arcs
// from, and stops at the first.  Only whether it is reached matters, not how far it is, so a pass
// uses what it has found itself.  Where degrees are skewed, a few passes are enough, and of most rows
// only a few entries are read.  After PASSES the search is given up: then the graph is deep, and
// propagation.cu, whose rounds are few on deep graphs too, does all of it.
//
// Races.  mark[v] is written by the thread that owns v, and by those that mark the pivot's row,
// all the same.  Marks go up only, OPEN, FORWARD, FORWARD | BACKWARD, so a stale one costs a pass,
// never a vertex: the last pass finds nothing new anywhere.  In peeling, counters go down by
// atomicSub; the thread that lowers one to 0 claims the vertex by compare-and-swap on its component.
#include "matchwood/atomics.cuh"
#include "matchwood/edges.cuh"
#include "matchwood/frontier.cuh"
#include "matchwood/grid_barrier.cuh"

constexpr int BLOCK = 256;  // threads
constexpr int SERIAL = 8;   // entries that a lane tries alone before its warp helps
constexpr int HELP = 1 << 30;  // entries that the warp then tries: all
constexpr int PASSES = 12;  // passes of a search, at most; R-MAT 22 takes 4
constexpr int TRIMS = 6;    // rounds of trimming, at most
constexpr int TRIM_PART = 512;  // trimming ends with a round that takes away at most n / TRIM_PART vertices
constexpr int PEEL_PART = 8;    // peel where more than n / PEEL_PART vertices are open
constexpr int PEEL_WINDOW = 64;    // rounds of peeling between two decisions whether it still pays
constexpr int PEEL_VERTICES = 16;  // vertices that a round of the window must take away, on average
constexpr int PEEL_ROUNDS = 8192;  // rounds of peeling, at most
constexpr int TILE = 2048;  // rows and entries of a warp in a pass over all of them

constexpr unsigned char OPEN = 0, DONE = 1, FORWARD = 2, BACKWARD = 4;

// Words of `control`, all 0 at the launch.
constexpr int GATE = 0;    // two halves, of the barrier
constexpr int SCORE = 1;   // score of the best pivot
constexpr int PIVOT = 2;   // n - v for it
constexpr int COUNTS = 3;  // three in turn: what this step counts, the next, one to be emptied
constexpr int ROUNDS = 6;  // passes made, for the host

using Wide = unsigned long long;

template <typename I>
struct Arcs {
    const I *indptr, *indices;
};

template <typename I>
struct Search {
    I n;
    Arcs<I> out, in;
    unsigned char* mark;
    I* component;
    Wide* control;
    GridBarrier gate;
    int turn;

    __device__ __forceinline__ void wait() const { gate.wait(); }

    // The sum of `count` over all threads.  All call.
    __device__ __forceinline__ Wide sum(Wide count)
    {
        Wide* word = &control[COUNTS + turn];
        count = block_reduce(count, Wide(0), Plus());
        if (threadIdx.x == 0 && count != 0) atomicAdd(word, count);
        wait();
        Wide total = load_relaxed(word);
        // all threads are past the barrier before, whose word is the one after the next
        if (global_thread() == 0) store_relaxed(&control[COUNTS + (turn + 2) % 3], Wide(0));
        turn = (turn + 1) % 3;
        return total;
    }

    // each(v, is_vertex): all lanes of a warp call; is_vertex is false past the last vertex.
    template <typename Each>
    __device__ __forceinline__ void for_vertices(Each each) const
    {
        for (long long first = global_thread() - lane(); first < n; first += all_threads())
            each((I)(first + lane()), first + lane() < n);
    }

    __device__ __forceinline__ static bool lonely(const Arcs<I>& arcs, I v)
    {
        I begin = arcs.indptr[v], end = arcs.indptr[v + 1];
        return begin == end || (begin + 1 == end && arcs.indices[begin] == v);
    }

    __device__ __forceinline__ Wide score(I v) const
    {
        return (Wide)(out.indptr[v + 1] - out.indptr[v]) * (Wide)(in.indptr[v + 1] - in.indptr[v]);
    }

    // The pivot, or -1 when no vertex can be one.
    __device__ I start()
    {
        Wide best = 0;
        for_vertices([&](I v, bool is_vertex) {
            if (!is_vertex) return;
            bool alone = lonely(out, v) || lonely(in, v);
            mark[v] = alone ? DONE : OPEN;
            if (alone) {
                component[v] = v;
            } else {
                Wide mine = score(v);
                if (mine > best) best = mine;
            }
        });
        best = block_reduce(best, Wide(0), Most());
        if (threadIdx.x == 0 && best > 0) atomicMax(&control[SCORE], best);
        wait();
        best = load_relaxed(&control[SCORE]);
        if (best == 0) return -1;
        for_vertices([&](I v, bool is_vertex) {
            if (is_vertex && mark[v] == OPEN && score(v) == best) atomicMax(&control[PIVOT], (Wide)(n - v));
        });
        wait();
        return (I)(n - (I)load_relaxed(&control[PIVOT]));
    }

    // Gives `seen` to vertices with the mark `open_` that are reached along `along`, whose transpose
    // is `against`.  False: given up.
    __device__ bool reach(const Arcs<I>& along, const Arcs<I>& against, I pivot, unsigned char open_,
                          unsigned char bit)
    {
        unsigned char seen = open_ | bit;
        I end = along.indptr[pivot + 1];
        for (long long k = along.indptr[pivot] + global_thread(); k < end; k += all_threads()) {
            I w = along.indices[k];
            if (load_relaxed(&mark[w]) == open_) store_relaxed(&mark[w], seen);
        }
        if (global_thread() == 0) store_relaxed(&mark[pivot], seen);
        wait();
        for (int pass = 0; pass < PASSES; ++pass) {
            Wide found = 0;
            for_vertices([&](I v, bool is_vertex) {
                I at = 0, stop = 0;
                if (is_vertex && load_relaxed(&mark[v]) == open_) {
                    at = against.indptr[v];
                    stop = against.indptr[v + 1];
                }
                if (!__any_sync(ALL, at < stop)) return;
                I from = first_in_row<SERIAL, HELP>(against.indices, at, stop, v,
                                                    [&](I u, I) { return (load_relaxed(&mark[u]) & bit) != 0; });
                if (from >= 0) {
                    store_relaxed(&mark[v], seen);
                    ++found;
                }
            });
            if (global_thread() == 0) control[ROUNDS] += 1;
            if (sum(found) == 0) return true;
        }
        return false;
    }

    // What was reached both ways is done; all else is open, also if nothing was.  `found`: the
    // marks are complete.  Returns how many are open.
    __device__ Wide finish(I pivot, bool found)
    {
        Wide left = 0;
        for_vertices([&](I v, bool is_vertex) {
            if (!is_vertex) return;
            unsigned char here = mark[v];
            if (found && here == (FORWARD | BACKWARD)) {
                mark[v] = DONE;
                component[v] = pivot;
            } else if (here != DONE) {
                mark[v] = OPEN;
                ++left;
            }
        });
        return sum(left);
    }

    // Open vertices without an open one before them, or behind them, themselves not counted.
    __device__ Wide trim()
    {
        Wide found = 0;
        auto other = [&](I u, I v) { return u != v && load_relaxed(&mark[u]) == OPEN; };
        for_vertices([&](I v, bool is_vertex) {
            bool is_open = is_vertex && load_relaxed(&mark[v]) == OPEN;
            if (!__any_sync(ALL, is_open)) return;
            I at = is_open ? out.indptr[v] : 0, stop = is_open ? out.indptr[v + 1] : 0;
            bool kept = first_in_row<SERIAL, HELP>(out.indices, at, stop, v, other) >= 0;
            at = is_open && kept ? in.indptr[v] : 0;
            stop = is_open && kept ? in.indptr[v + 1] : 0;
            kept = first_in_row<SERIAL, HELP>(in.indices, at, stop, v, other) >= 0;
            if (is_open && !kept) {
                store_relaxed(&mark[v], DONE);
                component[v] = v;
                ++found;
            }
        });
        return sum(found);
    }

    // degree[v]: open neighbours of open vertices, themselves not counted.  Zero before.
    __device__ void count(I nnz, const Arcs<I>& arcs, I* degree) const
    {
        for_tiles<TILE>(n, nnz, arcs.indptr, [&](I v, I begin, I end) {
            if (mark[v] != OPEN) end = begin;
            if (!__any_sync(ALL, begin < end)) return;
            WarpRows<I>(begin, end).for_entries([&](int owner, I entry, bool is_entry) {
                I w = __shfl_sync(ALL, v, owner);
                bool counts = false;
                if (is_entry) {
                    I u = arcs.indices[entry];
                    counts = u != w && mark[u] == OPEN;
                }
                unsigned same = __match_any_sync(ALL, owner), votes = __ballot_sync(ALL, counts) & same;
                if (lane() == __ffs(same) - 1 && votes != 0) take(&degree[w], I(__popc(votes)));
            });
        });
    }

    // True for the one that takes v away.
    __device__ __forceinline__ bool claim(I v) const { return compare_and_swap(&component[v], I(-1), v) == I(-1); }

    // A vertex of the queue is v where nothing leads to it, so that those behind it count one less,
    // and ~v where it leads nowhere, for those before it.
    __device__ void peel(I nnz, I* out_degree, I* in_degree, I* queue)
    {
        for_vertices([&](I v, bool is_vertex) {
            if (!is_vertex) return;
            out_degree[v] = in_degree[v] = 0;
            if (mark[v] == OPEN) component[v] = -1;
        });
        wait();
        count(nnz, out, out_degree);
        count(nnz, in, in_degree);
        wait();
        for_vertices([&](I v, bool is_vertex) {
            bool source = is_vertex && mark[v] == OPEN && in_degree[v] == 0;
            bool sink = is_vertex && mark[v] == OPEN && !source && out_degree[v] == 0;
            if (source || sink) component[v] = v;
            append(queue, &control[COUNTS + turn], source ? v : I(~v), source || sink);
        });
        Wide head = 0, tail = sum(0), since = 0;
        Wide warps = all_threads() / WARP, mine = global_thread() / WARP;
        for (int layer = 1; layer < PEEL_ROUNDS && head < tail; ++layer) {
            for (Wide at = head + mine * WARP; at < tail; at += warps * WARP) {
                I begin = 0, end = 0, item = 0;
                if (at + lane() < tail) {
                    item = queue[at + lane()];
                    I v = item < 0 ? ~item : item;
                    store_relaxed(&mark[v], DONE);
                    begin = item < 0 ? in.indptr[v] : out.indptr[v];
                    end = item < 0 ? in.indptr[v + 1] : out.indptr[v + 1];
                }
                WarpRows<I>(begin, end).for_entries([&](int owner, I entry, bool is_entry) {
                    I w = 0;
                    bool back = __shfl_sync(ALL, item, owner) < 0, mine_now = false;
                    if (is_entry) {
                        w = back ? in.indices[entry] : out.indices[entry];
                        if (load_relaxed(&component[w]) == I(-1))
                            mine_now = take(back ? &out_degree[w] : &in_degree[w], I(-1)) == 1 && claim(w);
                    }
                    append(queue + tail, &control[COUNTS + turn], back ? I(~w) : w, mine_now);
                });
            }
            Wide found = sum(0);
            head = tail;
            tail += found;
            since += found;
            if (layer % PEEL_WINDOW == 0) {
                if (since < PEEL_WINDOW * PEEL_VERTICES) break;
                since = 0;
            }
        }
        // those claimed last are done too
        for (Wide at = head + global_thread(); at < tail; at += all_threads())
            mark[queue[at] < 0 ? ~queue[at] : queue[at]] = DONE;
        if (global_thread() == 0) control[ROUNDS] += 1;
    }
};

// Caller: cooperative launch, block BLOCK; control all 0.  mark[v] is DONE afterwards where
// component[v], a vertex of v's component, the same for all of it, is known.  The other arrays are
// scratch.  `search`: look for the largest component, trim and peel; else just start.
template <typename I>
__global__ void __launch_bounds__(BLOCK, 4) find_largest(
    I n, I nnz, const I* indptr, const I* indices, const I* in_indptr, const I* in_indices, bool search,
    unsigned char* mark, I* component, I* out_degree, I* in_degree, I* queue, unsigned long long* control)
{
    Search<I> s{n, {indptr, indices}, {in_indptr, in_indices}, mark, component, control,
                GridBarrier(reinterpret_cast<unsigned int*>(&control[GATE])), 0};
    I pivot = s.start();
    if (pivot < 0 || !search) return;
    bool found = s.reach(s.out, s.in, pivot, OPEN, FORWARD) && s.reach(s.in, s.out, pivot, FORWARD, BACKWARD);
    Wide left = s.finish(pivot, found), taken = n;
    for (int round = 0; round < TRIMS && taken > (Wide)n / TRIM_PART; ++round) {
        taken = s.trim();
        left -= taken;
    }
    if (left > (Wide)n / PEEL_PART) s.peel(nnz, out_degree, in_degree, queue);
}
