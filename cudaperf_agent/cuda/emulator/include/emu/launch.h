// `kernel<<<grid, block, shared, stream>>>(arguments)` arrives here as
// `::emu::Launch("kernel", __LINE__, grid, block, shared, stream).run([&](auto &&...a) { kernel(a...); }, arguments)`.
#pragma once
#include <type_traits>
#include <utility>

#include "abi.h"

// Real variables, not macros: people write `dim3 blockDim(16, 16);`. They are constant within a CUDA thread.
extern const uint3 threadIdx __asm__("emu_thread_index"), blockIdx __asm__("emu_block_index");
extern const dim3 blockDim __asm__("emu_block_dim"), gridDim __asm__("emu_grid_dim");
static constexpr int warpSize = 32;

#define __global__ __attribute__((noinline))
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define __maxnreg__(...)
// The thread-local segment of the candidate's module is then exactly the static shared memory of a block.
#define __shared__ static thread_local

namespace emu {

// A literal 0 among the arguments: an int, unless the kernel takes a pointer there.
struct Zero {};

template <class T> struct IntOrSame { using type = T; };
template <> struct IntOrSame<Zero> { using type = int; };
template <class T> struct NullOrSame { using type = T; };
template <> struct NullOrSame<Zero> { using type = std::nullptr_t; };
template <template <class> class Choice, class A> EMU_UNCHECKED decltype(auto) pick(A &argument) {
  if constexpr (std::is_same_v<std::remove_cv_t<A>, Zero>)
    return typename Choice<Zero>::type{};
  else
    return (argument);
}
template <template <class> class Choice, class A> using Picked = decltype(pick<Choice>(std::declval<A &>()));

struct Launch {
  const char *kernel;
  int line;
  dim3 grid, block;
  size_t shared;

  Launch(const char *kernel_, int line_, dim3 grid_, dim3 block_, size_t shared_ = 0, cudaStream_t = nullptr)
      : kernel(kernel_), line(line_), grid(grid_), block(block_), shared(shared_) {}

  template <class F, class... A> EMU_UNCHECKED void run(F &&call, A &&...arguments) {
    const emu_range parameters[] = {{__builtin_addressof(arguments), sizeof arguments}..., {nullptr, 0}};
    if constexpr (std::is_invocable_v<F, Picked<IntOrSame, std::remove_reference_t<A>>...>)
      start([&]() EMU_UNCHECKED { call(pick<IntOrSame>(arguments)...); }, parameters, sizeof...(A));
    else
      start([&]() EMU_UNCHECKED { call(pick<NullOrSame>(arguments)...); }, parameters, sizeof...(A));
  }

private:
  template <class Body> EMU_UNCHECKED void start(Body &&body, const emu_range *parameters, int count) {
    using Plain = std::remove_reference_t<Body>;
    emu_launch(kernel, line, grid, block, shared,
               [](void *context) EMU_UNCHECKED { (*static_cast<Plain *>(context))(); }, &body, parameters, count);
  }
};

namespace detail {
template <class... P, size_t... I>
EMU_UNCHECKED void launch_packed(void (*kernel)(P...), dim3 grid, dim3 block, void **arguments, size_t shared,
                                 cudaStream_t stream, int line, std::index_sequence<I...>) {
  Launch("cudaLaunchKernel", line, grid, block, shared, stream)
      .run([&](auto &&...a) EMU_UNCHECKED -> decltype(void(kernel(a...))) { kernel(a...); },
           *static_cast<std::remove_reference_t<P> *>(arguments[I])...);
}
} // namespace detail

// Put once at the top of the candidate's text by the build.
struct Registration {
  Registration(const void *inside, const void *anchor, const char *name, int checked) {
    emu_module(inside, anchor, name, checked);
  }
};
} // namespace emu

#ifdef EMU_CHECK
#define EMU_CHECKED 1
#else
#define EMU_CHECKED 0
#endif
// One thread-local that is always there, so that the loader gives the module a thread-local segment.
#define EMU_MODULE(NAME)                                                                                               \
  static thread_local char emu_module_anchor[16];                                                                      \
  static EMU_UNCHECKED const void *emu_touch_anchor() {                                                                \
    volatile char *anchor = emu_module_anchor;                                                                         \
    *anchor = 0;                                                                                                       \
    return emu_module_anchor;                                                                                          \
  }                                                                                                                    \
  static ::emu::Registration emu_module_registration((const void *)&emu_touch_anchor, emu_touch_anchor(), NAME, EMU_CHECKED);
