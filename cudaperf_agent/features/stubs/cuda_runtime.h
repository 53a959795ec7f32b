// The CUDA surface that the structural analysis needs to parse candidates: declarations only, never compiled or linked.
#pragma once
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __UINTPTR_TYPE__ uintptr_t;
typedef __INTPTR_TYPE__ intptr_t;
typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
typedef unsigned int uint;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned long ulong;
#define NULL 0
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((device))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define __restrict__ __restrict
#define __grid_constant__
#define __cluster_dims__(...)
#define __builtin_align__(n) __attribute__((aligned(n)))
#define CUDART_VERSION 13000
#define CUDART_INF_F __builtin_inff()
#define CUDART_INF __builtin_inf()
#define CUDART_NAN_F __builtin_nanf("")
#define CUDART_PI_F 3.141592654f
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define DBL_MAX 1.7976931348623158e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#define UINT_MAX 4294967295u
#define LONG_MAX 9223372036854775807L
#define LLONG_MAX 9223372036854775807LL
#define LLONG_MIN (-9223372036854775807LL - 1)
#define CHAR_BIT 8
#define UCHAR_MAX 255
#define SHRT_MAX 32767
#define M_PI 3.14159265358979323846
#define M_SQRT2 1.41421356237309504880
#define M_E 2.7182818284590452354
#define EXIT_FAILURE 1
#define EXIT_SUCCESS 0
#define __HD __host__ __device__

#define __VECTORS(base, name, a1, a2, a4) \
  struct name##1 { base x; }; \
  struct alignas(a2) name##2 { base x, y; }; \
  struct name##3 { base x, y, z; }; \
  struct alignas(a4) name##4 { base x, y, z, w; }; \
  __HD name##1 make_##name##1(base); \
  __HD name##2 make_##name##2(base, base); \
  __HD name##3 make_##name##3(base, base, base); \
  __HD name##4 make_##name##4(base, base, base, base);
__VECTORS(char, char, 1, 2, 4)
__VECTORS(unsigned char, uchar, 1, 2, 4)
__VECTORS(short, short, 2, 4, 8)
__VECTORS(unsigned short, ushort, 2, 4, 8)
__VECTORS(int, int, 4, 8, 16)
__VECTORS(unsigned int, uint, 4, 8, 16)
__VECTORS(float, float, 4, 8, 16)
__VECTORS(long, long, 8, 16, 16)
__VECTORS(unsigned long, ulong, 8, 16, 16)
__VECTORS(long long, longlong, 8, 16, 16)
__VECTORS(unsigned long long, ulonglong, 8, 16, 16)
__VECTORS(double, double, 8, 16, 16)
struct dim3 {
  unsigned x, y, z;
  __HD constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
  __HD constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  __HD operator uint3() const;
};
extern const __device__ uint3 threadIdx, blockIdx;
extern const __device__ dim3 blockDim, gridDim;
extern const __device__ int warpSize;

