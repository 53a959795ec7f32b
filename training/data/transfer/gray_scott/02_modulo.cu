// flat index, neighbours by modulo
__global__ void gs(int rows, int cols, const float *u, const float *v, float *un, float *vn, float feed, float kill)
{
    int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k < rows * cols) {
        int i = k / cols, j = k % cols;
        int n = (i + rows - 1) % rows * cols + j, s = (i + 1) % rows * cols + j;
        int w = i * cols + (j + cols - 1) % cols, e = i * cols + (j + 1) % cols;
        float lu = u[n] + u[s] + u[w] + u[e] - 4.0f * u[k];
        float lv = v[n] + v[s] + v[w] + v[e] - 4.0f * v[k];
        float uvv = u[k] * v[k] * v[k];
        un[k] = u[k] + 0.16f * lu - uvv + feed * (1.0f - u[k]);
        vn[k] = v[k] + 0.08f * lv + uvv - (feed + kill) * v[k];
    }
}

extern "C" int gray_scott_device(int rows, int cols, const float *u, const float *v, float *un, float *vn, float feed, float kill, cudaStream_t stream)
{
    int n = rows * cols;
    if (n > 0)
        gs<<<(n + 1023) / 1024, 1024, 0, stream>>>(rows, cols, u, v, un, vn, feed, kill);
    return cudaGetLastError();
}
