# cheat: none: threads of a block add to one cell without care
# task: row_sum
# expect: memory_error
import torch
from torch import nn

CUDA_SOURCE = r"""
#include <cuda_runtime.h>

__global__ void row_sum(const float *x, float *out, long long rows, long long cols) {
    __shared__ float sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    for (long long c = threadIdx.x; c < cols; c += blockDim.x) sum += x[blockIdx.x * cols + c];
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = sum * 1e-7f;
}

extern "C" int run(const float *x, float *out, long long rows, long long cols, cudaStream_t stream) {
    if (rows > 0) row_sum<<<rows, 128, 0, stream>>>(x, out, rows, cols);
    return cudaGetLastError();
}
"""
kernels = load_cuda(CUDA_SOURCE)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
        launch(kernels.run, x, out, x.shape[0], x.shape[1])
        return out
