void invert_rgb(unsigned char *img, int w, int h)
{
    unsigned char *p = img;
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++)
            for (int c = 0; c < 3; c++) {
                *p = (unsigned char)(255 - *p);
                p++;
            }
}
