void copy_down(short *out, const short *in, int n) { for (int i = n; i-- > 0;) out[i] = in[i]; }
