enum op { ADD, SUB, MUL };
void apply(enum op o, const int *a, const int *b, int *c, int n)
{
    for (int i = 0; i < n; i++)
        switch (o) {
        case ADD: c[i] = a[i] + b[i]; break;
        case SUB: c[i] = a[i] - b[i]; break;
        default: c[i] = a[i] * b[i];
        }
}
