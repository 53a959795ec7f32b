void diff(const int *a, int *d, int n)
{
    const int *prev = a, *cur = a + 1;
    while (cur < a + n) {
        *d++ = *cur++ / 2 - *prev++ / 2;
    }
}
