// The candidates of rows of a block on the GPU.  Host side: gpu.py.  The rule: dominant/dist.py.
//
//   first_free          the first edge of each row to a free column; long rows by a whole warp
//   first_free_giants   the same for very long rows, which the first kernel lists: a block each
//
// Columns are local numbers of the block.  Ties go by names, the user's numbers.  Both kernels only read
// `taken`, and each row is written by one group of lanes.
#include "matchwood/first_edge.cuh"
#include "matchwood/frontier.cuh"

constexpr int BLOCK = 256;       // threads of a block
constexpr int GIANT_ROW = 1024;  // entries; as in dominant/gpu.cu

template <typename I, typename B>
struct FreeColumns {
    const unsigned char* taken;
    __device__ __forceinline__ B held(I v) const { return taken[v] ? ~B(0) : B(0); }
    __device__ __forceinline__ bool takes(I, I, B) const { return false; }
};

template <typename I, typename W>
using BlockRows = Rows<I, W, Named<I>>;

template <typename I, typename W>
__device__ __forceinline__ void put(I k, Edge<I, WeightBits<W>> best, I* column, W* weight)
{
    column[k] = best.w != 0 ? best.v : I(-1);
    reinterpret_cast<WeightBits<W>*>(weight)[k] = best.w;
}

// WIDTH lanes for each of `count` rows; column[k] = -1 and weight[k] = 0 where row k of the list has no
// edge to a free column.  Caller: listed is 0, and `giants` has room for all rows that may be giants.
template <typename I, typename W, int WIDTH>
__global__ void __launch_bounds__(BLOCK)
    first_free(I count, const I* list, const I* indptr, const I* indices, const W* data, const I* names,
               const unsigned char* taken, unsigned long long seed, bool by_hash, I* column, W* weight,
               I* giants, unsigned long long* listed)
{
    BlockRows<I, W> rows{indptr, indices, reinterpret_cast<const WeightBits<W>*>(data), {seed, by_hash}, {names}};
    FreeColumns<I, WeightBits<W>> free{taken};
    long long k = global_thread() / WIDTH;
    bool mine = k < count, leads = lane() % WIDTH == 0;
    I u = mine ? list[k] : I(0);
    I begin = mine ? indptr[u] : I(0), end = mine ? indptr[u + 1] : I(0);
    bool giant = end - begin > GIANT_ROW;
    append(giants, listed, (I)k, giant && leads);
    if (giant) end = begin;
    Edge<I, WeightBits<W>> best = first_by_lanes<WIDTH>(rows, u, begin, end, free);
    if (mine && !giant && leads) put<I, W>((I)k, best, column, weight);
}

// As many blocks as the host likes.
template <typename I, typename W>
__global__ void __launch_bounds__(BLOCK)
    first_free_giants(const I* list, const I* indptr, const I* indices, const W* data, const I* names,
                      const unsigned char* taken, unsigned long long seed, bool by_hash, I* column, W* weight,
                      const I* giants, const unsigned long long* listed)
{
    BlockRows<I, W> rows{indptr, indices, reinterpret_cast<const WeightBits<W>*>(data), {seed, by_hash}, {names}};
    FreeColumns<I, WeightBits<W>> free{taken};
    for (unsigned long long i = blockIdx.x; i < *listed; i += gridDim.x) {
        I k = giants[i];
        Edge<I, WeightBits<W>> best = first_by_block(rows, list[k], free);
        if (threadIdx.x == 0) put<I, W>(k, best, column, weight);
    }
}
