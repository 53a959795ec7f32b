// Cooperative groups: block, tiles, reduce, scan, coalesced threads.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda_runtime.h>

namespace cg = cooperative_groups;

__device__ int count_positive(const float *x, int i, int n, int *counter)
{
    int before = -1;
    if (i < n && x[i] > 0.0f) { // one atomic for all lanes that are here
        cg::coalesced_group here = cg::coalesced_threads();
        int base = 0;
        if (here.thread_rank() == 0)
            base = atomicAdd(counter, (int)here.size());
        before = here.shfl(base, 0) + (int)here.thread_rank();
    }
    return before;
}

__global__ void groups(int n, const float *x, float *y, int *counter)
{
    cg::thread_block block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    auto quad = cg::tiled_partition<4>(warp);
    int i = block.group_index().x * block.size() + block.thread_rank();
    float v = i < n ? x[i] : 0.0f;
    float sum = cg::reduce(quad, v, cg::plus<float>());
    float most = cg::reduce(quad, v, cg::greater<float>());
    int rank = cg::inclusive_scan(warp, 1) - 1;
    int below = cg::exclusive_scan(quad, 1, cg::plus<int>());
    int position = count_positive(x, i, n, counter);
    block.sync();
    float wrong = rank != (int)warp.thread_rank() || below != (int)quad.thread_rank() ||
                  warp.shfl(rank, 3) != 3 || quad.shfl_xor(below, 1) != (below ^ 1) || (v > 0.0f) != (position >= 0) ||
                  warp.ballot(1) != 0xffffffffu || quad.ballot(1) != 15u;
    cg::sync(warp);
    if (i < n)
        y[i] = sum + most + 1000.0f * wrong;
}

extern "C" void f(int n, const float *x, float *y)
{
    float *dx, *dy;
    int *counter, positive, expected = 0;
    cudaMalloc(&dx, n * sizeof(float));
    cudaMalloc(&dy, n * sizeof(float));
    cudaMalloc(&counter, sizeof(int));
    cudaMemset(counter, 0, sizeof(int));
    cudaMemcpy(dx, x, n * sizeof(float), cudaMemcpyHostToDevice);
    groups<<<(n + 95) / 96, 96>>>(n, dx, dy, counter);
    cudaMemcpy(y, dy, n * sizeof(float), cudaMemcpyDeviceToHost);
    cudaMemcpy(&positive, counter, sizeof(int), cudaMemcpyDeviceToHost);
    for (int i = 0; i < n; i++)
        expected += x[i] > 0.0f;
    if (positive != expected)
        y[0] = -1000.0f;
    cudaFree(dx);
    cudaFree(dy);
    cudaFree(counter);
}
