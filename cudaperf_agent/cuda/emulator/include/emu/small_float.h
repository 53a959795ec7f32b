// Sixteen-bit floats: the conversions, and one macro that gives both formats (half, bfloat16) CUDA's functions.
// Arithmetic is done in double and rounded once, to nearest even, as the hardware does.
#pragma once
#include <cuda_runtime.h>

namespace emu {

// Encodes x with `mantissa` stored bits; normal numbers begin at 2^lowest; infinity has the bits `infinity`.
EMU_UNCHECKED inline unsigned short encode(double x, int mantissa, int lowest, unsigned infinity) {
  unsigned sign = signbit(x) ? 0x8000u : 0u;
  double magnitude = fabs(x);
  if (x != x) return 0x7fff;
  if (magnitude > 1e300) return static_cast<unsigned short>(sign | infinity);
  if (magnitude == 0.0) return static_cast<unsigned short>(sign);
  int exponent = ilogb(magnitude);
  if (exponent < lowest) exponent = lowest;
  // In units of the last place: the leading bit of a normal number adds itself to the exponent's field.
  auto units = static_cast<unsigned long long>(nearbyint(scalbn(magnitude, mantissa - exponent)));
  unsigned long long bits = (static_cast<unsigned long long>(exponent - lowest) << mantissa) + units;
  return static_cast<unsigned short>(sign | (bits < infinity ? static_cast<unsigned>(bits) : infinity));
}

EMU_UNCHECKED inline double decode(unsigned short bits, int mantissa, int lowest, unsigned infinity) {
  unsigned magnitude = bits & 0x7fffu;
  double value;
  if (magnitude > infinity)
    value = NAN;
  else if (magnitude == infinity)
    value = HUGE_VAL;
  else if (magnitude >> mantissa)
    value = scalbn(static_cast<double>((1u << mantissa) | (magnitude & ((1u << mantissa) - 1))),
                   static_cast<int>(magnitude >> mantissa) - 1 + lowest - mantissa);
  else
    value = scalbn(static_cast<double>(magnitude), lowest - mantissa);
  return bits & 0x8000u ? -value : value;
}

} // namespace emu

