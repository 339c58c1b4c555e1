// Contraction of pairs of vertices on the GPU.  Host side: __init__.py; the rule: ../__init__.py.
//
// A coarse row is the union of at most two fine rows.  Its entries become numbers, which are sorted
// within the row: coarse column first, then the place of the weight in the sum over a coarse edge.
// Equal columns then lie side by side, four at most.  Rows of up to WIDTH entries are sorted by as
// many lanes in registers, twice: once to count, once to write.  Longer ones are listed, and sorted
// by a warp in shared memory.
//
// In the sum the smaller coarse vertex's members are first.  So both rows of an edge hold the same
// bits, and no thread needs what another one adds.
#include "matchwood/atomics.cuh"
#include "matchwood/exact.cuh"
#include "matchwood/threads.cuh"

using Key = unsigned long long;
constexpr int BLOCK = 256;       // threads of a block for short rows
constexpr int WARP_ROW = 512;    // entries that a warp sorts
constexpr int LONG_BLOCK = 128;  // threads of a block for long rows
constexpr int WARPS = LONG_BLOCK / WARP;

// Vertices that are the smaller of their pair, or alone.
template <typename I>
__global__ void mark_leaders(I n, const I* __restrict__ mate, I* __restrict__ leads)
{
    long long v = global_thread();
    if (v < n) leads[v] = mate[v] < 0 || mate[v] > v;
}

// One thread per vertex: its number on the coarse side.  `code` holds the same, negated bit by bit where
// the vertex is the second of its pair.  Rows of more than `width` entries are listed, with the place
// where their keys go.  sizes: coarse vertices; listed rows; their entries; rows too long for a warp.
template <typename I>
__global__ void number(I n, const I* __restrict__ indptr, const I* __restrict__ mate, const I* __restrict__ starts,
                       int width, I* __restrict__ map, I* __restrict__ code, I* __restrict__ leaders,
                       I* __restrict__ listed, long long* __restrict__ places, unsigned long long* sizes)
{
    long long v = global_thread();
    if (v >= n) return;
    I other = mate[v];
    bool second = other >= 0 && other < v;
    I mine = starts[second ? other : v];
    map[v] = mine;
    code[v] = second ? ~mine : mine;
    if (v == 0) sizes[0] = (unsigned long long)starts[n];
    if (second) return;
    leaders[mine] = (I)v;
    long long length = indptr[v + 1] - indptr[v];
    if (other >= 0) length += indptr[other + 1] - indptr[other];
    if (length <= width) return;
    unsigned long long k = take(&sizes[1], 1ull);
    listed[k] = mine;
    places[k] = (long long)take(&sizes[2], (unsigned long long)length);
    if (length > WARP_ROW) take(&sizes[3], 1ull);
}

// The fine rows of a coarse one, one after the other.
template <typename I>
struct Row {
    I i, first, second;
    long long begin[2], length[2];

    __device__ __forceinline__ Row(I row, const I* leaders, const I* mate, const I* indptr) : i(row)
    {
        first = leaders[i];
        second = mate[first];
        begin[0] = indptr[first];
        length[0] = indptr[first + 1] - begin[0];
        begin[1] = second >= 0 ? (long long)indptr[second] : 0;
        length[1] = second >= 0 ? indptr[second + 1] - begin[1] : 0;
    }
    __device__ __forceinline__ long long size() const { return length[0] + length[1]; }
    __device__ __forceinline__ long long entry(long long t) const
    {
        return t < length[0] ? begin[0] + t : begin[1] + t - length[0];
    }
    // Column << 2 | place in the sum; `nowhere` << 2 within the pair.
    __device__ __forceinline__ Key key(long long t, I code, I nowhere) const
    {
        Key column = (Key)(code < 0 ? ~code : code), there = code < 0, here = t >= length[0];
        if (column == (Key)i) return (Key)nowhere << 2;
        return column << 2 | ((Key)i < column ? here << 1 | there : there << 1 | here);
    }
};

// WIDTH lanes sort a key each, and so does every other group of the warp.
template <int WIDTH>
__device__ __forceinline__ Key sort_lanes(Key key)
{
    int at = lane() % WIDTH;
#pragma unroll
    for (int run = 2; run <= WIDTH; run *= 2) {
#pragma unroll
        for (int step = run / 2; step > 0; step /= 2) {
            Key other = __shfl_xor_sync(ALL, key, step);
            bool smaller = ((at & step) == 0) == ((at & run) == 0);
            if (smaller == (other < key)) key = other;
        }
    }
    return key;
}

// One thread per coarse vertex: the sum of its members' weights.
template <typename I, typename V>
__global__ void add_members(I rows, const I* __restrict__ leaders, const I* __restrict__ mate,
                            const V* __restrict__ members, V* __restrict__ weights)
{
    long long i = global_thread();
    if (i >= rows) return;
    I first = leaders[i], second = mate[first];
    weights[i] = second >= 0 ? members[first] + members[second] : members[first];
}

