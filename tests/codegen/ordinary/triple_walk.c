void add3(const double *a, const double *b, double *c, long n)
{
    const double *pa = a, *pb = b;
    double *pc = c;
    for (long k = n; k > 0; --k)
        *pc++ = *pa++ + *pb++;
}
