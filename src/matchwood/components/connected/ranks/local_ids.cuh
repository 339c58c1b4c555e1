// Vertices of a rank's block: local ids and those of the grid (engines/ranks/grid), by arithmetic.
#pragma once

// Rank r C + c of R x C ranks; `rows` is N_R, local ids from there on are of the column group alone.
template <typename I, typename V = I>
struct Local {
    int R, C, r, c;
    I rows;
    __device__ __forceinline__ V original(I v) const
    {
        V p = (V)R * C;
        if (v < rows) return (V)(v / C) * p + (V)(r * C + (int)(v % C));
        v -= rows;
        int stripe = (int)(v % (R - 1));
        return (V)(v / (R - 1)) * p + (V)((stripe + (stripe >= r)) * C + c);
    }
};
