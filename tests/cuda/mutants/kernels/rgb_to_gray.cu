// task: rgb_to_gray
__global__ void gray_kernel(const unsigned char *rgb, unsigned char *gray, int width, int height, int stride)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) {
        const unsigned char *pixel = rgb + (long)y * stride + 3 * x;
        gray[(long)y * width + x] = (77 * pixel[0] + 150 * pixel[1] + 29 * pixel[2]) >> 8;
    }
}

extern "C" int rgb_to_gray_device(const unsigned char *rgb, unsigned char *gray, int width, int height, int stride,
                                  cudaStream_t stream)
{
    dim3 block(32, 8), blocks((width + 31) / 32, (height + 7) / 8);
    if (width > 0 && height > 0)
        gray_kernel<<<blocks, block, 0, stream>>>(rgb, gray, width, height, stride);
    return cudaGetLastError();
}
