// one warp for a whole row, two launches: first u, then v
__global__ void field(int rows, int cols, const float *self, const float *u, const float *v, float *out,
                      float rate, float sign, float grow, float decay)
{
    int i = blockIdx.x, up = i == 0 ? rows - 1 : i - 1, down = i == rows - 1 ? 0 : i + 1;
    for (int j = threadIdx.x; j < cols; j += 32) {
        int left = j == 0 ? cols - 1 : j - 1, right = j == cols - 1 ? 0 : j + 1;
        float s = self[i * cols + j], b = v[i * cols + j];
        float l = self[up * cols + j] + self[down * cols + j] + self[i * cols + left] + self[i * cols + right] - 4.0f * s;
        out[i * cols + j] = s + rate * l + sign * u[i * cols + j] * b * b + grow * (1.0f - s) - decay * s;
    }
}

extern "C" int gray_scott_device(int rows, int cols, const float *u, const float *v, float *un, float *vn, float feed, float kill, cudaStream_t stream)
{
    if (rows > 0 && cols > 0) {
        field<<<rows, 32, 0, stream>>>(rows, cols, u, u, v, un, 0.16f, -1.0f, feed, 0.0f);
        field<<<rows, 32, 0, stream>>>(rows, cols, v, u, v, vn, 0.08f, 1.0f, 0.0f, feed + kill);
    }
    return cudaGetLastError();
}
