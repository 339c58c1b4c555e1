// Suitor matching on ranks that share a GPU.  Host side: gpu_suitor.py.  The rule and the paper: matching/weighted.py.
//
//   row_lengths      entries of the rows of all vertices, in all blocks together
//   make_proposals   all proposals, until no vertex has anything left to propose
//   read_own         mates and weights of the vertices of a rank
//
// It is the method of suitor/gpu.cu, and what is said there of races holds here.  The row of a vertex lies in pieces
// in the blocks of the C ranks of a row of the grid: whoever proposes for it reads all of them.  mate, want and offer
// have a word for each vertex of the graph, by its number in the grid.
#include "matchwood/first_edge.cuh"
#include "matchwood/local_ids.cuh"

constexpr int BLOCK = 512;  // threads of a block
constexpr int RESIDENT_BLOCKS = 3;  // blocks on a multiprocessor
constexpr int GIANT_ROW = 4096;  // entries
constexpr int NOBODY = -1;   // no vertex
constexpr int PENDING = 0, TAKEN = 1;  // as bits of a weight: less than, and not more than, any weight
constexpr int BLOCK_WORDS = 4;  // of a rank in the table of blocks: addresses of indptr, indices, data; N_R

// By which ties are broken: the users' numbers of vertices.
template <typename I>
struct Users {
    const I* names;  // null: those of the grid
    __device__ __forceinline__ I operator()(I v) const { return names == nullptr ? v : names[v]; }
};

// The part of a row that lies in one block.
template <typename I, typename W>
struct Piece {
    const I* columns;
    const WeightBits<W>* weights;
    I length;
    Local<I> local;
};

// The rows of all vertices, in the blocks of all ranks.
template <typename I, typename W>
struct Pieces {
    int R, C;
    const unsigned long long* blocks;
    Ties ties;
    Users<I> name;

    __device__ __forceinline__ int of_row(I u) const { return (int)(u % (R * C)) / C; }
    __device__ __forceinline__ I row(I u) const { return u / (R * C) * C + u % C; }

    __device__ __forceinline__ I length(I u) const
    {
        I sum = 0, at = row(u);
        for (int c = 0; c < C; ++c) {
            const I* indptr = reinterpret_cast<const I*>(blocks[(of_row(u) * C + c) * BLOCK_WORDS]);
            sum += indptr[at + 1] - indptr[at];
        }
        return sum;
    }

    // That of column c of the grid; an empty one where u is NOBODY.
    __device__ __forceinline__ Piece<I, W> piece(I u, int c) const
    {
        Piece<I, W> found{};
        if (u < 0) return found;
        int r = of_row(u);
        const unsigned long long* block = blocks + (r * C + c) * BLOCK_WORDS;
        const I* indptr = reinterpret_cast<const I*>(block[0]);
        I begin = indptr[row(u)];
        found.columns = reinterpret_cast<const I*>(block[1]) + begin;
        found.weights = reinterpret_cast<const WeightBits<W>*>(block[2]) + begin;
        found.length = indptr[row(u) + 1] - begin;
        found.local = {R, C, r, c, (I)block[3]};
        return found;
    }
};

// The first edge of u among a piece and `best`, by WIDTH neighbouring lanes; as first_of_row.  All lanes call.
template <int WIDTH, typename I, typename W, typename Others>
__device__ __forceinline__ Edge<I, WeightBits<W>> first_of_piece(const Pieces<I, W>& rows, const Piece<I, W>& piece,
                                                                 I u, I length, Edge<I, WeightBits<W>> best,
                                                                 const Others& others)
{
    using B = WeightBits<W>;
    constexpr int AHEAD = 4;  // entries of a lane at a time
    B least = best.w;  // the weight of the best answer
    for (I first = 0; __any_sync(ALL, first < length); first += AHEAD * WIDTH) {
        Held<I, B, AHEAD> entries;
        entries.load(piece.weights, piece.columns, (I)(first + lane() % WIDTH), length, WIDTH, least);
        B most = entries.heaviest();
        while (true) {
            if (most != 0 && most >= least) {
                Edge<I, B> edge = entries.take_out(most);
                edge.v = piece.local.original(edge.v);
                improve(u, edge, others, best, rows.ties, rows.name);
            }
            __syncwarp();
            least = largest_of_lanes<WIDTH>(best.w);
            most = entries.heaviest();
            if (!__any_sync(ALL, most != 0 && most >= least)) break;
        }
    }
    first_of_lanes<WIDTH>(u, best, rows.ties, rows.name);
    return best;
}

