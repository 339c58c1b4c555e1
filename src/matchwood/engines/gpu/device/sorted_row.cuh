// A search in a row of ascending indices.
#pragma once

// The first of the entries low .. high - 1 that is not below `wanted`; high where all are.
template <typename I>
__device__ __forceinline__ I first_not_below(const I* indices, I low, I high, I wanted)
{
    while (low < high) {
        I middle = low + (high - low) / 2;
        if (indices[middle] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
