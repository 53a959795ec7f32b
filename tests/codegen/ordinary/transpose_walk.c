void transpose_walk(const int *src, int *dst, int rows, int cols)
{
    for (int i = 0; i < rows; i++) {
        int *d = dst + i;
        for (int j = 0; j < cols; j++) {
            *d = *src++;
            d += rows;
        }
    }
}
