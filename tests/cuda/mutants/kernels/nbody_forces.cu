// task: nbody_forces
typedef struct { float x, y, z, mass; } Body;
typedef struct { float x, y, z; } Vec3;
__global__ void forces(const Body *bodies, Vec3 *acc, int count, float softening)
{
    __shared__ Body near[64];
    int i = blockIdx.x * 64 + threadIdx.x;
    Body me = bodies[i < count ? i : 0];
    Vec3 a = {0.0f, 0.0f, 0.0f};
    for (int first = 0; first < count; first += 64) {
        if (first + threadIdx.x < count)
            near[threadIdx.x] = bodies[first + threadIdx.x];
        __syncthreads();
        for (int j = 0; j < 64 && first + j < count; j++) {
            float dx = near[j].x - me.x, dy = near[j].y - me.y, dz = near[j].z - me.z;
            float inv = 1.0f / sqrtf(dx * dx + dy * dy + dz * dz + softening);
            float s = near[j].mass * inv * inv * inv;
            a.x += dx * s;
            a.y += dy * s;
            a.z += dz * s;
        }
        __syncthreads();
    }
    if (i < count)
        acc[i] = a;
}

extern "C" int nbody_forces_device(const Body *bodies, Vec3 *acc, int count, float softening, cudaStream_t stream)
{
    if (count > 0)
        forces<<<(count + 63) / 64, 64, 0, stream>>>(bodies, acc, count, softening);
    return cudaGetLastError();
}
