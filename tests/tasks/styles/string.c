#include <string.h>
int count_char(const char *s, char c) { int k = 0; for (size_t i = 0; i < strlen(s); i++) k += s[i] == c; return k; }