typedef enum cudaError {
  cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2, cudaErrorInvalidConfiguration = 9, cudaErrorInvalidDevice = 101, cudaErrorInitializationError = 3,
  cudaErrorLaunchFailure = 719, cudaErrorIllegalAddress = 700, cudaErrorNotReady = 600, cudaErrorNoDevice = 100, cudaErrorInvalidResourceHandle = 400,
  cudaErrorNotSupported = 801, cudaErrorUnknown = 999
} cudaError_t;
enum cudaMemcpyKind { cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8, cudaFuncAttributePreferredSharedMemoryCarveout = 9 };
enum cudaFuncCache { cudaFuncCachePreferNone, cudaFuncCachePreferShared, cudaFuncCachePreferL1, cudaFuncCachePreferEqual };
enum cudaDeviceAttr { cudaDevAttrMultiProcessorCount = 16, cudaDevAttrMaxThreadsPerBlock = 1, cudaDevAttrMaxSharedMemoryPerBlock = 8 };
enum { cudaStreamDefault = 0, cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2, cudaHostAllocDefault = 0 };
typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;
struct cudaDeviceProp {
  char name[256]; size_t totalGlobalMem, sharedMemPerBlock; int regsPerBlock, warpSize, maxThreadsPerBlock;
  int maxThreadsDim[3], maxGridSize[3]; int clockRate, major, minor, multiProcessorCount, l2CacheSize, maxThreadsPerMultiProcessor;
};
struct cudaPointerAttributes { int type, device; void *devicePointer, *hostPointer; };
extern "C" {
cudaError_t cudaConfigureCall(dim3, dim3, size_t = 0, cudaStream_t = 0);
cudaError_t cudaLaunchKernel(const void *, dim3, dim3, void **, size_t = 0, cudaStream_t = 0);
cudaError_t cudaLaunchCooperativeKernel(const void *, dim3, dim3, void **, size_t = 0, cudaStream_t = 0);
cudaError_t cudaFree(void *);
cudaError_t cudaFreeHost(void *);
cudaError_t cudaFreeAsync(void *, cudaStream_t);
cudaError_t cudaMemcpy(void *, const void *, size_t, cudaMemcpyKind);
cudaError_t cudaMemcpyAsync(void *, const void *, size_t, cudaMemcpyKind, cudaStream_t = 0);
cudaError_t cudaMemcpy2D(void *, size_t, const void *, size_t, size_t, size_t, cudaMemcpyKind);
cudaError_t cudaMemcpy2DAsync(void *, size_t, const void *, size_t, size_t, size_t, cudaMemcpyKind, cudaStream_t = 0);
cudaError_t cudaMemcpyPeer(void *, int, const void *, int, size_t);
cudaError_t cudaMemset(void *, int, size_t);
cudaError_t cudaMemset2D(void *, size_t, int, size_t, size_t);
cudaError_t cudaMemsetAsync(void *, int, size_t, cudaStream_t = 0);
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaDeviceReset();
const char *cudaGetErrorString(cudaError_t);
const char *cudaGetErrorName(cudaError_t);
cudaError_t cudaSetDevice(int);
cudaError_t cudaGetDevice(int *);
cudaError_t cudaGetDeviceCount(int *);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *, int);
cudaError_t cudaDeviceGetAttribute(int *, cudaDeviceAttr, int);
cudaError_t cudaMemGetInfo(size_t *, size_t *);
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *, const void *);
cudaError_t cudaStreamCreate(cudaStream_t *);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *, unsigned);
cudaError_t cudaStreamSynchronize(cudaStream_t);
cudaError_t cudaStreamQuery(cudaStream_t);
cudaError_t cudaEventQuery(cudaEvent_t);
cudaError_t cudaDeviceGetLimit(size_t *, int);
cudaError_t cudaDeviceSetLimit(int, size_t);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *, unsigned, int);
cudaError_t cudaRuntimeGetVersion(int *);
cudaError_t cudaDriverGetVersion(int *);
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache);
cudaError_t cudaHostGetDevicePointer(void **, void *, unsigned);
cudaError_t cudaMemPrefetchAsync(const void *, size_t, int, cudaStream_t = 0);
cudaError_t cudaStreamDestroy(cudaStream_t);
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned = 0);
cudaError_t cudaEventCreate(cudaEvent_t *);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *, unsigned);
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t = 0);
cudaError_t cudaEventSynchronize(cudaEvent_t);
cudaError_t cudaEventElapsedTime(float *, cudaEvent_t, cudaEvent_t);
cudaError_t cudaEventDestroy(cudaEvent_t);
cudaError_t cudaHostRegister(void *, size_t, unsigned);
cudaError_t cudaHostUnregister(void *);
}
template <class T> cudaError_t cudaMalloc(T **, size_t);
template <class T> cudaError_t cudaMallocAsync(T **, size_t, cudaStream_t);
template <class T> cudaError_t cudaMallocHost(T **, size_t, unsigned = 0);
template <class T> cudaError_t cudaHostAlloc(T **, size_t, unsigned);
template <class T> cudaError_t cudaMallocManaged(T **, size_t, unsigned = 1);
template <class T> cudaError_t cudaMallocPitch(T **, size_t *, size_t, size_t);
template <class T> cudaError_t cudaMemcpyToSymbol(const T &, const void *, size_t, size_t = 0, cudaMemcpyKind = cudaMemcpyHostToDevice);
template <class T> cudaError_t cudaMemcpyToSymbolAsync(const T &, const void *, size_t, size_t = 0, cudaMemcpyKind = cudaMemcpyHostToDevice, cudaStream_t = 0);
template <class T> cudaError_t cudaMemcpyFromSymbol(void *, const T &, size_t, size_t = 0, cudaMemcpyKind = cudaMemcpyDeviceToHost);
template <class T> cudaError_t cudaGetSymbolAddress(void **, const T &);
template <class T> cudaError_t cudaGetSymbolSize(size_t *, const T &);
template <class T> cudaError_t cudaMemcpyFromSymbolAsync(void *, const T &, size_t, size_t = 0, cudaMemcpyKind = cudaMemcpyDeviceToHost, cudaStream_t = 0);
struct cudaFuncAttributes { size_t sharedSizeBytes; int maxThreadsPerBlock, numRegs; };
template <class T> cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *, T *);
template <class T> cudaError_t cudaFuncSetAttribute(T *, cudaFuncAttribute, int);
template <class T> cudaError_t cudaFuncSetCacheConfig(T *, cudaFuncCache);
template <class T> cudaError_t cudaLaunchKernel(T *, dim3, dim3, void **, size_t = 0, cudaStream_t = 0);
template <class T> cudaError_t cudaLaunchCooperativeKernel(T *, dim3, dim3, void **, size_t = 0, cudaStream_t = 0);
template <class T> cudaError_t cudaOccupancyMaxPotentialBlockSize(int *, int *, T, size_t = 0, int = 0);
template <class T> cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *, T, int, size_t);