// The first edge of u, by WIDTH neighbouring lanes; the whole warp reads long pieces.  All lanes of the warp call,
// those of a group with the same u; NOBODY where there is nothing to do.
template <int WIDTH, typename I, typename W, typename Others>
__device__ __forceinline__ Edge<I, WeightBits<W>> first_by_lanes(const Pieces<I, W>& rows, I u, const Others& others)
{
    constexpr int LONG_PIECE = 16 * WIDTH;  // entries
    using Found = Edge<I, WeightBits<W>>;
    Found best{0, u};
    for (int c = 0; c < rows.C; ++c) {
        Piece<I, W> piece = rows.piece(u, c);
        bool is_long = piece.length > LONG_PIECE;
        best = first_of_piece<WIDTH>(rows, piece, u, is_long ? I(0) : piece.length, best, others);
        unsigned left = __ballot_sync(ALL, is_long && lane() % WIDTH == 0);
        for (; left != 0; left &= left - 1) {
            int owner = __ffs(left) - 1;
            I x = __shfl_sync(ALL, u, owner);
            Found mine{__shfl_sync(ALL, best.w, owner), __shfl_sync(ALL, best.v, owner)};
            Piece<I, W> far = rows.piece(x, c);
            mine = first_of_piece<WARP>(rows, far, x, far.length, mine, others);
            if (lane() / WIDTH == owner / WIDTH) best = mine;
        }
    }
    return best;
}

// The first edge of u, by the threads of a block.  All of them call, and all get it.  `least` is the weight of the
// best answer so far, or less: a thread that reads an old value asks for more.
template <typename I, typename W, typename Others>
__device__ __forceinline__ Edge<I, WeightBits<W>> first_by_block(const Pieces<I, W>& rows, I u, const Others& others)
{
    using B = WeightBits<W>;
    constexpr int AHEAD = 4;  // entries of a thread at a time
    __shared__ B least;
    Edge<I, B> best{0, u};
    if (threadIdx.x == 0) least = 0;
    __syncthreads();
    for (int c = 0; c < rows.C; ++c) {
        Piece<I, W> piece = rows.piece(u, c);
        long long length = piece.length;
        for (long long k = threadIdx.x; k < length; k += AHEAD * (int)blockDim.x) {
            Held<I, B, AHEAD> entries;
            entries.load(piece.weights, piece.columns, k, length, (int)blockDim.x, *(volatile B*)&least);
            for (B most = entries.heaviest(); most != 0 && most >= *(volatile B*)&least; most = entries.heaviest()) {
                B before = best.w;
                Edge<I, B> edge = entries.take_out(most);
                edge.v = piece.local.original(edge.v);
                improve(u, edge, others, best, rows.ties, rows.name);
                if (best.w > before) atomicMax(&least, best.w);
            }
        }
    }
    return first_of_block(u, best, rows.ties, rows.name);
}

// As in suitor/gpu.cu, with ties by the users' numbers.
template <typename I, typename B>
struct Offers {
    I* mate;
    B *want, *offer;
    Ties ties;
    Users<I> name;

    __device__ __forceinline__ B held(I v) const { return load_relaxed(&offer[v]); }

    // Whether {s, v} of weight ws comes before {u, v} of weight w, so that v keeps s.
    __device__ __forceinline__ bool stays(I s, B ws, I v, I u, B w) const
    {
        return ws != w ? ws > w : s == u || tied_first(name(s), name(v), name(u), name(v), ties);
    }

    __device__ __noinline__ bool takes(I v, I u, B w) const
    {
        fence();  // so the suitor read next is that of the offer read before, or a better one
        I s = load_relaxed(&mate[v]);
        if (s < 0) return true;
        fence();
        return !stays(s, load_relaxed(&want[s]), v, u, w);
    }

    // Returns who has to propose next: the displaced vertex, NOBODY, or u again.
    __device__ __noinline__ I propose(I u, I v, B w) const
    {
        store_relaxed(&want[u], w);
        fence();
        I s = load_relaxed(&mate[v]);
        while (true) {
            if (s >= 0) {
                fence();
                B ws = load_relaxed(&want[s]);
                if (stays(s, ws, v, u, w)) {
                    raise_to(&offer[v], ws);
                    return u;
                }
            }
            I seen = compare_and_swap(&mate[v], s, u);
            if (seen == s) break;
            s = seen;
        }
        raise_to(&offer[v], w);
        return s;
    }
};

