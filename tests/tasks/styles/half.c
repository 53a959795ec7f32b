typedef struct { double re, im; } Complex;
void set_re(Complex *out, int n) { for (int i = 0; i < n; i++) out[i].re = 1.0; }
