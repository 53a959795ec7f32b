void deint(const short *lr, short *l, short *r, int frames) { for (int i = 0; i < frames; i++) { l[i] = lr[2 * i]; r[i] = lr[2 * i + 1]; } }
