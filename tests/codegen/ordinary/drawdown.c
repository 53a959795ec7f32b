float max_drawdown(const float *p, int n)
{
    float peak = p[0], worst = 0;
    for (int i = 0; i < n; i++) {
        if (p[i] > peak)
            peak = p[i];
        float d = peak - p[i];
        if (d > worst)
            worst = d;
    }
    return worst;
}
