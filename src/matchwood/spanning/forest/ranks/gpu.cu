// Boruvka's rounds on the block of a rank that has a GPU.  Host side: gpu.py.
#include "matchwood/atomics.cuh"
#include "matchwood/threads.cuh"

// best[a[i]] and best[b[i]] become i where they were larger.  One thread per edge; edges are in
// order, so of the edges of a component the first remains.  Most edges of a large component are
// later than the first: they read the word, and no atomic operation is needed.
__global__ void offer_edges(long long count, const long long* a, const long long* b, unsigned long long* best)
{
    long long i = global_thread();
    if (i >= count) return;
    unsigned long long place = (unsigned long long)i;
    if (load_relaxed(&best[a[i]]) > place) atomicMin(&best[a[i]], place);
    if (load_relaxed(&best[b[i]]) > place) atomicMin(&best[b[i]], place);
}
