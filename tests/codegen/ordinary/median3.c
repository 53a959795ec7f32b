#define SWAP(a, b) do { if ((a) > (b)) { unsigned char t_ = (a); (a) = (b); (b) = t_; } } while (0)
void median3(const unsigned char *in, unsigned char *out, int n)
{
    for (int i = 1; i + 1 < n; i++) {
        unsigned char a = in[i - 1], b = in[i], c = in[i + 1];
        SWAP(a, b);
        SWAP(b, c);
        SWAP(a, b);
        out[i] = b;
    }
}
