void row_sums(const float *m, int rows, int cols, float *out)
{
    const float *p = m;
    for (int r = 0; r < rows; r++) {
        float s = 0;
        for (int c = 0; c < cols; c++)
            s += *p++;
        *out++ = s;
    }
}
