double total(const double *v, long n) { const double *end = v + n; double s = 0; for (const double *p = v; p != end; ++p) s += *p; return s; }
