#include <math.h>

/* Layers as they are written for inference in plain C. */

void conv_nchw(const float *x, const float *wt, const float *bias, float *y, int N, int C, int H, int W, int K, int R,
               int S)
{
    int P = H - R + 1, Q = W - S + 1;
    for (int n = 0; n < N; n++)
        for (int k = 0; k < K; k++)
            for (int p = 0; p < P; p++)
                for (int q = 0; q < Q; q++) {
                    float s = bias ? bias[k] : 0.f;
                    for (int c = 0; c < C; c++)
                        for (int r = 0; r < R; r++)
                            for (int t = 0; t < S; t++)
                                s += x[((n * C + c) * H + p + r) * W + q + t] * wt[((k * C + c) * R + r) * S + t];
                    y[((n * K + k) * P + p) * Q + q] = s;
                }
}

void maxpool(const float *x, float *y, int C, int H, int W, int K, int stride, int pad)
{
    int P = (H + 2 * pad - K) / stride + 1, Q = (W + 2 * pad - K) / stride + 1;
    for (int c = 0; c < C; c++)
        for (int i = 0; i < P; i++)
            for (int j = 0; j < Q; j++) {
                float m = -INFINITY;
                for (int a = 0; a < K; a++)
                    for (int b = 0; b < K; b++) {
                        int yy = i * stride + a - pad, xx = j * stride + b - pad;
                        if (yy < 0 || yy >= H || xx < 0 || xx >= W)
                            continue;
                        m = fmaxf(m, x[(c * H + yy) * W + xx]);
                    }
                y[(c * P + i) * Q + j] = m;
            }
}

void layernorm(float *out, const float *inp, const float *weight, const float *bias, int N, int C)
{
    for (int b = 0; b < N; b++) {
        const float *x = inp + b * C;
        float m = 0.f, v = 0.f;
        for (int i = 0; i < C; i++)
            m += x[i] / C;
        for (int i = 0; i < C; i++)
            v += (x[i] - m) * (x[i] - m) / C;
        float *o = out + b * C;
        for (int i = 0; i < C; i++)
            o[i] = (x[i] - m) / sqrtf(v + 1e-5f) * weight[i] + bias[i];
    }
}

void valid1d(const float *x, const float *h, float *y, int W, int S)
{
    for (int i = 0; i <= W - S; i++) {
        y[i] = 0;
        for (int j = 0; j < S; j++)
            y[i] += x[i + j] * h[j];
    }
}