__device__ void __syncthreads();
__device__ int __syncthreads_count(int);
__device__ int __syncthreads_and(int);
__device__ int __syncthreads_or(int);
__device__ void __syncwarp(unsigned = 0xffffffffu);
__device__ void __threadfence();
__device__ void __threadfence_block();
__device__ void __threadfence_system();
__device__ unsigned __activemask();
__device__ unsigned __ballot_sync(unsigned, int);
__device__ int __any_sync(unsigned, int);
__device__ int __all_sync(unsigned, int);
__device__ void __trap();
__device__ void __nanosleep(unsigned);
__device__ long long clock64();
__device__ long clock();
template <class T> __device__ T __shfl_sync(unsigned, T, int, int = 32);
template <class T> __device__ T __shfl_up_sync(unsigned, T, unsigned, int = 32);
template <class T> __device__ T __shfl_down_sync(unsigned, T, unsigned, int = 32);
template <class T> __device__ T __shfl_xor_sync(unsigned, T, int, int = 32);
template <class T> __device__ unsigned __match_any_sync(unsigned, T);
template <class T> __device__ unsigned __match_all_sync(unsigned, T, int *);
template <class T> __device__ T __reduce_and_sync(unsigned, T);
template <class T> __device__ T __reduce_or_sync(unsigned, T);
template <class T> __device__ T __reduce_xor_sync(unsigned, T);
template <class T> __device__ T __reduce_add_sync(unsigned, T);
template <class T> __device__ T __reduce_min_sync(unsigned, T);
template <class T> __device__ T __reduce_max_sync(unsigned, T);
template <class T> struct __same { typedef T type; };
#define __ATOMIC(name) template <class T> __device__ T name(T *, typename __same<T>::type);
__ATOMIC(atomicAdd) __ATOMIC(atomicSub) __ATOMIC(atomicExch) __ATOMIC(atomicMin) __ATOMIC(atomicMax)
__ATOMIC(atomicInc) __ATOMIC(atomicDec) __ATOMIC(atomicAnd) __ATOMIC(atomicOr) __ATOMIC(atomicXor)
__ATOMIC(atomicAdd_block) __ATOMIC(atomicAdd_system) __ATOMIC(atomicMax_block) __ATOMIC(atomicMin_block)
template <class T> __device__ T atomicCAS(T *, typename __same<T>::type, typename __same<T>::type);
template <class T> __device__ T __ldg(const T *);
template <class T> __device__ T __ldcg(const T *);
template <class T> __device__ T __ldca(const T *);
template <class T> __device__ T __ldcs(const T *);
template <class T> __device__ T __ldlu(const T *);
template <class T> __device__ T __ldcv(const T *);
template <class T> __device__ void __stcg(T *, typename __same<T>::type);
template <class T> __device__ void __stcs(T *, typename __same<T>::type);
template <class T> __device__ void __stwb(T *, typename __same<T>::type);
template <class T> __device__ void __stwt(T *, typename __same<T>::type);
__device__ size_t __cvta_generic_to_shared(const void *);

