// Device functions that C++ does not have: min/max overloads, intrinsics, conversions, bit counts, cache hints.
// Results are IEEE where CUDA's are approximate (__expf, rsqrtf, …): the difference is within CUDA's own error bounds.
#pragma once
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmath>

#include "abi.h"

#define EMU_MIN_MAX(TYPE)                                                                                              \
  EMU_INLINE TYPE min(TYPE a, TYPE b) { return b < a ? b : a; }                                                        \
  EMU_INLINE TYPE max(TYPE a, TYPE b) { return a < b ? b : a; }
EMU_MIN_MAX(int)
EMU_MIN_MAX(unsigned)
EMU_MIN_MAX(long)
EMU_MIN_MAX(unsigned long)
EMU_MIN_MAX(long long)
EMU_MIN_MAX(unsigned long long)
#undef EMU_MIN_MAX
#define EMU_MIN_MAX_MIXED(RESULT, A, B)                                                                                \
  EMU_INLINE RESULT min(A a, B b) { return min(static_cast<RESULT>(a), static_cast<RESULT>(b)); }                      \
  EMU_INLINE RESULT max(A a, B b) { return max(static_cast<RESULT>(a), static_cast<RESULT>(b)); }
#define EMU_MIN_MAX_BOTH(RESULT, A, B) EMU_MIN_MAX_MIXED(RESULT, A, B) EMU_MIN_MAX_MIXED(RESULT, B, A)
EMU_MIN_MAX_BOTH(unsigned, int, unsigned)
EMU_MIN_MAX_BOTH(unsigned long, long, unsigned long)
EMU_MIN_MAX_BOTH(unsigned long long, long long, unsigned long long)
EMU_INLINE float min(float a, float b) { return fminf(a, b); }
EMU_INLINE float max(float a, float b) { return fmaxf(a, b); }
EMU_INLINE double min(double a, double b) { return fmin(a, b); }
EMU_INLINE double max(double a, double b) { return fmax(a, b); }
EMU_MIN_MAX_BOTH(double, float, double)
#undef EMU_MIN_MAX_BOTH
#undef EMU_MIN_MAX_MIXED
EMU_INLINE unsigned umin(unsigned a, unsigned b) { return min(a, b); }
EMU_INLINE unsigned umax(unsigned a, unsigned b) { return max(a, b); }
EMU_INLINE long long llmin(long long a, long long b) { return min(a, b); }
EMU_INLINE long long llmax(long long a, long long b) { return max(a, b); }

// Functions of CUDA's math library that glibc lacks.
EMU_INLINE float rsqrtf(float x) { return static_cast<float>(1.0 / sqrt(static_cast<double>(x))); }
EMU_INLINE double rsqrt(double x) { return 1.0 / sqrt(x); }
EMU_INLINE float rsqrt(float x) { return rsqrtf(x); }
EMU_INLINE float rcbrtf(float x) { return 1.0f / cbrtf(x); }
EMU_INLINE double rcbrt(double x) { return 1.0 / cbrt(x); }
EMU_INLINE float sinpif(float x) { return static_cast<float>(sin(M_PI * fmod(static_cast<double>(x), 2.0))); }
EMU_INLINE float cospif(float x) { return static_cast<float>(cos(M_PI * fmod(static_cast<double>(x), 2.0))); }
EMU_INLINE double sinpi(double x) { return sin(M_PI * fmod(x, 2.0)); }
EMU_INLINE double cospi(double x) { return cos(M_PI * fmod(x, 2.0)); }
EMU_INLINE void sincospif(float x, float *s, float *c) { *s = sinpif(x), *c = cospif(x); }
EMU_INLINE void sincospi(double x, double *s, double *c) { *s = sinpi(x), *c = cospi(x); }
EMU_INLINE double normcdf(double x) { return 0.5 * erfc(-x * M_SQRT1_2); }
EMU_INLINE float normcdff(float x) { return static_cast<float>(normcdf(static_cast<double>(x))); }
EMU_INLINE double erfcx(double x) { return exp(x * x) * erfc(x); }
EMU_INLINE float erfcxf(float x) { return static_cast<float>(erfcx(static_cast<double>(x))); }
// Newton steps on erf from Winitzki's approximation (S. Winitzki, 2008); good to a few ulp away from ±1.
inline double erfinv(double y) {
  if (!(y > -1.0 && y < 1.0)) return y == 1.0 ? HUGE_VAL : y == -1.0 ? -HUGE_VAL : NAN;
  double w = log(1.0 - y * y), a = 2.0 / (M_PI * 0.147) + 0.5 * w;
  double x = copysign(sqrt(sqrt(a * a - w / 0.147) - a), y);
  for (int i = 0; i < 3; i++) x -= (erf(x) - y) / (M_2_SQRTPI * exp(-x * x));
  return x;
}
EMU_INLINE float erfinvf(float y) { return static_cast<float>(erfinv(static_cast<double>(y))); }
EMU_INLINE double rhypot(double x, double y) { return 1.0 / hypot(x, y); }
EMU_INLINE float rhypotf(float x, float y) { return 1.0f / hypotf(x, y); }
EMU_INLINE float norm3df(float a, float b, float c) { return sqrtf(a * a + b * b + c * c); }
EMU_INLINE double norm3d(double a, double b, double c) { return sqrt(a * a + b * b + c * c); }
EMU_INLINE float rnorm3df(float a, float b, float c) { return 1.0f / norm3df(a, b, c); }
EMU_INLINE float fdividef(float a, float b) { return a / b; }
EMU_INLINE float fdivide(float a, float b) { return a / b; }
EMU_INLINE double fdivide(double a, double b) { return a / b; }

