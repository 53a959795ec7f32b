int max_subarray(const int *v, int n)
{
    int best = v[0], cur = 0;
    for (int i = 0; i < n; i++) {
        cur = cur > 0 ? cur + v[i] : v[i];
        if (cur > best)
            best = cur;
    }
    return best;
}
