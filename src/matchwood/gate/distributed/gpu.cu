// The rows of one view from the pieces that the ranks of a row of the grid have of them.  Host side: gpu.py.
#include "matchwood/edges.cuh"
#include "matchwood/sorted_row.cuh"

constexpr int TILE = 2048;  // rows and entries of a warp in a pass over a piece

// The entries of piece `own`, TILE rows and entries to a warp.  An entry is placed after those before it in its piece
// and after those of the same row with smaller columns in the other pieces; no two pieces have a column in common.
// starts: where each row of each piece begins, rows + 1 words for a piece; begins: where a piece begins in `columns`.
// names: the row of the view, whose indptr this is, for each row of the piece.  Without data and values: null.
template <typename I, typename W>
__global__ void merge_piece(int pieces, int own, I rows, I nnz, const I* starts, const long long* begins,
                            const I* columns, const I* names, const I* indptr, const W* data, I* indices, W* values)
{
    const I* own_starts = starts + own * ((long long)rows + 1);
    for_tiles<TILE>(rows, nnz, own_starts, [&](I row, I begin, I end) {
        if (!__any_sync(ALL, begin < end)) return;
        I shift = indptr[names[row]] - own_starts[row];
        WarpRows<I>(begin, end).for_entries([&](int owner, I entry, bool is_entry) {
            I its_row = __shfl_sync(ALL, row, owner), place = entry + __shfl_sync(ALL, shift, owner);
            if (is_entry) {
                I column = columns[begins[own] + entry];
                for (int k = 0; k < pieces; ++k) {
                    if (k == own) continue;
                    const I* bounds = starts + k * ((long long)rows + 1) + its_row;
                    place += first_not_below(columns + begins[k], bounds[0], bounds[1], column) - bounds[0];
                }
                indices[place] = column;
                if (data != nullptr) values[place] = data[entry];
            }
        });
        __syncwarp();
    });
}
