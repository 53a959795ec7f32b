void grade(const int *score, int *out, int n)
{
    for (int i = 0; i < n; i++) {
        switch (score[i] / 10) {
        default: out[i] = -1; break;
        case 10:
        case 9: out[i] = 4; break;
        case 8: out[i] = 3; break;
        case 7: out[i] = 2;
        case 6: out[i] += 1;
        }
    }
}
