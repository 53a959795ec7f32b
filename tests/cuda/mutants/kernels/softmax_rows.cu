// task: softmax_rows
__global__ void softmax_kernel(const float *logits, float *probs, int cols)
{
    __shared__ float part[128];
    const float *in = logits + blockIdx.x * cols;
    float *out = probs + blockIdx.x * cols;
    float biggest = in[0];
    for (int c = threadIdx.x; c < cols; c += 128)
        biggest = fmaxf(biggest, in[c]);
    part[threadIdx.x] = biggest;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (threadIdx.x < half)
            part[threadIdx.x] = fmaxf(part[threadIdx.x], part[threadIdx.x + half]);
        __syncthreads();
    }
    biggest = part[0];
    __syncthreads();
    float total = 0.0f;
    for (int c = threadIdx.x; c < cols; c += 128)
        total += expf(in[c] - biggest);
    part[threadIdx.x] = total;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    for (int c = threadIdx.x; c < cols; c += 128)
        out[c] = expf(in[c] - biggest) / part[0];
}

extern "C" int softmax_rows_device(const float *logits, float *probs, int rows, int cols, cudaStream_t stream)
{
    if (rows > 0 && cols > 0)
        softmax_kernel<<<rows, 128, 0, stream>>>(logits, probs, cols);
    return cudaGetLastError();
}
