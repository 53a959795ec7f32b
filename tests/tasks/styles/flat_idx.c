void flat(const float *a, const float *bias, float *o, int rows, int cols) { for (int i = 0; i < rows * cols; i++) { int r = i / cols, c = i % cols; o[i] = a[r * cols + c] + bias[c]; } }
