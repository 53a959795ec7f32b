/* cudaperf: index bin[n] in 0..bins-1; in weight[n]; inout total[bins] */
void weighted_bins(int n, int bins, const int *bin, const float *weight, float *total)
{
    for (int i = 0; i < n; i++)
        total[bin[i]] += weight[i];
}
