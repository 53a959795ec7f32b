static unsigned char clip(int v)
{
    return v < 0 ? 0 : v > 255 ? 255 : v;
}
void yuv_to_rgb(const unsigned char *y, const unsigned char *u, const unsigned char *v, unsigned char *rgb, int n)
{
    while (n--) {
        int c = *y++ - 16, d = *u++ - 128, e = *v++ - 128;
        *rgb++ = clip((298 * c + 409 * e + 128) >> 8);
        *rgb++ = clip((298 * c - 100 * d - 208 * e + 128) >> 8);
        *rgb++ = clip((298 * c + 516 * d + 128) >> 8);
    }
}
