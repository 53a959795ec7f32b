/* transitive closure of a relation */
/* cudaperf: inout r[n*n] in 0..1 */
void reach(int *r, int n)
{
    for (int k = 0; k < n; k++)
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++)
                if (r[i * n + k] && r[k * n + j])
                    r[i * n + j] = 1;
}
