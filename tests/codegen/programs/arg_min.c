/* position of the smallest element, the last of equals; -1 if there is none */
long arg_min(const float *x, long n)
{
    long where = -1;
    float least = 3.0e38f;
    for (long i = 0; i < n; i++)
        if (x[i] <= least) {
            least = x[i];
            where = i;
        }
    return where;
}
