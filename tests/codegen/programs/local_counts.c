/* a histogram in a local array, then its maximum */
/* cudaperf: in data[n]; out mode[1] */
void local_counts(const unsigned char *data, int n, int *mode)
{
    int count[256] = {0};
    for (int i = 0; i < n; i++)
        count[data[i]]++;
    int best = -1, where = 0;
    for (int b = 0; b < 256; b++)
        if (count[b] > best) {
            best = count[b];
            where = b;
        }
    mode[0] = where;
}
