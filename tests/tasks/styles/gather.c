void gather(const float *src, const int *idx, float *dst, int n, int m) { for (int i = 0; i < n; i++) dst[i] = src[idx[i]]; for (int j = 0; j < m; j++) dst[0] += src[j]; }
