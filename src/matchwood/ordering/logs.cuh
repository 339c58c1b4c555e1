// Logarithms as integers: L(d) of gap/__init__.py, which also makes the table.
#pragma once

constexpr int TABLE_BITS = 16;  // leading bits of a distance that count

__device__ __forceinline__ long long log_of(long long d, const int* table)
{
    int bits = 64 - __clzll(d), shift = bits > TABLE_BITS ? bits - TABLE_BITS : 0;
    return table[d >> shift] + ((long long)shift << 20);
}
