#define W 32
void transpose_2d(int h, double a[][W], double b[W][64])
{
    for (int y = 0; y < h && y < 64; y++)
        for (int x = 0; x < W; x++)
            b[x][y] = a[y][x];
}
