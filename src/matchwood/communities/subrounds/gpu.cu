// The vertices of a round, sorted by sub-round and by the length of their rows.  Host side:
// gpu.py; the rule: __init__.py.
//
// A block has TILE vertices.  It counts them for each pair (sub-round, class) in shared memory and asks
// for their places at once.  The order of blocks and the order within a pair depend on scheduling;
// nothing depends on them.
#include "matchwood/subrounds.cuh"

constexpr int TILE = 2048;  // vertices of a block

template <typename I>
__global__ void count_turns(I n, const I* __restrict__ indptr, unsigned long long start, unsigned long long round,
                            int parts, I* counts)
{
    extern __shared__ int here[];
    int pairs = parts * ROW_CLASSES;
    for (int p = threadIdx.x; p < pairs; p += blockDim.x) here[p] = 0;
    __syncthreads();
    long long first = (long long)blockIdx.x * TILE;
    for (long long v = first + threadIdx.x; v < n && v < first + TILE; v += blockDim.x) {
        int p = pair_of((I)v, indptr, start, round, parts);
        if (p >= 0) atomicAdd(&here[p], 1);
    }
    __syncthreads();
    for (int p = threadIdx.x; p < pairs; p += blockDim.x)
        if (here[p]) take(&counts[p], I(here[p]));
}

// begins[p]: the first place of pair p; placed[p]: how many of its places are taken, 0 before.
template <typename I>
__global__ void deal_turns(I n, const I* __restrict__ indptr, unsigned long long start, unsigned long long round,
                           int parts, const I* __restrict__ begins, I* placed, I* order)
{
    extern __shared__ int here[];
    int pairs = parts * ROW_CLASSES;
    I* base = reinterpret_cast<I*>(here + pairs + pairs % 2);
    for (int p = threadIdx.x; p < pairs; p += blockDim.x) here[p] = 0;
    __syncthreads();
    long long first = (long long)blockIdx.x * TILE;
    for (long long v = first + threadIdx.x; v < n && v < first + TILE; v += blockDim.x) {
        int p = pair_of((I)v, indptr, start, round, parts);
        if (p >= 0) atomicAdd(&here[p], 1);
    }
    __syncthreads();
    for (int p = threadIdx.x; p < pairs; p += blockDim.x) {
        base[p] = here[p] ? begins[p] + take(&placed[p], I(here[p])) : I(0);
        here[p] = 0;
    }
    __syncthreads();
    for (long long v = first + threadIdx.x; v < n && v < first + TILE; v += blockDim.x) {
        int p = pair_of((I)v, indptr, start, round, parts);
        if (p >= 0) order[base[p] + atomicAdd(&here[p], 1)] = (I)v;
    }
}

// A block to a sub-round: where its hubs have their tables and pieces.  `next` is 0 before: the first
// free piece, for all sub-rounds; their order depends on scheduling, and nothing depends on it.
template <typename I>
__global__ void place_hubs(int parts, const I* __restrict__ indptr, const I* __restrict__ order,
                           const I* __restrict__ begins, I* vertex, long long* first_slot, I* first_piece, I* piece_hub,
                           long long* turns, unsigned long long* next)
{
    __shared__ long long first;
    int p = blockIdx.x;
    long long before = 0;
    for (int q = 0; q < p; ++q) before += begins[q * ROW_CLASSES + ROW_CLASSES] - begins[q * ROW_CLASSES + HUB_CLASS];
    long long from = begins[p * ROW_CLASSES + HUB_CLASS], hubs = begins[p * ROW_CLASSES + ROW_CLASSES] - from;
    long long mine = 0;
    for (long long i = threadIdx.x; i < hubs; i += blockDim.x) {
        I v = order[from + i];
        mine += pieces_of(indptr[v + 1] - indptr[v]);
    }
    mine = block_reduce(mine, 0ll, Plus());
    if (threadIdx.x == 0) first = (long long)atomicAdd(next, (unsigned long long)mine);
    __syncthreads();
    long long piece = first, slot = 0;
    for (long long start = 0; start < hubs; start += blockDim.x) {
        long long i = start + threadIdx.x, total_pieces, total_slots;
        I v = i < hubs ? order[from + i] : I(0);
        long long length = i < hubs ? indptr[v + 1] - indptr[v] : 0;
        long long pieces = pieces_of(length), slots = i < hubs ? slots_of(length) : 0;
        long long my_piece = piece + block_exclusive_sum(pieces, &total_pieces);
        long long my_slot = slot + block_exclusive_sum(slots, &total_slots);
        piece += total_pieces;
        slot += total_slots;
        if (i >= hubs) continue;
        vertex[before + i] = v;
        first_slot[before + i] = my_slot;
        first_piece[before + i] = (I)my_piece;
        for (long long k = 0; k < pieces; ++k) piece_hub[my_piece + k] = (I)(before + i);
    }
    if (threadIdx.x != 0) return;
    long long* turn = turns + p * HUB_WORDS;
    turn[FIRST_HUB] = before;
    turn[HUB_COUNT] = hubs;
    turn[FIRST_PIECE] = first;
    turn[PIECE_COUNT] = piece - first;
    turn[SLOT_COUNT] = slot;
}
