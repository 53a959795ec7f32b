void weights(const unsigned char *code, int *w, int n)
{
    for (int i = 0; i < n; i++) {
        int v = 0;
        switch (code[i] % 4) {
        case 3: v += 100;
        case 2: v += 10;
        case 1: v += 1;
        }
        w[i] = v;
    }
}
