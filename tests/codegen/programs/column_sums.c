/* cudaperf: in a[rows*cols]; out sums[cols] */
void column_sums(const float *a, float *sums, int rows, int cols)
{
    int r, c;
    for (c = 0; c < cols; c++)
        sums[c] = 0;
    for (r = 0; r < rows; r++)
        for (c = 0; c < cols; c++)
            sums[c] += a[r * cols + c];
}