#define EMU_SMALL_FLOAT(TYPE, PAIR, MANTISSA, LOWEST, INFINITY_BITS)                                                   \
  struct TYPE {                                                                                                        \
    unsigned short emu_bits;                                                                                           \
    TYPE() = default;                                                                                                  \
    EMU_INLINE TYPE(float x) : emu_bits(emu::encode(x, MANTISSA, LOWEST, INFINITY_BITS)) {}                            \
    EMU_INLINE TYPE(double x) : emu_bits(emu::encode(x, MANTISSA, LOWEST, INFINITY_BITS)) {}                           \
    EMU_INLINE TYPE(int x) : TYPE(static_cast<double>(x)) {}                                                           \
    EMU_INLINE TYPE(unsigned x) : TYPE(static_cast<double>(x)) {}                                                      \
    EMU_INLINE TYPE(long x) : TYPE(static_cast<double>(x)) {}                                                          \
    EMU_INLINE TYPE(unsigned long x) : TYPE(static_cast<double>(x)) {}                                                 \
    EMU_INLINE TYPE(long long x) : TYPE(static_cast<double>(x)) {}                                                     \
    EMU_INLINE TYPE(unsigned long long x) : TYPE(static_cast<double>(x)) {}                                            \
    EMU_INLINE TYPE(short x) : TYPE(static_cast<double>(x)) {}                                                         \
    EMU_INLINE TYPE(unsigned short x) : TYPE(static_cast<double>(x)) {}                                                \
    EMU_INLINE double emu_value() const { return emu::decode(emu_bits, MANTISSA, LOWEST, INFINITY_BITS); }             \
    EMU_INLINE operator float() const { return static_cast<float>(emu_value()); }                                      \
    EMU_INLINE TYPE &operator+=(TYPE o) { return *this = TYPE(emu_value() + o.emu_value()); }                          \
    EMU_INLINE TYPE &operator-=(TYPE o) { return *this = TYPE(emu_value() - o.emu_value()); }                          \
    EMU_INLINE TYPE &operator*=(TYPE o) { return *this = TYPE(emu_value() * o.emu_value()); }                          \
    EMU_INLINE TYPE &operator/=(TYPE o) { return *this = TYPE(emu_value() / o.emu_value()); }                          \
  };                                                                                                                   \
  struct __align__(4) PAIR {                                                                                           \
    TYPE x, y;                                                                                                         \
    PAIR() = default;                                                                                                  \
    EMU_INLINE PAIR(TYPE x_, TYPE y_) : x(x_), y(y_) {}                                                                \
  };                                                                                                                   \
  EMU_SMALL_ARITHMETIC(TYPE, PAIR, __hadd, +)                                                                          \
  EMU_SMALL_ARITHMETIC(TYPE, PAIR, __hsub, -)                                                                          \
  EMU_SMALL_ARITHMETIC(TYPE, PAIR, __hmul, *)                                                                          \
  EMU_SMALL_ARITHMETIC(TYPE, PAIR, __hdiv, /)                                                                          \
  EMU_INLINE PAIR h2div(PAIR a, PAIR b) { return {__hdiv(a.x, b.x), __hdiv(a.y, b.y)}; }                               \
  EMU_INLINE TYPE operator-(TYPE a) {                                                                                  \
    a.emu_bits ^= 0x8000u;                                                                                             \
    return a;                                                                                                          \
  }                                                                                                                    \
  EMU_SMALL_COMPARISON(TYPE, PAIR, __heq, ==)                                                                          \
  EMU_SMALL_COMPARISON(TYPE, PAIR, __hne, !=)                                                                          \
  EMU_SMALL_COMPARISON(TYPE, PAIR, __hlt, <)                                                                           \
  EMU_SMALL_COMPARISON(TYPE, PAIR, __hle, <=)                                                                          \
  EMU_SMALL_COMPARISON(TYPE, PAIR, __hgt, >)                                                                           \
  EMU_SMALL_COMPARISON(TYPE, PAIR, __hge, >=)                                                                          \
  EMU_INLINE TYPE __hneg(TYPE a) { return -a; }                                                                        \
  EMU_INLINE TYPE __habs(TYPE a) {                                                                                     \
    a.emu_bits &= 0x7fffu;                                                                                             \
    return a;                                                                                                          \
  }                                                                                                                    \
  EMU_INLINE PAIR __hneg2(PAIR a) { return {-a.x, -a.y}; }                                                             \
  EMU_INLINE PAIR __habs2(PAIR a) { return {__habs(a.x), __habs(a.y)}; }                                               \
  EMU_INLINE TYPE __hfma(TYPE a, TYPE b, TYPE c) { return TYPE(fma(a.emu_value(), b.emu_value(), c.emu_value())); }    \
  EMU_INLINE PAIR __hfma2(PAIR a, PAIR b, PAIR c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }           \
  EMU_INLINE TYPE __hadd_sat(TYPE a, TYPE b) { return TYPE(fmin(fmax(a.emu_value() + b.emu_value(), 0.0), 1.0)); }     \
  EMU_INLINE TYPE __hmul_sat(TYPE a, TYPE b) { return TYPE(fmin(fmax(a.emu_value() * b.emu_value(), 0.0), 1.0)); }     \
  EMU_INLINE TYPE __hmax(TYPE a, TYPE b) { return TYPE(fmax(a.emu_value(), b.emu_value())); }                          \
  EMU_INLINE TYPE __hmin(TYPE a, TYPE b) { return TYPE(fmin(a.emu_value(), b.emu_value())); }                          \
  EMU_INLINE PAIR __hmax2(PAIR a, PAIR b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; }                             \
  EMU_INLINE PAIR __hmin2(PAIR a, PAIR b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; }                             \
  EMU_INLINE bool __hisnan(TYPE a) { return (a.emu_bits & 0x7fffu) > INFINITY_BITS; }                                  \
  EMU_INLINE int __hisinf(TYPE a) {                                                                                    \
    return (a.emu_bits & 0x7fffu) != INFINITY_BITS ? 0 : a.emu_bits & 0x8000u ? -1 : 1;                                \
  }                                                                                                                    \
  EMU_SMALL_FUNCTION(TYPE, PAIR, exp, exp(v))                                                                          \
  EMU_SMALL_FUNCTION(TYPE, PAIR, exp2, exp2(v))                                                                        \
  EMU_SMALL_FUNCTION(TYPE, PAIR, exp10, pow(10.0, v))                                                                  \
  EMU_SMALL_FUNCTION(TYPE, PAIR, log, log(v))                                                                          \
  EMU_SMALL_FUNCTION(TYPE, PAIR, log2, log2(v))                                                                        \
  EMU_SMALL_FUNCTION(TYPE, PAIR, log10, log10(v))                                                                      \
  EMU_SMALL_FUNCTION(TYPE, PAIR, sqrt, sqrt(v))                                                                        \
  EMU_SMALL_FUNCTION(TYPE, PAIR, rsqrt, 1.0 / sqrt(v))                                                                 \
  EMU_SMALL_FUNCTION(TYPE, PAIR, rcp, 1.0 / v)                                                                         \
  EMU_SMALL_FUNCTION(TYPE, PAIR, sin, sin(v))                                                                          \
  EMU_SMALL_FUNCTION(TYPE, PAIR, cos, cos(v))                                                                          \
  EMU_SMALL_FUNCTION(TYPE, PAIR, tanh, tanh(v))                                                                        \
  EMU_SMALL_FUNCTION(TYPE, PAIR, floor, floor(v))                                                                      \
  EMU_SMALL_FUNCTION(TYPE, PAIR, ceil, ceil(v))                                                                        \
  EMU_SMALL_FUNCTION(TYPE, PAIR, trunc, trunc(v))                                                                      \
  EMU_SMALL_FUNCTION(TYPE, PAIR, rint, nearbyint(v))

