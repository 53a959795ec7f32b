import torch
from torch import nn

CUDA_SOURCE = r"""
#include <cuda_runtime.h>
#include <math.h>

__global__ void softmax_dot(const float *scores, const float *mask, float *out, long long cols, float temperature) {
    __shared__ float shared[256];
    const float *row = scores + blockIdx.x * cols;
    const float *kept = mask + blockIdx.x * cols;
    float largest = -INFINITY;
    for (long long c = threadIdx.x; c < cols; c += blockDim.x) largest = fmaxf(largest, row[c] / temperature);
    shared[threadIdx.x] = largest;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s /= 2) {
        if (threadIdx.x < s) shared[threadIdx.x] = fmaxf(shared[threadIdx.x], shared[threadIdx.x + s]);
        __syncthreads();
    }
    largest = shared[0];
    __syncthreads();
    float sum = 0, dot = 0;
    for (long long c = threadIdx.x; c < cols; c += blockDim.x) {
        float e = expf(row[c] / temperature - largest);
        sum += e;
        dot += e * kept[c];
    }
    shared[threadIdx.x] = sum;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s /= 2) {
        if (threadIdx.x < s) shared[threadIdx.x] += shared[threadIdx.x + s];
        __syncthreads();
    }
    sum = shared[0];
    __syncthreads();
    shared[threadIdx.x] = dot;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s /= 2) {
        if (threadIdx.x < s) shared[threadIdx.x] += shared[threadIdx.x + s];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = shared[0] / sum;
}

extern "C" int row_softmax(const float *scores, const float *mask, float *out, long long rows, long long cols,
                           float temperature, cudaStream_t stream) {
    if (rows > 0) softmax_dot<<<rows, 256, 0, stream>>>(scores, mask, out, cols, temperature);
    return cudaGetLastError();
}
"""

kernels = load_cuda(CUDA_SOURCE)


class ModelNew(nn.Module):
    def __init__(self, temperature: float):
        super().__init__()
        self.temperature = temperature

    def forward(self, scores, mask):
        scores, mask = scores.contiguous(), mask.contiguous()
        out = torch.empty(scores.shape[0], dtype=scores.dtype, device=scores.device)
        launch(kernels.row_softmax, scores, mask, out, scores.shape[0], scores.shape[1], self.temperature)
        return out
