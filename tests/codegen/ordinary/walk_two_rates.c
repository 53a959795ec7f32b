void widen(const unsigned char *src, short *dst, int n)
{
    while (n > 1) {
        *dst++ = (short)(src[0] - src[1]);
        src += 2;
        n -= 2;
    }
}