#define EMU_SMALL_ARITHMETIC(TYPE, PAIR, NAME, OPERATOR)                                                               \
  EMU_INLINE TYPE operator OPERATOR(TYPE a, TYPE b) { return TYPE(a.emu_value() OPERATOR b.emu_value()); }             \
  EMU_INLINE TYPE NAME(TYPE a, TYPE b) { return a OPERATOR b; }                                                        \
  EMU_INLINE TYPE NAME##_rn(TYPE a, TYPE b) { return a OPERATOR b; }                                                   \
  EMU_INLINE PAIR operator OPERATOR(PAIR a, PAIR b) { return {a.x OPERATOR b.x, a.y OPERATOR b.y}; }                   \
  EMU_INLINE PAIR NAME##2(PAIR a, PAIR b) { return a OPERATOR b; }

#define EMU_SMALL_COMPARISON(TYPE, PAIR, NAME, OPERATOR)                                                               \
  EMU_INLINE bool operator OPERATOR(TYPE a, TYPE b) { return a.emu_value() OPERATOR b.emu_value(); }                   \
  EMU_INLINE bool NAME(TYPE a, TYPE b) { return a OPERATOR b; }                                                        \
  EMU_INLINE PAIR NAME##2(PAIR a, PAIR b) { return {TYPE(a.x OPERATOR b.x ? 1 : 0), TYPE(a.y OPERATOR b.y ? 1 : 0)}; } \
  EMU_INLINE bool NAME##b2(PAIR a, PAIR b) { return (a.x OPERATOR b.x) && (a.y OPERATOR b.y); }

