typedef struct { unsigned char r, g, b, a; } Rgba;
enum { HALF = 128 };
static unsigned char clamp8(int v) { return v < 0 ? 0 : v > 255 ? 255 : (unsigned char)v; }
void color_convert(const Rgba *in, Rgba *out, int n, int gain)
{
    for (int i = 0; i < n; i++) {
        Rgba p = in[i], q;
        q.r = clamp8((p.r - HALF) * gain / 64 + HALF);
        q.g = clamp8((p.g - HALF) * gain / 64 + HALF);
        q.b = clamp8((p.b - HALF) * gain / 64 + HALF);
        q.a = p.a;
        out[i] = q;
    }
}
