void palette(const unsigned char *idx, unsigned char *rgb, int n)
{
    static const unsigned char pal[4][3] = {{0, 0, 0}, {255, 0, 0}, {0, 255, 0}, {0, 0, 255}};
    for (int i = 0; i < n; i++)
        for (int c = 0; c < 3; c++)
            rgb[i * 3 + c] = pal[idx[i] & 3][c];
}