// glibc declares __expf and its like for itself: ours go by another name.
#define __expf emu_expf
#define __exp10f emu_exp10f
#define __logf emu_logf
#define __log2f emu_log2f
#define __log10f emu_log10f
#define __powf emu_powf
#define __sinf emu_sinf
#define __cosf emu_cosf
#define __tanf emu_tanf
#define __sincosf emu_sincosf
#define __tanhf emu_tanhf
EMU_INLINE float __expf(float x) { return expf(x); }
EMU_INLINE float __exp10f(float x) { return static_cast<float>(pow(10.0, static_cast<double>(x))); }
EMU_INLINE float __logf(float x) { return logf(x); }
EMU_INLINE float __log2f(float x) { return log2f(x); }
EMU_INLINE float __log10f(float x) { return log10f(x); }
EMU_INLINE float __powf(float x, float y) { return powf(x, y); }
EMU_INLINE float __sinf(float x) { return sinf(x); }
EMU_INLINE float __cosf(float x) { return cosf(x); }
EMU_INLINE float __tanf(float x) { return tanf(x); }
EMU_INLINE float __tanhf(float x) { return tanhf(x); }
EMU_INLINE void __sincosf(float x, float *s, float *c) { *s = sinf(x), *c = cosf(x); }

// Arithmetic with a stated rounding that is never contracted; only round-to-nearest is offered.
#define EMU_ARITHMETIC(PREFIX, TYPE, FMA, SQRT)                                                                        \
  __attribute__((optimize("fp-contract=off"))) inline TYPE PREFIX##add_rn(TYPE a, TYPE b) { return a + b; }            \
  __attribute__((optimize("fp-contract=off"))) inline TYPE PREFIX##sub_rn(TYPE a, TYPE b) { return a - b; }            \
  __attribute__((optimize("fp-contract=off"))) inline TYPE PREFIX##mul_rn(TYPE a, TYPE b) { return a * b; }            \
  EMU_INLINE TYPE PREFIX##div_rn(TYPE a, TYPE b) { return a / b; }                                                     \
  EMU_INLINE TYPE PREFIX##rcp_rn(TYPE a) { return 1 / a; }                                                             \
  EMU_INLINE TYPE PREFIX##sqrt_rn(TYPE a) { return SQRT(a); }
EMU_ARITHMETIC(__f, float, fmaf, sqrtf)
EMU_ARITHMETIC(__d, double, fma, sqrt)
#undef EMU_ARITHMETIC
EMU_INLINE float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
EMU_INLINE double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
EMU_INLINE float __frsqrt_rn(float a) { return rsqrtf(a); }
EMU_INLINE float __fdividef(float a, float b) { return a / b; }
EMU_INLINE float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }

