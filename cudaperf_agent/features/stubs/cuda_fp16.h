// Half precision, as far as the structural analysis asks.
#pragma once
#include "cuda_runtime.h"
#define __SMALL(name) \
  struct alignas(2) name { unsigned short bits; name() = default; __HD name(float); __HD name(double); __HD name(int); __HD operator float() const; }; \
  __HD name operator+(name, name); __HD name operator-(name, name); __HD name operator*(name, name); __HD name operator/(name, name); \
  __HD name operator-(name); __HD name &operator+=(name &, name); __HD name &operator-=(name &, name); __HD name &operator*=(name &, name); \
  __HD bool operator<(name, name); __HD bool operator>(name, name); __HD bool operator<=(name, name); __HD bool operator>=(name, name); \
  __HD bool operator==(name, name); \
  __HD name __hadd(name, name); __HD name __hsub(name, name); __HD name __hmul(name, name); __HD name __hdiv(name, name); __HD name __hfma(name, name, name); \
  __HD name __hmax(name, name); __HD name __hmin(name, name); __HD name __hneg(name); __HD name hexp(name); __HD name hlog(name); __HD name hsqrt(name); \
  __HD name hrsqrt(name); __HD bool __hgt(name, name); __HD bool __hlt(name, name); __device__ name __ldg(const name *); __device__ name atomicAdd(name *, name);
#define __SMALL2(name, one) \
  struct alignas(4) name { one x, y; name() = default; __HD name(one, one); }; \
  __HD name operator+(name, name); __HD name operator*(name, name); __HD name operator-(name, name); \
  __HD name __hadd2(name, name); __HD name __hsub2(name, name); __HD name __hmul2(name, name); __HD name __hfma2(name, name, name); __HD name h2div(name, name); \
  __HD one __low2half(name); __HD one __high2half(name); __HD float __low2float(name); __HD float __high2float(name); \
  __device__ name __ldg(const name *); __device__ name atomicAdd(name *, name);
__SMALL(__half)
__SMALL2(__half2, __half)
typedef __half half;
typedef __half2 half2;
__HD __half __float2half(float); __HD __half __float2half_rn(float); __HD float __half2float(__half); __HD __half2 __float2half2_rn(float);
__HD __half2 __floats2half2_rn(float, float); __HD __half2 __halves2half2(__half, __half); __HD float2 __half22float2(__half2);
__HD __half2 __float22half2_rn(float2); __HD __half2 __half2half2(__half); __HD __half __int2half_rn(int); __HD __half __ushort_as_half(unsigned short);
