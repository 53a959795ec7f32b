void wrap_fill(unsigned *out, int n, unsigned start)
{
    unsigned x = start;
    for (int i = 0; i < n; i++) {
        out[i] = x / 3u;
        x += 0x9E3779B9u;
    }
}