extern "C" {
#define __F1(name) __HD float name##f(float) noexcept; __HD double name(double) noexcept;
#define __F2(name) __HD float name##f(float, float) noexcept; __HD double name(double, double) noexcept;
__F1(sqrt) __F1(rsqrt) __F1(cbrt) __F1(rcbrt) __F1(exp) __F1(exp2) __F1(exp10) __F1(expm1) __F1(log) __F1(log2) __F1(log10)
__F1(log1p) __F1(sin) __F1(cos) __F1(tan) __F1(asin) __F1(acos) __F1(atan) __F1(sinh) __F1(cosh) __F1(tanh) __F1(asinh)
__F1(acosh) __F1(atanh) __F1(erf) __F1(erfc) __F1(lgamma) __F1(tgamma) __F1(floor) __F1(ceil) __F1(round) __F1(trunc)
__F1(rint) __F1(nearbyint) __F1(fabs) __F1(erfinv) __F1(erfcinv) __F1(erfcx) __F1(j0) __F1(j1) __F1(y0) __F1(y1) __F1(sinpi) __F1(cospi) __F1(normcdf) __F1(logb)
__F2(pow) __F2(fmod) __F2(fmin) __F2(fmax) __F2(atan2) __F2(hypot) __F2(fdim) __F2(copysign) __F2(remainder) __F2(nextafter)
__HD float nanf(const char *) noexcept; __HD double nan(const char *) noexcept; __HD int ilogbf(float) noexcept; __HD int ilogb(double) noexcept;
__HD float scalbnf(float, int) noexcept; __HD double scalbn(double, int) noexcept; __HD float norm3df(float, float, float) noexcept; __HD float norm4df(float, float, float, float) noexcept;
__HD float rhypotf(float, float) noexcept; __HD double rhypot(double, double) noexcept; __HD float powif(float, int) noexcept;
__HD long long llrintf(float) noexcept; __HD long long llroundf(float) noexcept; __HD long long llrint(double) noexcept;
__HD float fmaf(float, float, float) noexcept;
__HD double fma(double, double, double) noexcept;
__HD float ldexpf(float, int) noexcept; __HD double ldexp(double, int) noexcept;
__HD float frexpf(float, int *) noexcept; __HD double frexp(double, int *) noexcept;
__HD float modff(float, float *) noexcept; __HD double modf(double, double *) noexcept;
__HD long lrintf(float) noexcept; __HD long lroundf(float) noexcept; __HD long lround(double) noexcept; __HD long lrint(double) noexcept;
__HD int abs(int) noexcept; __HD long labs(long) noexcept; __HD long long llabs(long long) noexcept;
__device__ void sincosf(float, float *, float *) noexcept;
__device__ void sincos(double, double *, double *) noexcept;
__device__ float fdividef(float, float) noexcept;
__device__ float saturatef(float) noexcept;
}
__device__ float __expf(float); __device__ float __exp10f(float); __device__ float __logf(float); __device__ float __log2f(float);
__device__ float __log10f(float); __device__ float __sinf(float); __device__ float __cosf(float); __device__ float __tanf(float);
__device__ void __sincosf(float, float *, float *); __device__ float __powf(float, float); __device__ float __fdividef(float, float);
__device__ float __saturatef(float); __device__ float __frcp_rn(float); __device__ float __fsqrt_rn(float); __device__ float __frsqrt_rn(float);
__device__ float __fadd_rn(float, float); __device__ float __fsub_rn(float, float); __device__ float __fmul_rn(float, float);
__device__ float __fmaf_rn(float, float, float); __device__ double __fma_rn(double, double, double); __device__ float __fdiv_rn(float, float);
__device__ double __dadd_rn(double, double); __device__ double __dmul_rn(double, double); __device__ double __dsqrt_rn(double);
__device__ int __mul24(int, int); __device__ int __mulhi(int, int); __device__ unsigned __umulhi(unsigned, unsigned);
__device__ int __popc(unsigned); __device__ int __popcll(unsigned long long); __device__ int __clz(int); __device__ int __clzll(long long);
__device__ int __ffs(int); __device__ int __ffsll(long long); __device__ unsigned __brev(unsigned); __device__ unsigned __byte_perm(unsigned, unsigned, unsigned);
__device__ int __dp4a(int, int, int); __device__ unsigned __funnelshift_l(unsigned, unsigned, unsigned); __device__ unsigned __funnelshift_r(unsigned, unsigned, unsigned);
#define __ROUND(to, name, from) __device__ to name##_rn(from); __device__ to name##_rz(from); __device__ to name##_ru(from); __device__ to name##_rd(from);
__ROUND(int, __float2int, float) __ROUND(unsigned, __float2uint, float) __ROUND(long long, __float2ll, float) __ROUND(unsigned long long, __float2ull, float)
__ROUND(int, __double2int, double) __ROUND(unsigned, __double2uint, double) __ROUND(long long, __double2ll, double) __ROUND(unsigned long long, __double2ull, double)
__ROUND(float, __double2float, double) __ROUND(float, __int2float, int) __ROUND(float, __uint2float, unsigned) __ROUND(float, __ll2float, long long)
__ROUND(double, __ll2double, long long) __ROUND(double, __ull2double, unsigned long long) __ROUND(float, __ull2float, unsigned long long)
__device__ double __int2double_rn(int); __device__ double __uint2double_rn(unsigned); __device__ double __hiloint2double(int, int);
__device__ int __double2hiint(double); __device__ int __double2loint(double); __device__ unsigned __sad(int, int, unsigned); __device__ unsigned __usad(unsigned, unsigned, unsigned);
__device__ int __hadd(int, int); __device__ int __rhadd(int, int); __device__ unsigned __uhadd(unsigned, unsigned); __device__ long long __mul64hi(long long, long long);
__device__ unsigned long long __umul64hi(unsigned long long, unsigned long long); __device__ unsigned __umul24(unsigned, unsigned); __device__ unsigned long long __brevll(unsigned long long);
__device__ float __fmul_rz(float, float); __device__ float __fadd_rz(float, float); __device__ double __ddiv_rn(double, double); __device__ double __dsub_rn(double, double);
__device__ int __float_as_int(float); __device__ float __int_as_float(int); __device__ float __uint_as_float(unsigned);
__device__ unsigned __float_as_uint(float); __device__ long long __double_as_longlong(double); __device__ double __longlong_as_double(long long);
__device__ int __dp4a(int, int, int); __device__ unsigned __dp4a(unsigned, unsigned, unsigned); __device__ int __vadd4(int, int);
__device__ bool __isGlobal(const void *); __device__ bool __isShared(const void *);
__HD bool isnan(float); __HD bool isnan(double); __HD bool isinf(float); __HD bool isinf(double);
__HD bool isfinite(float); __HD bool isfinite(double); __HD bool signbit(float); __HD bool signbit(double);
#define __MM(T) __HD T min(T, T); __HD T max(T, T);
__MM(int) __MM(unsigned) __MM(long) __MM(unsigned long) __MM(long long) __MM(unsigned long long) __MM(float) __MM(double)
#define __MIX(R, A, B) __HD R min(A, B); __HD R min(B, A); __HD R max(A, B); __HD R max(B, A);
__MIX(unsigned, int, unsigned) __MIX(unsigned long, long, unsigned long) __MIX(unsigned long long, long long, unsigned long long)
__MIX(double, float, double)
__HD long abs(long); __HD long long abs(long long); __HD float abs(float); __HD double abs(double);
#define __O1(f) __HD float f(float);
#define __O2(f) __HD float f(float, float);
__O1(sqrt) __O1(rsqrt) __O1(exp) __O1(exp2) __O1(log) __O1(log2) __O1(log10) __O1(log1p) __O1(expm1) __O1(sin) __O1(cos) __O1(tan) __O1(asin)
__O1(acos) __O1(atan) __O1(sinh) __O1(cosh) __O1(tanh) __O1(erf) __O1(floor) __O1(ceil) __O1(round) __O1(trunc) __O1(fabs) __O1(cbrt)
__O2(pow) __O2(fmod) __O2(fmin) __O2(fmax) __O2(atan2) __O2(hypot)
__HD float pow(float, int); __HD double pow(double, int); __HD float fma(float, float, float);
extern "C" {
__HD int printf(const char *, ...);
__HD void *malloc(size_t);
__HD void free(void *);
__HD void *memcpy(void *, const void *, size_t) noexcept;
__HD void *memset(void *, int, size_t) noexcept;
}
#define assert(x) ((void)0)
extern "C" { void *calloc(size_t, size_t); void *realloc(void *, size_t); void exit(int); void abort(); char *getenv(const char *); int atoi(const char *); double atof(const char *); int rand(); void srand(unsigned); }
extern "C" { size_t strlen(const char *) noexcept; int strcmp(const char *, const char *) noexcept; int memcmp(const void *, const void *, size_t) noexcept; void *memmove(void *, const void *, size_t) noexcept; char *strcpy(char *, const char *) noexcept; }
namespace std {
using ::size_t; using ::ptrdiff_t; using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t; using ::uint8_t; using ::uint16_t;
using ::uint32_t; using ::uint64_t; using ::uintptr_t; using ::intptr_t;
using ::sqrt; using ::exp; using ::log; using ::log2; using ::log10; using ::log1p; using ::sin; using ::cos; using ::tan; using ::tanh; using ::erf; using ::floor;
using ::ceil; using ::round; using ::trunc; using ::fabs; using ::pow; using ::fmod; using ::fmin; using ::fmax; using ::atan2; using ::hypot; using ::fma;
using ::abs; using ::isnan; using ::isinf; using ::isfinite; using ::signbit; using ::printf; using ::malloc; using ::free; using ::memcpy; using ::memset; using ::exit; using ::abort; using ::calloc;
typedef decltype(nullptr) nullptr_t;
template <class T> __HD constexpr T min(T a, T b) { return b < a ? b : a; }
template <class T> __HD constexpr T max(T a, T b) { return a < b ? b : a; }
template <class T> __HD void swap(T &, T &);
template <class T> __HD T &&move(T &);
template <class T> struct numeric_limits {
  static __HD constexpr T max() { return T(); } static __HD constexpr T min() { return T(); } static __HD constexpr T lowest() { return T(); }
  static __HD constexpr T infinity() { return T(); } static __HD constexpr T epsilon() { return T(); } static __HD constexpr T quiet_NaN() { return T(); }
};
template <class A, class B> struct is_same { static constexpr bool value = false; };
template <class A> struct is_same<A, A> { static constexpr bool value = true; };
template <class A, class B> inline constexpr bool is_same_v = is_same<A, B>::value;
template <class T> struct vector {
  vector(); explicit vector(size_t, T = T()); vector(const T *, const T *); T &operator[](size_t); const T &operator[](size_t) const; T *data(); const T *data() const; size_t size() const;
  bool empty() const; T *begin(); T *end(); const T *begin() const; const T *end() const; void push_back(const T &); void resize(size_t, T = T()); T &back(); T &front(); void clear(); void reserve(size_t);
};
struct string { string(); string(const char *); const char *c_str() const; size_t size() const; string operator+(const string &) const; };
string to_string(int);
struct runtime_error { runtime_error(const char *); runtime_error(const string &); };
struct ostream { template <class T> ostream &operator<<(const T &); };
extern ostream cout, cerr; extern const char *endl;
template <class A, class B> struct pair { A first; B second; };
template <class T, size_t N> struct array { T data_[N]; __HD T &operator[](size_t); __HD const T &operator[](size_t) const; T *data(); size_t size() const; };
template <class I> void sort(I, I);
template <class I, class O> void copy(I, I, O);
template <class I, class V> void fill(I, I, V);
template <class I, class V> V accumulate(I, I, V);
}
struct FILE;
extern FILE *stdin, *stdout, *stderr;
extern "C" { int fprintf(FILE *, const char *, ...); int scanf(const char *, ...); int fscanf(FILE *, const char *, ...); int snprintf(char *, size_t, const char *, ...); int puts(const char *); int putchar(int); int fflush(FILE *); size_t fread(void *, size_t, size_t, FILE *); size_t fwrite(const void *, size_t, size_t, FILE *); }
namespace std { using ::FILE; using ::fprintf; using ::scanf; using ::fscanf; using ::snprintf; using ::puts; using ::putchar; using ::fflush; using ::fread; using ::fwrite; using ::getenv; using ::atoi; using ::atof; using ::rand; using ::srand; using ::realloc; }
