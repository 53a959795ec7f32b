// Shuffles of every kind and type, votes, matches and warp reductions; each lane checks its own results.
#include <cuda_runtime.h>

#define FULL 0xffffffffu

__global__ void lanes(int n, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int lane = threadIdx.x % warpSize;
    unsigned me = 1u << lane;
    float wrong = 0.0f;

    wrong += __shfl_sync(FULL, lane, 5) != 5;
    wrong += __shfl_sync(FULL, lane, 1, 8) != (lane & ~7) + 1;
    wrong += __shfl_up_sync(FULL, lane, 3) != (lane < 3 ? lane : lane - 3);
    wrong += __shfl_up_sync(FULL, lane, 3, 16) != (lane % 16 < 3 ? lane : lane - 3);
    wrong += __shfl_down_sync(FULL, lane, 4) != (lane > 27 ? lane : lane + 4);
    wrong += __shfl_down_sync(FULL, lane, 4, 8) != (lane % 8 > 3 ? lane : lane + 4);
    wrong += __shfl_xor_sync(FULL, lane, 7) != (lane ^ 7);
    wrong += __shfl_sync(FULL, lane * 0.5, 31) != 15.5;
    wrong += __shfl_sync(FULL, lane * 10000000000LL, 3) != 30000000000LL;
    wrong += __shfl_xor_sync(FULL, (unsigned char)lane, 1) != (lane ^ 1);

    wrong += __ballot_sync(FULL, lane & 1) != 0xaaaaaaaau;
    wrong += __any_sync(FULL, lane == 9) != 1;
    wrong += __any_sync(FULL, lane == 99) != 0;
    wrong += __all_sync(FULL, lane < 32) != 1;
    wrong += __all_sync(FULL, lane < 31) != 0;
    wrong += __activemask() != FULL;

    int same;
    wrong += __match_any_sync(FULL, lane / 8) != 0xffu << (lane / 8 * 8);
    wrong += __match_all_sync(FULL, 3.5f, &same) != FULL || !same;
    wrong += __match_all_sync(FULL, lane, &same) != 0 || same;

    wrong += __reduce_add_sync(FULL, lane) != 496;
    wrong += __reduce_min_sync(FULL, lane - 7) != -7;
    wrong += __reduce_max_sync(FULL, lane - 40) != -9;
    wrong += __reduce_max_sync(FULL, (unsigned)lane) != 31u;
    wrong += __reduce_and_sync(FULL, (unsigned)lane | 64u) != 64u;
    wrong += __reduce_or_sync(FULL, me) != FULL;
    wrong += __reduce_xor_sync(FULL, me) != FULL;

    if (lane < 16) { // half of the warp on its own
        wrong += __shfl_down_sync(0x0000ffffu, lane, 1, 16) != (lane < 15 ? lane + 1 : 15);
        wrong += __activemask() != 0x0000ffffu;
    }
    wrong += __syncthreads_count(threadIdx.x < 10) != 10;
    wrong += __syncthreads_and(threadIdx.x < 10) != 0;
    wrong += __syncthreads_or(threadIdx.x == 10) == 0;
    if (i < n)
        y[i] = x[i] + wrong;
}

extern "C" void f(int n, const float *x, float *y)
{
    float *dx, *dy;
    cudaMalloc(&dx, n * sizeof(float));
    cudaMalloc(&dy, n * sizeof(float));
    cudaMemcpy(dx, x, n * sizeof(float), cudaMemcpyHostToDevice);
    lanes<<<(n + 63) / 64, 64>>>(n, dx, dy);
    cudaMemcpy(y, dy, n * sizeof(float), cudaMemcpyDeviceToHost);
    cudaFree(dx);
    cudaFree(dy);
}
