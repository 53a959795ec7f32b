typedef struct { int n; float k; } Params;
void go(Params p, const float *x, float *y) { for (int i = 0; i < p.n; i++) y[i] = p.k * x[i]; }
