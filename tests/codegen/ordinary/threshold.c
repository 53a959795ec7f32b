typedef unsigned char u8;
void threshold(u8 *img, int w, int h, u8 t)
{
    int i = 0;
    do {
        if (i >= w * h)
            break;
        img[i] = img[i] > t ? 255 : 0;
        i++;
    } while (1);
}
