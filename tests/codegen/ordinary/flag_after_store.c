int flag_after_store(const int *v, int n, int *out)
{
    int any = v[0] > 3;
    out[0] = 5;
    for (int i = 0; i < n; i++)
        if (v[i] < 0)
            any = 1;
    return any;
}
