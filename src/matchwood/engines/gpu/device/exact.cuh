// Arithmetic and comparisons that treat subnormal numbers as the CPU does.
//
// CuPy compiles everything with -ftz=true, which makes float32 numbers below 1.2e-38 zero in every
// operation.  Where that could change an answer (which weight is larger, whether one is zero), use
// these: the same instructions without the flag.  float64 is exact anyway.
#pragma once

// Also for integers, so that templates need not distinguish them.
template <typename T>
__device__ __forceinline__ bool exactly_less(T a, T b)
{
    return a < b;
}
__device__ __forceinline__ bool exactly_less(float a, float b)
{
    int less;
    asm("{ .reg .pred p; setp.lt.f32 p, %1, %2; selp.s32 %0, 1, 0, p; }" : "=r"(less) : "f"(a), "f"(b));
    return less;
}

__device__ __forceinline__ bool exactly_equal(double a, double b) { return a == b; }
__device__ __forceinline__ bool exactly_equal(float a, float b)
{
    int equal;
    asm("{ .reg .pred p; setp.eq.f32 p, %1, %2; selp.s32 %0, 1, 0, p; }" : "=r"(equal) : "f"(a), "f"(b));
    return equal;
}

__device__ __forceinline__ double exact_sum(double a, double b) { return a + b; }
__device__ __forceinline__ float exact_sum(float a, float b)
{
    float sum;
    asm("add.rn.f32 %0, %1, %2;" : "=f"(sum) : "f"(a), "f"(b));
    return sum;
}
__device__ __forceinline__ long long exact_sum(long long a, long long b) { return a + b; }  // must not overflow

__device__ __forceinline__ double widened(double a) { return a; }
__device__ __forceinline__ double widened(float a)
{
    double wide;
    asm("cvt.f64.f32 %0, %1;" : "=d"(wide) : "f"(a));
    return wide;
}

// Bits only, so nothing can be flushed.
__device__ __forceinline__ unsigned long long value_bits(double a) { return (unsigned long long)__double_as_longlong(a); }
__device__ __forceinline__ unsigned long long value_bits(float a) { return __float_as_uint(a); }
__device__ __forceinline__ bool is_zero(double a) { return (value_bits(a) << 1) == 0; }
__device__ __forceinline__ bool is_zero(float a) { return (__float_as_uint(a) << 1) == 0; }
__device__ __forceinline__ bool is_finite(double a) { return (__double2hiint(a) & 0x7ff00000) != 0x7ff00000; }
__device__ __forceinline__ bool is_finite(float a) { return (__float_as_uint(a) & 0x7f800000u) != 0x7f800000u; }
__device__ __forceinline__ double magnitude(double a) { return __longlong_as_double(__double_as_longlong(a) & 0x7fffffffffffffffll); }
__device__ __forceinline__ float magnitude(float a) { return __uint_as_float(__float_as_uint(a) & 0x7fffffffu); }
__device__ __forceinline__ long long magnitude(long long a) { return a < 0 ? -a : a; }