// Conversions saturate, as the hardware's do, and take NaN to 0 (64-bit ones to the sign bit in CUDA; to 0 here).
namespace emu {
template <class To, class From> EMU_INLINE To saturate(From x) {
  constexpr To low = static_cast<To>(-1) < To(0) ? static_cast<To>(To(1) << (sizeof(To) * 8 - 1)) : To(0);
  constexpr To high = static_cast<To>(~low);
  if (x != x) return 0;
  if (x <= static_cast<From>(low)) return low;
  if (x >= static_cast<From>(high)) return high;
  return static_cast<To>(x);
}
} // namespace emu
#define EMU_CONVERT(NAME, TO, FROM)                                                                                    \
  EMU_INLINE TO NAME##_rn(FROM x) { return emu::saturate<TO>(nearbyint(x)); }                                          \
  EMU_INLINE TO NAME##_rz(FROM x) { return emu::saturate<TO>(trunc(x)); }                                              \
  EMU_INLINE TO NAME##_rd(FROM x) { return emu::saturate<TO>(floor(x)); }                                              \
  EMU_INLINE TO NAME##_ru(FROM x) { return emu::saturate<TO>(ceil(x)); }
EMU_CONVERT(__float2int, int, float)
EMU_CONVERT(__float2uint, unsigned, float)
EMU_CONVERT(__float2ll, long long, float)
EMU_CONVERT(__float2ull, unsigned long long, float)
EMU_CONVERT(__double2int, int, double)
EMU_CONVERT(__double2uint, unsigned, double)
EMU_CONVERT(__double2ll, long long, double)
EMU_CONVERT(__double2ull, unsigned long long, double)
#undef EMU_CONVERT
EMU_INLINE float __int2float_rn(int x) { return static_cast<float>(x); }
EMU_INLINE float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
EMU_INLINE float __ll2float_rn(long long x) { return static_cast<float>(x); }
EMU_INLINE float __ull2float_rn(unsigned long long x) { return static_cast<float>(x); }
EMU_INLINE double __int2double_rn(int x) { return x; }
EMU_INLINE double __uint2double_rn(unsigned x) { return x; }
EMU_INLINE double __ll2double_rn(long long x) { return static_cast<double>(x); }
EMU_INLINE float __double2float_rn(double x) { return static_cast<float>(x); }

namespace emu {
template <class To, class From> EMU_INLINE To reinterpret_bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "same size");
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}
} // namespace emu
EMU_INLINE int __float_as_int(float x) { return emu::reinterpret_bits<int>(x); }
EMU_INLINE unsigned __float_as_uint(float x) { return emu::reinterpret_bits<unsigned>(x); }
EMU_INLINE float __int_as_float(int x) { return emu::reinterpret_bits<float>(x); }
EMU_INLINE float __uint_as_float(unsigned x) { return emu::reinterpret_bits<float>(x); }
EMU_INLINE long long __double_as_longlong(double x) { return emu::reinterpret_bits<long long>(x); }
EMU_INLINE double __longlong_as_double(long long x) { return emu::reinterpret_bits<double>(x); }
EMU_INLINE int __double2hiint(double x) { return static_cast<int>(__double_as_longlong(x) >> 32); }
EMU_INLINE int __double2loint(double x) { return static_cast<int>(__double_as_longlong(x)); }
EMU_INLINE double __hiloint2double(int high, int low) {
  return __longlong_as_double((static_cast<long long>(high) << 32) | static_cast<unsigned>(low));
}

