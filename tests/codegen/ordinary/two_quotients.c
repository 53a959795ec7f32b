void two_quotients(int *b, int m)
{
    int x = 1;
    int half = (m + 1) / 2;
    for (int i = 0; i < half; i++)
        b[((x - 1) % 1000) & 7] += i;
}
