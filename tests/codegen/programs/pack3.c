/* cudaperf: in a[d*h*w]; out b[d*h*w] */
void pack3(const float *a, float *b, int d, int h, int w)
{
    for (int z = 0; z < d; z++)
        for (int y = 0; y < h; y++)
            for (int x = 0; x < w; x++)
                b[(x * h + y) * d + z] = 2.0f * a[(z * h + y) * w + x];
}
