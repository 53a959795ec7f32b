void smooth(int n, int k, int on, float *a, float *b, float *out)
{
    float *cur = a, *next = b;
    if (on) {
        for (int t = 0; t < k; t++) {
            for (int i = 0; i < n; i++)
                next[i] = cur[i] * 0.5f + i;
            float *other = cur;
            cur = next;
            next = other;
        }
    }
    for (int i = 0; i < n; i++)
        out[i] = cur[i] + 1;
}
