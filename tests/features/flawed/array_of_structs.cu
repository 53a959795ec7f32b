struct Body { float x, y, z, mass, vx, vy, vz, pad; };
__global__ void drift(const Body *b, float *speed, int n, float dt) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float s = b[i].vx * dt;  // FLAW
  speed[i] = s;
}
extern "C" int drift_device(const Body *b, float *speed, int n, float dt, cudaStream_t s) {
  drift<<<(n + 127) / 128, 128, 0, s>>>(b, speed, n, dt);
  return cudaGetLastError();
}
