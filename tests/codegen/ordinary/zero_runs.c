int longest_run(const int *v, int n)
{
    int best = 0, run = 0;
    for (int i = 0; i < n; i++) {
        if (v[i] == 0) {
            run++;
            if (run > best)
                best = run;
        } else
            run = 0;
    }
    return best;
}
