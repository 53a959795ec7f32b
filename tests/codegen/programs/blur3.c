#define AT(y, x) ((y) * w + (x))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
/* box blur with clamped edges */
/* cudaperf: in in[h*w]; out out[h*w] */
void blur3(const float *in, float *out, int h, int w)
{
    for (int y = 0; y < h; ++y)
        for (int x = 0; x < w; ++x) {
            float acc = 0.f;
            for (int dy = -1; dy <= 1; ++dy)
                for (int dx = -1; dx <= 1; ++dx)
                    acc += in[AT(MIN(MAX(y + dy, 0), h - 1), MIN(MAX(x + dx, 0), w - 1))];
            out[AT(y, x)] = acc / 9.f;
        }
}
