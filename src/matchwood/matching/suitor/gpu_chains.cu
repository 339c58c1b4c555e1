// Edges of the greedy matching along chains of preferences.  Host side: gpu_chains.py.
//
// Every vertex v points at its first neighbour p(v), so edges come earlier and earlier along a chain, up to
// two vertices that point at each other: their edge is taken.  Let x(v) be whether v is matched with p(v).
// Then, with u = p(v),
//   - if u is matched with its own first neighbour, x(v) = 0;
//   - if it is not, and v is the second neighbour of u, both are free and want each other most: x(v) = 1;
//   - if it is not, and v comes later, the chain does not tell.
// So x(v) is a function of x(u), in which "unknown" gives "unknown".  Functions along a chain are put
// together by pointer jumping: in a few launches, where proposals go one step after the other.
#include "matchwood/atomics.cuh"
#include "matchwood/threads.cuh"

// A function of {0, 1, unknown} has two bits for each value.  A word holds the vertex it is applied to and
// the function; a constant is applied to the vertex itself, and ends the search.
using Word = unsigned long long;
constexpr Word UNKNOWN = 2;  // the third value
constexpr int BITS = 6;      // bits of a function
constexpr Word YES = 1 | 1 << 2 | 1 << 4;                // 1 whatever comes
constexpr Word NEVER = 0;                                // 0 whatever comes
constexpr Word OTHERWISE = 1 | 0 << 2 | UNKNOWN << 4;    // 0 -> 1, 1 -> 0
constexpr Word AT_MOST = UNKNOWN | 0 << 2 | UNKNOWN << 4;  // 1 -> 0
constexpr int JUMPS = 4;                                 // of a thread in a launch

__device__ __forceinline__ Word apply(Word function, Word value) { return function >> (2 * value) & 3; }

__device__ __forceinline__ Word after(Word function, Word first)
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
    Word target = (Word)v, function = NEVER;
    if (u >= 0 && first_two[2 * (long long)u] == v) {
        function = YES;
    } else if (u >= 0) {
        target = (Word)u;
        function = first_two[2 * (long long)u + 1] == v ? OTHERWISE : AT_MOST;
    }
    words[v] = target << BITS | function;
}

// A thread to a vertex.  Words change meanwhile, but each is read and written as a whole and is true at any
// time, so it does not matter which one is met.  A launch makes chains JUMPS + 1 times as short, at least.
template <typename I>
__global__ void jump(I n, Word* words)
{
    long long v = global_thread();
    if (v >= n) return;
    Word mine = load_relaxed(&words[v]);
    for (int k = 0; k < JUMPS && mine >> BITS != (Word)v; ++k) {
        Word target = mine >> BITS, other = load_relaxed(&words[target]);
        bool ends = other >> BITS == target;
        Word function = after(mine & ((1 << BITS) - 1), other & ((1 << BITS) - 1));
        mine = (ends ? (Word)v : other >> BITS) << BITS | function;
        store_relaxed(&words[v], mine);
    }
}

// A thread to a vertex: if it is matched with its first neighbour, it writes for both.  Vertices that point
// at each other write the same.  Caller: mate all -1, want and offer 0.
template <typename I, typename W>
__global__ void match_ahead(I n, const I* __restrict__ first_two, const W* __restrict__ weights,
                            const Word* __restrict__ words, I* mate, W* want, W* offer)
{
    long long v = global_thread();
    if (v >= n || words[v] >> BITS != (Word)v || apply(words[v], 0) != 1) return;
    I u = first_two[2 * v];
    W w = weights[2 * v];
    store_relaxed(&mate[v], u);
    store_relaxed(&mate[u], (I)v);
    store_relaxed(&want[v], w);
    store_relaxed(&want[u], w);
    store_relaxed(&offer[v], w);
    store_relaxed(&offer[u], w);
}
