/* Linked beside a candidate with --wrap for each launch function: leaves one kernel out, or tells whether there is one.
 *
 * Kernels are numbered from 1 in the order in which they are first launched. CUDAPERF_NULL_LAUNCH=N leaves launches of
 * the N-th out, as if they had succeeded; CUDAPERF_NULL_LAUNCH_FIND=N ends the process with status FOUND at its first
 * launch. The extent of a grid and of a block are structs of three unsigned, passed by value as CUDA's dim3 is. */
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST = 64, FOUND = 97 };
struct cudaperf_extent {
  unsigned x, y, z;
};

static const void *cudaperf_seen[MOST];

static int cudaperf_left_out(const void *kernel) {
  const char *left_out = getenv("CUDAPERF_NULL_LAUNCH"), *find = getenv("CUDAPERF_NULL_LAUNCH_FIND");
  for (int i = 0; i < MOST; i++) {
    if (cudaperf_seen[i] && cudaperf_seen[i] != kernel) continue;
    cudaperf_seen[i] = kernel;
    if (find && atoi(find) == i + 1) _exit(FOUND);
    return left_out && atoi(left_out) == i + 1;
  }
  return 0;
}

#define CUDAPERF_WRAP(name)                                                                                            \
  int __real_##name(const void *, struct cudaperf_extent, struct cudaperf_extent, void **, size_t, void *);            \
  int __wrap_##name(const void *kernel, struct cudaperf_extent grid, struct cudaperf_extent block, void **arguments,   \
                    size_t shared, void *stream) {                                                                     \
    return cudaperf_left_out(kernel) ? 0 : __real_##name(kernel, grid, block, arguments, shared, stream);              \
  }

/* What <<<>>> becomes: the first before CUDA 13, the second since. */
CUDAPERF_WRAP(cudaLaunchKernel)
CUDAPERF_WRAP(__cudaLaunchKernel)
CUDAPERF_WRAP(cudaLaunchCooperativeKernel)

int __real_cudaLaunchKernelExC(const void *config, const void *kernel, void **arguments);
int __wrap_cudaLaunchKernelExC(const void *config, const void *kernel, void **arguments) {
  return cudaperf_left_out(kernel) ? 0 : __real_cudaLaunchKernelExC(config, kernel, arguments);
}
