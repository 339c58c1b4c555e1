// A component of a few vertices, by one thread: where it starts, and its order.  The rule: __init__.py
// of the folder above, for graphs that are not small.
//
// Vertices are numbered as they ascend, so that ties are broken as everywhere.  Sets of them are words.
#pragma once
#include "matchwood/threads.cuh"

constexpr int TINY = 32;  // vertices, as many as a word has bits

template <typename I>
struct Tiny {
    I vertex[TINY], degree[TINY];
    unsigned near[TINY];  // neighbours of each
    int size;

    __device__ int number(I v) const
    {
        int k = 0;
        while (k < size && vertex[k] != v) ++k;
        return k;
    }

    // Gather the component of v.  Its size; 0 if v is not the smallest of it, more than TINY if it is too large.
    __device__ int gather(const I* indptr, const I* indices, I v)
    {
        vertex[0] = v;
        size = 1;
        for (int k = 0; k < size; ++k) {
            for (I at = indptr[vertex[k]]; at < indptr[vertex[k] + 1]; ++at) {
                I w = indices[at];
                if (w < v) return 0;
                if (number(w) < size) continue;
                if (size == TINY) return TINY + 1;
                vertex[size++] = w;
            }
        }
        return size;
    }

    // After `gather`: sort the vertices, and find who is whose neighbour.
    __device__ void link(const I* indptr, const I* indices)
    {
        for (int k = 1; k < size; ++k) {
            I v = vertex[k];
            int at = k;
            for (; at > 0 && vertex[at - 1] > v; --at) vertex[at] = vertex[at - 1];
            vertex[at] = v;
        }
        for (int k = 0; k < size; ++k) {
            I begin = indptr[vertex[k]], end = indptr[vertex[k] + 1];
            degree[k] = end - begin;
            near[k] = 0;
            for (I at = begin; at < end; ++at) near[k] |= 1u << (number(indices[at]) & (TINY - 1));
        }
    }

    // The vertex of least (degree, vertex) of a set that is not empty.
    __device__ int least(unsigned set) const
    {
        int best = __ffs(set) - 1;
        for (; set != 0; set &= set - 1)
            if (degree[__ffs(set) - 1] < degree[best]) best = __ffs(set) - 1;
        return best;
    }

    struct Found {
        int width, depth, far;
    };

    __device__ Found search(int start) const
    {
        unsigned front = 1u << start, seen = front;
        Found found{1, 0, start};
        while (true) {
            unsigned next = 0;
            for (unsigned left = front; left != 0; left &= left - 1) next |= near[__ffs(left) - 1];
            next &= ~seen;
            if (next == 0) break;
            int both = __popc(front) + __popc(next);
            found.width = both > found.width ? both : found.width;
            found.depth += 1;
            seen |= next;
            front = next;
        }
        found.far = least(front);
        return found;
    }

    __device__ int find_start() const
    {
        int start = least(size == TINY ? ~0u : (1u << size) - 1);
        Found best = search(start);
        while (true) {
            int other = best.far;
            Found found = search(other);
            if (found.width >= best.width) return start;
            start = other;
            if (found.depth <= best.depth) return start;
            best = found;
        }
    }

    // give(place, vertex) in the order of Cuthill and McKee.
    template <typename Give>
    __device__ void order(int start, Give give) const
    {
        int queue[TINY], tail = 1;
        queue[0] = start;
        unsigned open = (size == TINY ? ~0u : (1u << size) - 1) & ~(1u << start);
        for (int head = 0; head < tail; ++head) {
            give(head, vertex[queue[head]]);
            for (unsigned children = near[queue[head]] & open; children != 0;) {
                int child = least(children);
                queue[tail++] = child;
                children &= ~(1u << child);
                open &= ~(1u << child);
            }
        }
    }
};
