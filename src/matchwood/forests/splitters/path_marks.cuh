// Marks that walks along paths leave at vertices.  Who uses them: gpu.cu.
#pragma once

using Mark = unsigned long long;

// A mark, from the top: 2 bits kind, 31 bits walk, 31 bits steps.  Walks from an end have its vertex
// as number, those of a node 2 * node + side.  A node's own mark has the node in the place of the
// steps.  An end's own mark is its record: END, 31 bits the other end and 30 bits the length of the
// path; length 0: not known yet, and in the place of the end the slot of the node that was met.
constexpr Mark FROM_END = 1ull << 62, FROM_NODE = 2ull << 62, OWN = 3ull << 62, KIND = 3ull << 62;
constexpr Mark END = 1ull << 61;
constexpr int WALK_SHIFT = 31, OTHER_SHIFT = 30;
constexpr Mark LOW31 = (1ull << 31) - 1, LOW30 = (1ull << 30) - 1;

__device__ __forceinline__ Mark end_record(long long other, long long length)
{
    return OWN | END | (Mark)other << OTHER_SHIFT | (Mark)length;
}

// The node whose walk claimed a vertex, or -1; `along` is how far the vertex is from it along slot 0.
__device__ __forceinline__ int node_of(Mark mark, int& along)
{
    along = 0;
    if ((mark & KIND) == OWN) return mark & END ? -1 : (int)(mark & LOW31);
    if ((mark & KIND) == FROM_END) return -1;
    int slot = (int)(mark >> WALK_SHIFT & LOW31), steps = (int)(mark & LOW31);
    along = slot & 1 ? -steps : steps;
    return slot >> 1;
}
