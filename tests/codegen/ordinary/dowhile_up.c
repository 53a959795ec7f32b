void fill_squares(int *out, int n)
{
    int i = 0;
    if (n <= 0)
        return;
    do {
        out[i] = i * i % 1000;
    } while (++i < n);
}
