void two_quotients(int *b, int m, int k)
{
    int half = (m + 1) / 2;
    for (int i = 0; i < half; i++)
        b[((k - 1) % 1000) & 7] += i;
}
