// The values of a matrix along the paths of a forest.  Host: gpu.py.
#include "matchwood/pairs.cuh"
#include "matchwood/threads.cuh"

// `width` neighbouring lanes per row (a power of 2, at most WARP).  The vertices before and after v in its
// path are found among its neighbours in the factor.  For neighbouring rows these lie near each other; the
// places of the results need not.  Neighbours and places that are out of range are skipped: a user can change
// the arrays of a forest on the device.
template <typename I, typename W>
__global__ void collect(I n, int width, const I* __restrict__ indptr, const I* __restrict__ indices,
                        const W* __restrict__ data, const I* __restrict__ table, const I* __restrict__ place,
                        const I* __restrict__ position, W* __restrict__ dl, W* __restrict__ d, W* __restrict__ du)
{
    long long row = global_thread() / width;
    long long v = min(row, (long long)n - 1);  // no lane leaves: they shuffle together
    I i = place[v], at = position[v];
    Two<I> next = two(table, v);
    I one = next.one < 0 || next.one >= n ? I(-9) : position[next.one] - at;
    I other = next.other < 0 || next.other >= n ? I(-9) : position[next.other] - at;
    I before = one == -1 ? next.one : other == -1 ? next.other : I(-1);
    I after = one == 1 ? next.one : other == 1 ? next.other : I(-1);
    int found = 0;
    bool known = row < n && i >= 0 && i < n;
    I end = known ? indptr[v + 1] : I(0);
    for (I k = indptr[v] + threadIdx.x % width; k < end; k += width) {
        I j = indices[k];
        int which = j == v ? 1 : j == before ? 2 : j == after ? 4 : 0;
        if (which == 0) continue;
        found |= which;
        (which == 1 ? d : which == 2 ? dl : du)[i] = data[k];
    }
    for (int step = width / 2; step > 0; step /= 2) found |= __shfl_xor_sync(ALL, found, step);
    if (!known || threadIdx.x % width != 0) return;
    if (!(found & 1)) d[i] = W(0);
    if (!(found & 2)) dl[i] = W(0);
    if (!(found & 4)) du[i] = W(0);
}
