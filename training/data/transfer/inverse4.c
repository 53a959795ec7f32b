/* out = (m + lambda * I)^-1 for n small matrices, row by row.
   cudaperf: in m[16*n] in -1.0..1.0; lambda in 6.0..9.0; out out[16*n] */
void inverse4(int n, float lambda, const float *m, float *out)
{
    for (int i = 0; i < n; i++) {
        float a[16];
        for (int k = 0; k < 16; k++)
            a[k] = m[16 * i + k] + (k % 5 == 0 ? lambda : 0.0f);
        float s0 = a[0] * a[5] - a[4] * a[1], s1 = a[0] * a[6] - a[4] * a[2], s2 = a[0] * a[7] - a[4] * a[3];
        float s3 = a[1] * a[6] - a[5] * a[2], s4 = a[1] * a[7] - a[5] * a[3], s5 = a[2] * a[7] - a[6] * a[3];
        float c5 = a[10] * a[15] - a[14] * a[11], c4 = a[9] * a[15] - a[13] * a[11], c3 = a[9] * a[14] - a[13] * a[10];
        float c2 = a[8] * a[15] - a[12] * a[11], c1 = a[8] * a[14] - a[12] * a[10], c0 = a[8] * a[13] - a[12] * a[9];
        float det = 1.0f / (s0 * c5 - s1 * c4 + s2 * c3 + s3 * c2 - s4 * c1 + s5 * c0);
        float *o = out + 16 * i;
        o[0] = (a[5] * c5 - a[6] * c4 + a[7] * c3) * det;
        o[1] = (-a[1] * c5 + a[2] * c4 - a[3] * c3) * det;
        o[2] = (a[13] * s5 - a[14] * s4 + a[15] * s3) * det;
        o[3] = (-a[9] * s5 + a[10] * s4 - a[11] * s3) * det;
        o[4] = (-a[4] * c5 + a[6] * c2 - a[7] * c1) * det;
        o[5] = (a[0] * c5 - a[2] * c2 + a[3] * c1) * det;
        o[6] = (-a[12] * s5 + a[14] * s2 - a[15] * s1) * det;
        o[7] = (a[8] * s5 - a[10] * s2 + a[11] * s1) * det;
        o[8] = (a[4] * c4 - a[5] * c2 + a[7] * c0) * det;
        o[9] = (-a[0] * c4 + a[1] * c2 - a[3] * c0) * det;
        o[10] = (a[12] * s4 - a[13] * s2 + a[15] * s0) * det;
        o[11] = (-a[8] * s4 + a[9] * s2 - a[11] * s0) * det;
        o[12] = (-a[4] * c3 + a[5] * c1 - a[6] * c0) * det;
        o[13] = (a[0] * c3 - a[1] * c1 + a[2] * c0) * det;
        o[14] = (-a[12] * s3 + a[13] * s1 - a[14] * s0) * det;
        o[15] = (a[8] * s3 - a[9] * s1 + a[10] * s0) * det;
    }
}