#define EMU_SMALL_FUNCTION(TYPE, PAIR, NAME, EXPRESSION)                                                               \
  EMU_INLINE TYPE h##NAME(TYPE a) {                                                                                    \
    double v = a.emu_value();                                                                                          \
    return TYPE(EXPRESSION);                                                                                           \
  }                                                                                                                    \
  EMU_INLINE PAIR h2##NAME(PAIR a) { return {h##NAME(a.x), h##NAME(a.y)}; }
// Functions whose names carry the format: WORD is half or bfloat16, as in __float2half.
#define EMU_SMALL_NAMED(TYPE, PAIR, WORD)                                                                              \
  EMU_INLINE TYPE __float2##WORD(float x) { return TYPE(x); }                                                          \
  EMU_INLINE TYPE __float2##WORD##_rn(float x) { return TYPE(x); }                                                     \
  EMU_INLINE TYPE __double2##WORD(double x) { return TYPE(x); }                                                        \
  EMU_INLINE TYPE __int2##WORD##_rn(int x) { return TYPE(x); }                                                         \
  EMU_INLINE TYPE __uint2##WORD##_rn(unsigned x) { return TYPE(x); }                                                   \
  EMU_INLINE float __##WORD##2float(TYPE x) { return static_cast<float>(x); }                                          \
  EMU_INLINE int __##WORD##2int_rn(TYPE x) { return __float2int_rn(static_cast<float>(x)); }                           \
  EMU_INLINE int __##WORD##2int_rz(TYPE x) { return __float2int_rz(static_cast<float>(x)); }                           \
  EMU_INLINE int __##WORD##2int_rd(TYPE x) { return __float2int_rd(static_cast<float>(x)); }                           \
  EMU_INLINE unsigned short __##WORD##_as_ushort(TYPE x) { return x.emu_bits; }                                        \
  EMU_INLINE short __##WORD##_as_short(TYPE x) { return static_cast<short>(x.emu_bits); }                              \
  EMU_INLINE TYPE __ushort_as_##WORD(unsigned short bits) {                                                            \
    TYPE x;                                                                                                            \
    x.emu_bits = bits;                                                                                                 \
    return x;                                                                                                          \
  }                                                                                                                    \
  EMU_INLINE TYPE __short_as_##WORD(short bits) { return __ushort_as_##WORD(static_cast<unsigned short>(bits)); }      \
  EMU_INLINE PAIR __float2##WORD##2_rn(float x) { return {TYPE(x), TYPE(x)}; }                                         \
  EMU_INLINE PAIR __floats2##WORD##2_rn(float x, float y) { return {TYPE(x), TYPE(y)}; }                               \
  EMU_INLINE PAIR __float22##WORD##2_rn(float2 v) { return {TYPE(v.x), TYPE(v.y)}; }                                   \
  EMU_INLINE float2 __##WORD##22float2(PAIR v) { return {static_cast<float>(v.x), static_cast<float>(v.y)}; }          \
  EMU_INLINE PAIR __##WORD##2##WORD##2(TYPE x) { return {x, x}; }                                                      \
  EMU_INLINE TYPE __low2##WORD(PAIR v) { return v.x; }                                                                 \
  EMU_INLINE TYPE __high2##WORD(PAIR v) { return v.y; }                                                                \
  EMU_INLINE PAIR __low2##WORD##2(PAIR v) { return {v.x, v.x}; }                                                       \
  EMU_INLINE PAIR __high2##WORD##2(PAIR v) { return {v.y, v.y}; }                                                      \
  EMU_INLINE float __low2float(PAIR v) { return static_cast<float>(v.x); }                                             \
  EMU_INLINE float __high2float(PAIR v) { return static_cast<float>(v.y); }                                            \
  EMU_INLINE PAIR __lowhigh2highlow(PAIR v) { return {v.y, v.x}; }                                                     \
  EMU_INLINE PAIR __lows2##WORD##2(PAIR a, PAIR b) { return {a.x, b.x}; }                                              \
  EMU_INLINE PAIR __highs2##WORD##2(PAIR a, PAIR b) { return {a.y, b.y}; }
