double sum_range(const double *first, int n)
{
    const double *last = first + n;
    double s = 0.0;
    while (first < last)
        s += *first++;
    return s;
}
