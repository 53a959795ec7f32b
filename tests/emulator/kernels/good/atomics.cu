// A histogram in shared memory, and every atomic on every type it exists for.
#include <cuda_runtime.h>

#define BINS 16

struct Totals {
    int add, sub, least, most, conjunction, disjunction, exclusive;
    unsigned wrapped, counted_down, umax;
    unsigned long long wide;
    float real;
    double precise;
    int swapped;
    double by_hand;
    float largest;
};

__device__ double add_by_swapping(double *address, double value)
{
    unsigned long long *bits = (unsigned long long *)address, old = *bits, assumed;
    do {
        assumed = old;
        old = atomicCAS(bits, assumed, __double_as_longlong(value + __longlong_as_double(assumed)));
    } while (assumed != old);
    return __longlong_as_double(old);
}

__device__ void raise_to(float *address, float value)
{
    int old = *(int *)address, assumed;
    do {
        assumed = old;
        if (__int_as_float(assumed) >= value)
            break;
        old = atomicCAS((int *)address, assumed, __float_as_int(value));
    } while (assumed != old);
}

__global__ void count(int n, const float *x, unsigned *bins, Totals *t)
{
    __shared__ unsigned mine[BINS];
    if (threadIdx.x < BINS)
        mine[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        int bin = max(0, min(BINS - 1, (int)((x[i] + 4.0f) * 2.0f)));
        atomicAdd(&mine[bin], 1u);
        atomicAdd(&t->add, 2);
        atomicSub(&t->sub, 1);
        atomicMin(&t->least, -i);
        atomicMax(&t->most, i);
        atomicAnd(&t->conjunction, ~(i & 3));
        atomicOr(&t->disjunction, i & 12);
        atomicXor(&t->exclusive, 1);
        atomicInc(&t->wrapped, 6u);
        atomicDec(&t->counted_down, 1000000u);
        atomicMax(&t->umax, (unsigned)i + 0x80000000u);
        atomicAdd(&t->wide, 10000000000ULL);
        atomicAdd(&t->real, 0.5f);
        atomicAdd(&t->precise, 0.25);
        add_by_swapping(&t->by_hand, 0.5);
        raise_to(&t->largest, (float)(i + 1));
        int seen = 0, assumed;
        do { // an atomic sum by compare-and-swap
            assumed = seen;
            seen = atomicCAS(&t->swapped, assumed, assumed + 3);
        } while (seen != assumed);
    }
    __syncthreads();
    if (threadIdx.x < BINS)
        atomicAdd(&bins[threadIdx.x], mine[threadIdx.x]);
}

extern "C" void f(int n, const float *x, float *y)
{
    float *dx;
    unsigned *bins, host[BINS];
    Totals *t, h = {0, 0, 0, 0, -1, 0, 0, 0, 1000000u, 0, 0, 0.0f, 0.0, 0, 0.0, 0.0f};
    cudaMalloc(&dx, n * sizeof(float));
    cudaMalloc(&bins, sizeof host);
    cudaMalloc(&t, sizeof h);
    cudaMemset(bins, 0, sizeof host);
    cudaMemcpy(t, &h, sizeof h, cudaMemcpyHostToDevice);
    cudaMemcpy(dx, x, n * sizeof(float), cudaMemcpyHostToDevice);
    count<<<3, 96>>>(n, dx, bins, t);
    cudaMemcpy(host, bins, sizeof host, cudaMemcpyDeviceToHost);
    cudaMemcpy(&h, t, sizeof h, cudaMemcpyDeviceToHost);
    int last = n - 1, low = 0, high = 0;
    for (int i = 0; i < n; i++)
        low |= i & 3, high |= i & 12;
    bool good = h.add == 2 * n && h.sub == -n && h.least == -last && h.most == last && h.conjunction == ~low &&
                h.disjunction == high && h.exclusive == (n & 1) && h.wrapped == (unsigned)(n % 7) &&
                h.counted_down == 1000000u - n && h.umax == (unsigned)last + 0x80000000u &&
                h.wide == 10000000000ULL * n && h.real == 0.5f * n && h.precise == 0.25 * n && h.swapped == 3 * n &&
                h.by_hand == 0.5 * n && h.largest == (float)n;
    for (int i = 0; i < n; i++)
        y[i] = !good ? -1.0f : i < BINS ? (float)host[i] : 0.0f;
    cudaFree(dx);
    cudaFree(bins);
    cudaFree(t);
}
