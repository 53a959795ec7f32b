// PyTorch's extension surface, as far as the structural analysis asks: tensors, dispatch, bindings. Declarations only.
#pragma once
#include "../cuda_runtime.h"
#include "../cuda_fp16.h"
namespace c10 {
enum class ScalarType { Byte, Char, Short, Int, Long, Half, Float, Double, Bool, BFloat16 };
enum DeviceType { CPU, CUDA };
struct Half : __half { using __half::__half; };
struct Device { bool is_cuda() const; int index() const; DeviceType type() const; bool operator==(const Device &) const; };
struct IntArrayRef { const int64_t *begin() const; const int64_t *end() const; int64_t operator[](size_t) const; size_t size() const; int64_t back() const; IntArrayRef(); IntArrayRef(const std::vector<int64_t> &); template <class... A> IntArrayRef(int64_t, A...); };
template <class T> struct optional { optional(); optional(const T &); bool has_value() const; T &value(); const T &value() const; T &operator*(); T *operator->(); };
namespace cuda { struct CUDAGuard { template <class T> explicit CUDAGuard(const T &); }; struct OptionalCUDAGuard { template <class T> explicit OptionalCUDAGuard(const T &); }; }
}
namespace at {
using namespace c10;
constexpr ScalarType kFloat = ScalarType::Float, kDouble = ScalarType::Double, kHalf = ScalarType::Half, kInt = ScalarType::Int, kLong = ScalarType::Long, kBool = ScalarType::Bool, kByte = ScalarType::Byte, kBFloat16 = ScalarType::BFloat16, kFloat32 = ScalarType::Float, kFloat16 = ScalarType::Half, kInt32 = ScalarType::Int, kInt64 = ScalarType::Long;
constexpr DeviceType kCUDA = CUDA, kCPU = CPU;
struct TensorOptions { TensorOptions(); TensorOptions(ScalarType); TensorOptions dtype(ScalarType) const; TensorOptions device(DeviceType, int = 0) const; TensorOptions device(Device) const; template <class T> TensorOptions layout(T) const; TensorOptions requires_grad(bool) const; };
template <class T, int N> struct Accessor { __HD T &operator[](int64_t) const; __HD int64_t size(int) const; };
template <class T> struct Accessor<T, 1> { __HD T &operator[](int64_t) const; __HD int64_t size(int) const; };
struct RestrictPtrTraits; struct DefaultPtrTraits;
template <class T, int N, class Traits = DefaultPtrTraits, class I = int> struct PackedTensorAccessor { __HD T &operator[](int64_t) const; __HD int size(int) const; };
template <class T, int N, class Traits = DefaultPtrTraits> using PackedTensorAccessor32 = PackedTensorAccessor<T, N, Traits, int>;
template <class T, int N, class Traits = DefaultPtrTraits> using PackedTensorAccessor64 = PackedTensorAccessor<T, N, Traits, int64_t>;
struct Tensor {
  template <class T> T *data_ptr() const; void *data_ptr() const; template <class T> const T *const_data_ptr() const; template <class T> T *mutable_data_ptr() const;
  int64_t size(int64_t) const; int64_t numel() const; IntArrayRef sizes() const; int64_t dim() const; int64_t stride(int64_t) const; IntArrayRef strides() const;
  bool is_cuda() const; bool is_contiguous() const; bool defined() const; Tensor contiguous() const; Tensor clone() const; TensorOptions options() const;
  ScalarType scalar_type() const; ScalarType dtype() const; Device device() const; Tensor view(IntArrayRef) const; Tensor reshape(IntArrayRef) const;
  Tensor to(ScalarType) const; Tensor to(DeviceType) const; Tensor to(Device) const; Tensor cpu() const; Tensor cuda() const; Tensor transpose(int64_t, int64_t) const; Tensor t() const; Tensor flatten(int64_t = 0, int64_t = -1) const;
  Tensor sum() const; Tensor mean() const; Tensor zero_() const; Tensor fill_(double) const; template <class T> T item() const; Tensor squeeze() const; Tensor squeeze(int64_t) const; Tensor unsqueeze(int64_t) const; int64_t element_size() const; int get_device() const;
  template <class T, int N, class P = DefaultPtrTraits> PackedTensorAccessor32<T, N, P> packed_accessor32() const; template <class T, int N> Accessor<T, N> accessor() const;
};
Tensor empty(IntArrayRef, TensorOptions = TensorOptions()); Tensor zeros(IntArrayRef, TensorOptions = TensorOptions()); Tensor ones(IntArrayRef, TensorOptions = TensorOptions());
Tensor empty_like(const Tensor &); Tensor zeros_like(const Tensor &); Tensor full(IntArrayRef, double, TensorOptions = TensorOptions());
namespace cuda { using c10::cuda::CUDAGuard; using c10::cuda::OptionalCUDAGuard; struct Stream { operator cudaStream_t() const; cudaStream_t stream() const; }; Stream getCurrentCUDAStream(int = 0); cudaDeviceProp *getCurrentDeviceProperties(); }
}
namespace c10 { namespace cuda { using at::cuda::getCurrentCUDAStream; } }
namespace torch { using namespace at; namespace nn {} typedef c10::ScalarType Dtype; inline TensorOptions dtype(ScalarType); }
namespace pybind11 { struct arg { explicit arg(const char *); template <class T> arg &operator=(const T &); }; struct module_ { template <class... A> module_ &def(const char *, A...); const char *doc(); }; }
namespace py = pybind11;
struct torch_library_ { template <class... A> void def(const char *, A...); template <class... A> void impl(const char *, A...); };
#define TORCH_EXTENSION_NAME extension
#define __JOIN_(a, b) a##b
#define __JOIN(a, b) __JOIN_(a, b)
#define PYBIND11_MODULE(name, m) static void __JOIN(pybind_init_, name)(pybind11::module_ & m)
#define TORCH_LIBRARY(name, m) static void __JOIN(torch_library_init_, name)(torch_library_ & m)
#define TORCH_LIBRARY_IMPL(name, key, m) static void __JOIN(torch_library_init_impl_, name)(torch_library_ & m)
#define TORCH_CHECK(...) ((void)0)
#define TORCH_INTERNAL_ASSERT(...) ((void)0)
#define AT_ERROR(...) ((void)0)
#define C10_CUDA_CHECK(x) (void)(x)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() ((void)0)
#define AT_CUDA_CHECK(x) (void)(x)
#define __DISPATCH(T, ...) [&] { using scalar_t = T; return __VA_ARGS__(); }()
#define AT_DISPATCH_FLOATING_TYPES(type, name, ...) __DISPATCH(float, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES(type, name, ...) __DISPATCH(float, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(type, name, ...) __DISPATCH(float, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND(extra, type, name, ...) __DISPATCH(float, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND2(extra1, extra2, type, name, ...) __DISPATCH(float, __VA_ARGS__)
#define AT_DISPATCH_INTEGRAL_TYPES(type, name, ...) __DISPATCH(int, __VA_ARGS__)
