typedef struct { double re, im; } Complex;
void conj_all(const Complex *in, Complex *out, int n) { for (int i = 0; i < n; i++) { out[i].re = in[i].re; out[i].im = -in[i].im; } }
