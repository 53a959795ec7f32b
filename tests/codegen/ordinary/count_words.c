int count_words(const char *s, int n)
{
    int words = 0, in_word = 0;
    for (int i = 0; i < n; i++) {
        if (s[i] == ' ' || s[i] == '\n' || s[i] == '\t')
            in_word = 0;
        else if (!in_word) {
            in_word = 1;
            words++;
        }
    }
    return words;
}