template <typename I>
__global__ void row_lengths(I n, int R, int C, const unsigned long long* blocks, I* length)
{
    long long v = global_thread();
    Pieces<I, float> rows{R, C, blocks};  // the type of weights does not matter
    if (v < n) length[v] = rows.length((I)v);
}

// WIDTH lanes per vertex.  A group goes on with its next vertex while others follow a chain of displacements.
template <typename I, typename W, int WIDTH>
__device__ __forceinline__ void propose_by_lanes(I n, const Pieces<I, W>& rows,
                                                 const Offers<I, WeightBits<W>>& offers)
{
    long long groups = all_threads() / WIDTH, next = global_thread() / WIDTH;
    I u = NOBODY;
    while (true) {
        while (u < 0 && next < n) {
            u = (I)next;
            next += groups;
            if (rows.length(u) > GIANT_ROW) u = NOBODY;  // it is pending
        }
        if (!__any_sync(ALL, u >= 0 || next < n)) return;
        Edge<I, WeightBits<W>> best = first_by_lanes<WIDTH>(rows, u, offers);
        I after = NOBODY;
        if (lane() % WIDTH == 0 && u >= 0 && best.w != 0) {
            after = offers.propose(u, best.v, best.w);
            if (after >= 0 && after != u && rows.length(after) > GIANT_ROW) {
                fence();
                store_relaxed(&offers.want[after], WeightBits<W>(PENDING));
                after = NOBODY;
            }
        }
        u = __shfl_sync(ALL, after, lane() / WIDTH * WIDTH);
    }
}

// Takes a pending giant for this block; NOBODY when there is none.  All threads of the block call.
template <typename I, typename B>
__device__ __forceinline__ I claim_giant(const I* giants, long long count, B* want)
{
    __shared__ int place;
    __shared__ I claimed;
    while (true) {
        if (threadIdx.x == 0) place = -1;
        __syncthreads();
        long long shift = count * blockIdx.x / gridDim.x;  // blocks begin at different giants
        for (long long k = threadIdx.x; k < count && *(volatile int*)&place < 0; k += blockDim.x) {
            long long at = (k + shift) % count;
            if (load_relaxed(&want[giants[at]]) == B(PENDING)) atomicCAS(&place, -1, (int)at);
        }
        __syncthreads();
        if (place < 0) return NOBODY;
        if (threadIdx.x == 0) {
            I g = giants[place];
            claimed = compare_and_swap(&want[g], B(PENDING), B(TAKEN)) == B(PENDING) ? g : I(NOBODY);
            fence();
        }
        __syncthreads();
        I mine = claimed;
        if (mine >= 0) return mine;
    }
}

// Caller: mate -1, want and offer 0.
template <typename I, typename W, int WIDTH>
__global__ void __launch_bounds__(BLOCK, RESIDENT_BLOCKS)
    make_proposals(I n, int R, int C, const unsigned long long* blocks, const I* names,
                   unsigned long long seed, bool by_hash, const I* giants, long long giant_count, I* mate, W* want,
                   W* offer)
{
    using B = WeightBits<W>;
    __shared__ I following;
    Ties ties{seed, by_hash};
    Pieces<I, W> rows{R, C, blocks, ties, {names}};
    Offers<I, B> offers{mate, reinterpret_cast<B*>(want), reinterpret_cast<B*>(offer), ties, {names}};
    propose_by_lanes<I, W, WIDTH>(n, rows, offers);
    if (giant_count == 0) return;
    fence();
    __syncthreads();
    I u = NOBODY;
    while (true) {
        if (u < 0) u = claim_giant(giants, giant_count, offers.want);
        if (u < 0) return;
        Edge<I, B> best = first_by_block(rows, u, offers);
        if (threadIdx.x == 0) {
            following = best.w != 0 ? offers.propose(u, best.v, best.w) : I(NOBODY);
            fence();
        }
        __syncthreads();
        u = following;
        __syncthreads();
    }
}

// One thread to a place: the mate, by the users' numbers, and the weight; -1 and 0 where there is none.
template <typename I, typename W>
__global__ void read_own(I owned, int p, int rank, const I* names, const I* mate, const W* offer, I* own_mate,
                         W* own_weight)
{
    long long place = global_thread();
    if (place >= owned) return;
    I v = (I)place * p + rank, w = mate[v];
    own_mate[place] = w < 0 ? I(NOBODY) : Users<I>{names}(w);
    own_weight[place] = offer[v];
}
