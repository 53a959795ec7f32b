/* cudaperf: in x[n] */
int find(int n, int wanted, const int *x)
{
    for (int i = 0; i < n; i++)
        if (x[i] == wanted)
            return i;
    return -1;
}
