// Topological levels on the GPU, many in one launch.  Host side: gpu.py.
//
// A level is the frontier of the queue: its vertices take away their arcs, and a vertex that
// loses the last one is put behind the frontier.  arcs_to[w] is lowered by atomicSub alone, so exactly one
// thread sees it reach 0; the order in the queue depends on scheduling, the levels do not.
#include "matchwood/atomics.cuh"
#include "matchwood/edges.cuh"
#include "matchwood/frontier.cuh"
#include "matchwood/grid_barrier.cuh"

constexpr int BLOCK = 256;  // threads

// Words of `control`, all 0 before the first launch.
constexpr int GATE = 0;   // two halves, of the barrier
constexpr int TAIL = 1;   // end of the queue
constexpr int HEAD = 2;   // start of the frontier
constexpr int DEPTH = 3;  // its level
[[maybe_unused]] constexpr int CONTROL_WORDS = 4;

using Wide = unsigned long long;

// Caller: cooperative launch, block BLOCK; arcs_to[v]: how many arcs lead to v; level all -1; the queue
// holds the vertices to which none leads, control[TAIL] how many.  Stops after `most` levels.
template <typename I>
__global__ void __launch_bounds__(BLOCK, 4) peel_levels(
    I n, const I* indptr, const I* indices, I most, I* arcs_to, I* queue, I* level,
    unsigned long long* control)
{
    GridBarrier gate(reinterpret_cast<unsigned int*>(&control[GATE]));
    Wide head = load_relaxed(&control[HEAD]), tail = load_relaxed(&control[TAIL]);
    I depth = (I)load_relaxed(&control[DEPTH]);
    Wide warps = all_threads() / WARP, mine = global_thread() / WARP;
    gate.wait();  // all have read the words
    for (I turn = 0; turn < most && head < tail; ++turn) {
        for (Wide at = head + mine * WARP; at < tail; at += warps * WARP) {
            I begin = 0, end = 0;
            if (at + lane() < tail) {
                I v = queue[at + lane()];
                level[v] = depth;
                begin = indptr[v];
                end = indptr[v + 1];
            }
            WarpRows<I>(begin, end).for_entries([&](int, I entry, bool is_entry) {
                I w = 0;
                bool last = false;
                if (is_entry) {
                    w = indices[entry];
                    last = take(&arcs_to[w], I(-1)) == 1;
                }
                append(queue, &control[TAIL], w, last);
            });
        }
        gate.wait();
        head = tail;
        tail = load_relaxed(&control[TAIL]);
        ++depth;
        gate.wait();  // all have read it before the next level adds to it
    }
    if (global_thread() == 0) {
        control[HEAD] = head;
        control[DEPTH] = (Wide)depth;
    }
}
