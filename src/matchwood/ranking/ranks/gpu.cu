// The scores of a rank's own vertices on the GPU.  Host side: gpu.py.  The rule: ranking/__init__.py.
#include "matchwood/threads.cuh"

constexpr int BLOCK = 256;  // threads of a block

// Vertices in turn: the next score from what was received, and what the vertex gives.  parts[b]: by how much scores of
// block b changed; parts[blocks + b]: what its vertices without arcs hold.  `jump` and `dangling` may be null:
// then the number `even` stands for the first, and the first for the second.
template <typename W>
__global__ void __launch_bounds__(BLOCK)
    score(long long n, const W* pulled, const W* share, const W* jump, const W* dangling, double damping, double mass,
          double even, W* scores, W* given, double* parts)
{
    double change = 0, lost = 0;
    for (long long v = global_thread(); v < n; v += all_threads()) {
        double to = jump == nullptr ? even : (double)jump[v];
        double after = dangling == nullptr ? to : (double)dangling[v];
        double before = (double)scores[v];
        W next = (W)(damping * (double)pulled[v] + (mass * after + (1 - damping) * to));
        scores[v] = next;
        given[v] = next * share[v];
        double step = (double)next - before;
        change += step < 0 ? -step : step;
        if (share[v] == W(0)) lost += (double)next;
    }
    change = block_reduce(change, 0.0, Plus());
    lost = block_reduce(lost, 0.0, Plus());
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = change;
        parts[gridDim.x + blockIdx.x] = lost;
    }
}
