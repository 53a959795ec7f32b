#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Rarely written C: each function must be read, or refused, without a stumble. */

void with_goto(int *a, int n) { int i = 0; again: if (i >= n) return; a[i++] = 1; goto again; }

void forever(int *a, int n) { int i = 0; for (;;) { if (i == n) break; a[i] = i; ++i; } }

void duff(char *to, const char *from, int count)
{
    int n = (count + 7) / 8;
    switch (count % 8) {
    case 0: do { *to++ = *from++;
    case 7:      *to++ = *from++;
    case 6:      *to++ = *from++;
    case 5:      *to++ = *from++;
    case 4:      *to++ = *from++;
    case 3:      *to++ = *from++;
    case 2:      *to++ = *from++;
    case 1:      *to++ = *from++;
            } while (--n > 0);
    }
}

void statement_expression(int *a, int n) { for (int i = 0; i < n; i++) a[i] = ({ int t = i * 2; t + 1; }); }

void generic(float *a, int n) { for (int i = 0; i < n; i++) a[i] = _Generic(a[i], float: 1.0f, default: 2.0f); }

void comma(int *a, int n) { int i, j; for (i = 0, j = n - 1; i < j; i++, j--) { int t = a[i]; a[i] = a[j]; a[j] = t; } }

void punned(const float *x, uint32_t *bits, int n) { for (int i = 0; i < n; i++) memcpy(&bits[i], &x[i], 4); }

void union_pun(const float *x, uint32_t *bits, int n)
{
    for (int i = 0; i < n; i++) { union { float f; uint32_t u; } p; p.f = x[i]; bits[i] = p.u; }
}

void cast_pun(const float *x, uint32_t *bits, int n) { for (int i = 0; i < n; i++) bits[i] = *(const uint32_t *)(x + i); }

void bytewise(old_style) int *old_style; { old_style[0] = 1; }

void reversed_subscript(int *a, int n) { for (int i = 0; i < n; i++) i[a] = i; }

void local_vla(const int *a, int *o, int n) { int t[n]; for (int i = 0; i < n; i++) t[i] = a[i]; for (int i = 0; i < n; i++) o[i] = t[n - 1 - i]; }

void sized(int *o) { static const int t[] = {1, 2, 3, 4}; for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) o[i] = t[i]; }

static int gcd(int a, int b) { return b ? gcd(b, a % b) : a; }
void gcds(const int *a, const int *b, int *o, int n) { for (int i = 0; i < n; i++) o[i] = gcd(a[i], b[i]); }

void asserted(int *a, int n) { assert(n >= 0); for (int i = 0; i < n; i++) a[i] = 0; }

int conditional_pointer(const int *a, const int *b, int n, int which) { const int *p = which ? a : b; int s = 0; for (int i = 0; i < n; i++) s += p[i]; return s; }

void do_once(int *a, int n) { for (int i = 0; i < n; i++) do { if (a[i] < 0) break; a[i] = -a[i]; } while (0); }

void chained(int *a, int *b, int n) { for (int i = 0; i < n; i++) a[i] = b[i] = i; }

void nothing(int *unused, int n) { (void)unused; (void)n; }

float rows_of_pointers(const float *a, const float *b, int n) { const float *rows[2] = {a, b}; float s = 0; for (int i = 0; i < n; i++) s += rows[i & 1][i]; return s; }

struct view { const float *p; int n; };
float viewed(const float *a, int n) { struct view v; v.p = a; v.n = n; float s = 0; for (int i = 0; i < v.n; i++) s += v.p[i]; return s; }

static void bump(int *i) { *i += 3; }
void by_address(float *a, int n) { for (int i = 0; i < n;) { a[i] = 1; bump(&i); } }

void case_carry(int *a, int k, int n) { int i = n; switch (k) { case 1: i = 0; break; case 2: a[i] = 4; break; default: break; } }

static const float *pick(const float *a, const float *b, int n) { for (int i = 0; i < n; i++) if (a[i] > b[i]) return a; return b; }
float picked(const float *a, const float *b, int n) { const float *p = pick(a, b, n); return p[n]; }

void reshaped(const float *a, float *b, int n, int m) { const float (*A)[m] = (const float (*)[m])a; float (*B)[m] = (void *)b; for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) B[i][j] = A[i][j]; }

void hidden_if(int *a, int n) { for (int i = 0; i < n; i++) (void)({ if (i > 2) a[i] = 1; 0; }); }

int hidden_loop(const int *a, int n) { int i = 0; (void)({ while (i < n) i++; 0; }); return a[i - 1]; }

typedef struct { float x, y; } vec2;
void literals(const float *a, vec2 *o, int n) { for (int i = 0; i < n; i++) o[i] = (vec2){a[i], .y = a[i] * 2}; }
