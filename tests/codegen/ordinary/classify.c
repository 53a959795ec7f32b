enum kind { BLANK, DIGIT, LETTER, OTHER };
void classify(const char *text, int n, int *kinds)
{
    for (int i = 0; i < n; i++) {
        char c = text[i];
        switch (c) {
        case ' ':
        case '\t':
        case '\n':
            kinds[i] = BLANK;
            break;
        case '0': case '1': case '2': case '3': case '4':
        case '5': case '6': case '7': case '8': case '9':
            kinds[i] = DIGIT;
            break;
        default:
            if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
                kinds[i] = LETTER;
            else
                kinds[i] = OTHER;
        }
    }
}
