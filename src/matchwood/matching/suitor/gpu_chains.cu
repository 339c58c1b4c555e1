// Edges of the greedy matching along chains of preferences.  Host side: gpu_chains.py.
//
// Every vertex v points at its first neighbour p(v).  Along such a chain each edge comes before the last one
// in the order of edges, until two vertices point at each other: their edge is taken.  Let x(v) be 1 if v is
// matched with p(v), else 0.  Then, with u = p(v),
//   - if u is matched with its own first neighbour, x(v) = 0;
//   - if it is not, and v is the second neighbour of u, {u, v} is the first edge left of both: x(v) = 1;
//   - if it is not, and v comes later in u's row, x(v) stays unknown.
// So x(v) is a function of x(u), and "unknown" gives "unknown".  The functions along a chain are composed by
// pointer jumping, in O(log k) launches for a chain of k vertices.  Proposals would take k steps.
#include "matchwood/atomics.cuh"
#include "matchwood/threads.cuh"

// A function of {0, 1, unknown} has two bits for each value.  The word of v holds a vertex u and the function
// that gives x(v) from x(u).  A constant function has u = v, and ends the chain.
using Word = unsigned long long;
constexpr Word UNKNOWN = 2;  // the third value
constexpr int FUNCTION_BITS = 6;      // bits of a function
constexpr Word ALWAYS_ONE = 1 | 1 << 2 | 1 << 4;                // always 1
constexpr Word ALWAYS_ZERO = 0;                                // always 0
constexpr Word NEGATION = 1 | 0 << 2 | UNKNOWN << 4;    // 0 -> 1, 1 -> 0
constexpr Word ZERO_IF_ONE = UNKNOWN | 0 << 2 | UNKNOWN << 4;  // 1 -> 0, else unknown
constexpr int JUMPS = 4;                                 // jumps of a thread in a launch

__device__ __forceinline__ Word apply(Word function, Word value) { return function >> (2 * value) & 3; }

// The function value -> function(first(value)).
__device__ __forceinline__ Word composed(Word function, Word first)
{
    Word made = 0;
#pragma unroll
    for (int value = 0; value < 3; ++value) made |= apply(function, apply(first, value)) << (2 * value);
    return made;
}

// first_two[2 v] and [2 v + 1]: the first and the second neighbour of v, -1 for none.
template <typename I>
__global__ void link_chains(I n, const I* __restrict__ first_two, Word* __restrict__ words)
{
    long long v = global_thread();
    if (v >= n) return;
    I u = first_two[2 * v];
    Word target = (Word)v, function = ALWAYS_ZERO;
    if (u >= 0 && first_two[2 * (long long)u] == v) {
        function = ALWAYS_ONE;
    } else if (u >= 0) {
        target = (Word)u;
        function = first_two[2 * (long long)u + 1] == v ? NEGATION : ZERO_IF_ONE;
    }
    words[v] = target << FUNCTION_BITS | function;
}

// One thread per vertex.  Words change meanwhile.  But each is read and written as a whole, and is correct at
// any time, so it does not matter which version is read.  A launch makes chains at least JUMPS + 1 times
// shorter.
template <typename I>
__global__ void jump(I n, Word* words)
{
    long long v = global_thread();
    if (v >= n) return;
    Word mine = load_relaxed(&words[v]);
    for (int k = 0; k < JUMPS && mine >> FUNCTION_BITS != (Word)v; ++k) {
        Word target = mine >> FUNCTION_BITS, other = load_relaxed(&words[target]);
        bool ends = other >> FUNCTION_BITS == target;
        Word function = composed(mine & ((1 << FUNCTION_BITS) - 1), other & ((1 << FUNCTION_BITS) - 1));
        mine = (ends ? (Word)v : other >> FUNCTION_BITS) << FUNCTION_BITS | function;
        store_relaxed(&words[v], mine);
    }
}

// One thread per vertex: if it is matched with its first neighbour, it writes for both.  Vertices that point
// at each other write the same values.  Caller: mate all -1, want and offer 0.
template <typename I, typename W>
__global__ void match_ahead(I n, const I* __restrict__ first_two, const W* __restrict__ weights,
                            const Word* __restrict__ words, I* mate, W* want, W* offer)
{
    long long v = global_thread();
    if (v >= n || words[v] >> FUNCTION_BITS != (Word)v || apply(words[v], 0) != 1) return;
    I u = first_two[2 * v];
    W w = weights[2 * v];
    store_relaxed(&mate[v], u);
    store_relaxed(&mate[u], (I)v);
    store_relaxed(&want[v], w);
    store_relaxed(&want[u], w);
    store_relaxed(&offer[v], w);
    store_relaxed(&offer[u], w);
}