EMU_INLINE int __popc(unsigned x) { return __builtin_popcount(x); }
EMU_INLINE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
EMU_INLINE int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
EMU_INLINE int __clzll(long long x) { return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64; }
EMU_INLINE int __ffs(int x) { return __builtin_ffs(x); }
EMU_INLINE int __ffsll(long long x) { return __builtin_ffsll(x); }
EMU_INLINE unsigned __brev(unsigned x) {
  unsigned reversed = 0;
  for (int i = 0; i < 32; i++) reversed |= ((x >> i) & 1u) << (31 - i);
  return reversed;
}
EMU_INLINE unsigned long long __brevll(unsigned long long x) {
  return (static_cast<unsigned long long>(__brev(static_cast<unsigned>(x))) << 32) |
         __brev(static_cast<unsigned>(x >> 32));
}
EMU_INLINE int __mul24(int a, int b) {
  return static_cast<int>(static_cast<unsigned>(static_cast<int>(static_cast<unsigned>(a) << 8) >> 8) *
                          static_cast<unsigned>(static_cast<int>(static_cast<unsigned>(b) << 8) >> 8));
}
EMU_INLINE unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffffu) * (b & 0xffffffu); }
EMU_INLINE int __mulhi(int a, int b) { return static_cast<int>((static_cast<long long>(a) * b) >> 32); }
EMU_INLINE unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<unsigned long long>(a) * b) >> 32);
}
EMU_INLINE long long __mul64hi(long long a, long long b) {
  return static_cast<long long>((static_cast<__int128>(a) * b) >> 64);
}
EMU_INLINE unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>((static_cast<unsigned __int128>(a) * b) >> 64);
}
EMU_INLINE unsigned __sad(int a, int b, unsigned c) { return (a < b ? unsigned(b) - unsigned(a) : unsigned(a) - unsigned(b)) + c; }
EMU_INLINE unsigned __usad(unsigned a, unsigned b, unsigned c) { return (a < b ? b - a : a - b) + c; }
EMU_INLINE int __hadd(int a, int b) { return static_cast<int>((static_cast<long long>(a) + b) >> 1); }
EMU_INLINE int __rhadd(int a, int b) { return static_cast<int>((static_cast<long long>(a) + b + 1) >> 1); }
EMU_INLINE unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((((static_cast<unsigned long long>(high) << 32) | low) << (shift & 31)) >> 32);
}
EMU_INLINE unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>(((static_cast<unsigned long long>(high) << 32) | low) >> (shift & 31));
}
EMU_INLINE unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  unsigned long long bytes = (static_cast<unsigned long long>(y) << 32) | x;
  unsigned result = 0;
  for (int i = 0; i < 4; i++) {
    unsigned choice = (selector >> (4 * i)) & 0xf, byte = static_cast<unsigned>(bytes >> (8 * (choice & 7))) & 0xffu;
    if (choice & 8) byte = byte & 0x80u ? 0xffu : 0u;
    result |= byte << (8 * i);
  }
  return result;
}
inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; i++)
    c += static_cast<signed char>(static_cast<unsigned>(a) >> (8 * i)) *
         static_cast<signed char>(static_cast<unsigned>(b) >> (8 * i));
  return c;
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 4; i++) c += ((a >> (8 * i)) & 0xffu) * ((b >> (8 * i)) & 0xffu);
  return c;
}

// Cache hints are plain accesses.
#define EMU_LOAD(NAME)                                                                                                 \
  template <class T> EMU_INLINE T NAME(const T *address) { return *address; }
EMU_LOAD(__ldg)
EMU_LOAD(__ldca)
EMU_LOAD(__ldcg)
EMU_LOAD(__ldcs)
EMU_LOAD(__ldlu)
EMU_LOAD(__ldcv)
#undef EMU_LOAD
#define EMU_STORE(NAME)                                                                                                \
  template <class T> EMU_INLINE void NAME(T *address, std::remove_cv_t<T> value) { *address = value; }
EMU_STORE(__stwb)
EMU_STORE(__stcg)
EMU_STORE(__stcs)
EMU_STORE(__stwt)
#undef EMU_STORE

EMU_INLINE long long clock64() { return static_cast<long long>(__builtin_ia32_rdtsc()); }
EMU_INLINE void __nanosleep(unsigned, int line = __builtin_LINE()) { emu_nanosleep(line); }
EMU_INLINE void __trap(int line = __builtin_LINE()) { emu_trap(line); }
EMU_INLINE void __brkpt(int line = __builtin_LINE()) { emu_trap(line); }
EMU_INLINE void __prof_trigger(int) {}
#define __builtin_assume(condition) ((void)0)
