void prefix_xor(unsigned *a, int n)
{
    for (int i = 1; i < n; i++)
        a[i] ^= a[i - 1];
}
