typedef double mat3[3][3];
void tr(mat3 a, const double b[3][3], double *trace) { *trace = 0; for (int i = 0; i < 3; i++) { *trace += a[i][i] * b[i][i]; } }
