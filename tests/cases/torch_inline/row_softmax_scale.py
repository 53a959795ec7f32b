import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <math.h>

__global__ void softmax_mask_sum(const float *scores, const float *mask, float *out, int cols, float inverse) {
    extern __shared__ float shared[];
    const float *row = scores + (size_t)blockIdx.x * cols;
    const float *keep = mask + (size_t)blockIdx.x * cols;
    float largest = -INFINITY;
    for (int c = threadIdx.x; c < cols; c += blockDim.x) largest = fmaxf(largest, row[c] * inverse);
    shared[threadIdx.x] = largest;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (threadIdx.x < s) shared[threadIdx.x] = fmaxf(shared[threadIdx.x], shared[threadIdx.x + s]);
        __syncthreads();
    }
    largest = shared[0];
    __syncthreads();
    float sum = 0.f, kept = 0.f;
    for (int c = threadIdx.x; c < cols; c += blockDim.x) {
        float e = expf(row[c] * inverse - largest);
        sum += e;
        kept += e * keep[c];
    }
    float *second = shared + blockDim.x;
    shared[threadIdx.x] = sum;
    second[threadIdx.x] = kept;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (threadIdx.x < s) {
            shared[threadIdx.x] += shared[threadIdx.x + s];
            second[threadIdx.x] += second[threadIdx.x + s];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = second[0] / shared[0];
}

torch::Tensor softmax_mask_sum_cuda(torch::Tensor scores, torch::Tensor mask, double temperature) {
    auto out = torch::empty({scores.size(0)}, scores.options());
    int rows = scores.size(0), cols = scores.size(1), threads = 256;
    softmax_mask_sum<<<rows, threads, 2 * threads * sizeof(float)>>>(
        scores.data_ptr<float>(), mask.data_ptr<float>(), out.data_ptr<float>(), cols, (float)(1.0 / temperature));
    return out;
}
"""

cpp_source = "torch::Tensor softmax_mask_sum_cuda(torch::Tensor scores, torch::Tensor mask, double temperature);"

extension = load_inline(
    name="softmax_mask_sum",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["softmax_mask_sum_cuda"],
    extra_cuda_cflags=["-O3"],
    verbose=False,
)


class ModelNew(nn.Module):
    def __init__(self, temperature: float):
        super().__init__()
        self.temperature = temperature
        self.extension = extension

    def forward(self, scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.extension.softmax_mask_sum_cuda(scores.contiguous(), mask.contiguous(), self.temperature)