// WIDTH lanes per coarse row.  With WRITE its columns and weights, otherwise how many there are.
template <typename I, typename W, int WIDTH, bool WRITE>
__global__ void __launch_bounds__(BLOCK)
short_rows(I rows, const I* __restrict__ indptr, const I* __restrict__ indices, const W* __restrict__ data,
           const I* __restrict__ mate, const I* __restrict__ code, const I* __restrict__ leaders,
           I* __restrict__ counts, const I* __restrict__ out_indptr, I* __restrict__ out_indices,
           W* __restrict__ out_data)
{
    constexpr int LANE_BITS = 5;
    long long i = global_thread() / WIDTH;
    int at = lane() % WIDTH;
    Key key = ~Key(0), dropped = (Key)rows << (2 + LANE_BITS);
    W value = 0;
    bool is_short = false;
    if (i < rows) {
        Row<I> row((I)i, leaders, mate, indptr);
        is_short = row.size() <= WIDTH;
        if (is_short && at < row.size()) {
            long long e = row.entry(at);
            key = row.key(at, code[indices[e]], rows) << LANE_BITS | lane();
            if (WRITE) value = data[e];
        }
    }
    key = sort_lanes<WIDTH>(key);
    Key column = key >> (2 + LANE_BITS);
    Key before = __shfl_up_sync(ALL, column, 1, WIDTH);
    bool heads = key < dropped && (at == 0 || before != column);
    unsigned group = (unsigned)(0xffffffffull >> (WARP - WIDTH)) << (lane() - at);
    unsigned all_heads = __ballot_sync(ALL, heads) & group;
    if (!WRITE) {
        if (is_short && at == 0) counts[i] = __popc(all_heads);
        return;
    }
    value = __shfl_sync(ALL, value, (int)(key & (WARP - 1)));
    W sum = value;
#pragma unroll
    for (int step = 1; step < 4; ++step) {
        Key next = __shfl_down_sync(ALL, column, step, WIDTH);
        W more = __shfl_down_sync(ALL, value, step, WIDTH);
        if (at + step < WIDTH && next == column) sum = exact_sum(sum, more);
    }
    if (!heads) return;
    long long place = out_indptr[i] + __popc(all_heads & lanes_below());
    out_indices[place] = (I)column;
    out_data[place] = sum;
}

// One warp per listed row: its keys, sorted.
template <typename I>
__global__ void __launch_bounds__(LONG_BLOCK)
sort_by_warps(long long listed_rows, I rows, const I* __restrict__ indptr, const I* __restrict__ indices,
              const I* __restrict__ mate, const I* __restrict__ code, const I* __restrict__ leaders,
              const I* __restrict__ listed, const long long* __restrict__ places, Key* __restrict__ keys)
{
    __shared__ Key shared[WARPS][WARP_ROW];
    long long k = (long long)blockIdx.x * WARPS + warp();
    if (k >= listed_rows) return;
    Row<I> row(listed[k], leaders, mate, indptr);
    int size = (int)row.size(), padded = WARP;
    while (padded < size) padded *= 2;
    Key* mine = shared[warp()];
    for (int t = lane(); t < padded; t += WARP)
        mine[t] = t < size ? row.key(t, code[indices[row.entry(t)]], rows) : ~Key(0);
    for (int run = 2; run <= padded; run *= 2) {
        for (int step = run / 2; step > 0; step /= 2) {
            __syncwarp();
            for (int pair = lane(); pair < padded / 2; pair += WARP) {
                int low = 2 * pair - (pair & (step - 1)), high = low + step;
                Key a = mine[low], b = mine[high];
                if ((b < a) == ((low & run) == 0)) {
                    mine[low] = b;
                    mine[high] = a;
                }
            }
        }
    }
    __syncwarp();
    for (int t = lane(); t < size; t += WARP) keys[places[k] + t] = mine[t];
}

// The weight of a key's fine edge, by bisection in its fine row.
template <typename I, typename W>
__device__ __forceinline__ W weight_of(const Row<I>& row, Key key, const I* __restrict__ indices,
                                       const W* __restrict__ data, const I* __restrict__ mate,
                                       const I* __restrict__ leaders)
{
    I column = (I)(key >> 2);
    bool above = row.i < column, high = key >> 1 & 1, low = key & 1;
    bool here = above ? high : low, there = above ? low : high;
    I wanted = leaders[column];
    if (there) wanted = mate[wanted];
    long long from = here ? row.begin[1] : row.begin[0];
    long long to = from + (here ? row.length[1] : row.length[0]);
    while (from < to) {
        long long middle = (from + to) / 2;
        if (indices[middle] < wanted)
            from = middle + 1;
        else
            to = middle;
    }
    return data[from];
}

// One block per listed row, whose keys are sorted: as `short_rows`.
template <typename I, typename W, bool WRITE>
__global__ void __launch_bounds__(LONG_BLOCK)
long_rows(I rows, const I* __restrict__ indptr, const I* __restrict__ indices, const W* __restrict__ data,
          const I* __restrict__ mate, const I* __restrict__ leaders, const I* __restrict__ listed,
          const long long* __restrict__ places, const Key* __restrict__ keys, I* __restrict__ counts,
          const I* __restrict__ out_indptr, I* __restrict__ out_indices, W* __restrict__ out_data)
{
    Row<I> row(listed[blockIdx.x], leaders, mate, indptr);
    const Key* mine = keys + places[blockIdx.x];
    Key dropped = (Key)rows << 2;
    long long size = row.size(), done = 0;
    for (long long first = 0; first < size; first += LONG_BLOCK) {
        long long t = first + threadIdx.x;
        Key key = t < size ? mine[t] : dropped;
        bool heads = key < dropped && (t == 0 || mine[t - 1] >> 2 != key >> 2);
        int all_heads;
        int before = block_exclusive_sum((int)heads, &all_heads);
        if (WRITE && heads) {
            W sum = weight_of(row, key, indices, data, mate, leaders);
            for (long long next = t + 1; next < size && mine[next] >> 2 == key >> 2; ++next)
                sum = exact_sum(sum, weight_of(row, mine[next], indices, data, mate, leaders));
            long long place = out_indptr[row.i] + done + before;
            out_indices[place] = (I)(key >> 2);
            out_data[place] = sum;
        }
        done += all_heads;
    }
    if (!WRITE && threadIdx.x == 0) counts[row.i] = (I)done;
}
