static const float kernel3[3][3] = {{1, 2, 1}, {2, 4, 2}, {1, 2, 1}};
void blur(const unsigned char *in, unsigned char *out, int w, int h)
{
    for (int y = 1; y < h - 1; y++)
        for (int x = 1; x < w - 1; x++) {
            float s = 0;
            for (int dy = -1; dy <= 1; dy++)
                for (int dx = -1; dx <= 1; dx++)
                    s += kernel3[dy + 1][dx + 1] * in[(y + dy) * w + x + dx];
            out[y * w + x] = (unsigned char)(s / 16.0f);
        }
}
