"""What is refused without being run: one clear error each, with the line and the remedy; and which entry is taken."""

from __future__ import annotations

from pathlib import Path

import pytest

from cudaperf_agent.errors import InputRefused, UsageError
from cudaperf_agent.tasks.parse import load_task

SAXPY = "void saxpy(int n, float a, const float *x, float *y) { for (int i = 0; i < n; i++) y[i] += a * x[i]; }\n"


def refused(source: str, **more: object) -> InputRefused:
    with pytest.raises(InputRefused) as caught:
        load_task(source=source, path=Path("f.c"), **more)  # type: ignore[arg-type]
    error = caught.value
    assert error.where is not None
    assert error.where.startswith("f.c")
    assert error.hint
    return error


@pytest.mark.parametrize(
    ("source", "where", "says"),
    [
        ("", "f.c:1", "empty"),
        ("  \n\n", "f.c:1", "empty"),
        ("int\n\0x;", "f.c:2", "not a text file"),
        ("/* only a comment */\n", "f.c:1", "no function"),
        ("int f(int);\n", "f.c:1", "no function"),
        ("void f(float **rows, int n) { rows[0][n] = 1; }", "f.c:1", "pointer to a pointer"),
        ("struct s { float *p; };\nvoid f(struct s *v) { v->p[0] = 1; }", "f.c:1", "is a pointer"),
        ("struct s { float *p; };\nvoid f(struct s v) { v.p[0] = 1; }", "f.c:1", "is a pointer"),
        ("void f(void *p, int n) { ((int *)p)[n] = 1; }", "f.c:1", "pointer to void"),
        ("void f(int n, ...) { }", "f.c:1", "variable number"),
        ("void f(int (*g)(int), int *x) { *x = g(*x); }", "f.c:1", "pointer"),
        (
            "static int g(int v) { return v; }\nvoid f(int *x) {\n int (*h)(int) = g;\n *x = h(*x); }",
            "f.c:4",
            "pointer",
        ),
        ('void f(int *x) {\n __asm__("nop"); *x = 1; }', "f.c:2", "assembly"),
        ("void f(volatile int *x) { *x = 1; }", "f.c:1", "volatile"),
        ("void f(int *x) {\n volatile int t = 1; *x = t; }", "f.c:2", "volatile"),
        ("static int calls;\nvoid f(int *x) {\n calls++; *x = 1; }", "f.c:3", "`calls`"),
        ("static int t[4];\nvoid f(int *x) {\n t[1] = *x; }", "f.c:3", "`t`"),
        ("void f(int *x) {\n static int calls; calls += 1; *x = calls; }", "f.c:2", "`calls`"),
        ("#include <string.h>\nstatic int t[4];\nvoid f(int *x) { memcpy(t, x, 16); }", "f.c:3", "`t`"),
        ("static int t;\nstatic void g(void) { t = 2; }\nvoid f(int *x) { g(); *x = t; }", "f.c:2", "`t`"),
        ("static int *t;\nvoid f(int *x) { *x = t[0]; }", "f.c:2", "file scope"),
        ('static const char *const t[] = {"a"};\nvoid f(int *x) { *x = t[0][0]; }', "f.c:2", "`t` holds pointers"),
        ("void new(int *x) { *x = 1; }", "f.c:1", "keyword of C++"),
        ("\ntypedef struct { float x, y; } float2;\nvoid f(float2 *x) { x->x = 1; }", "f.c:2", "type `float2`"),
        (
            "struct int3 { int x, y, z; };\ntypedef struct { struct int3 a; } S;\nvoid f(S *x) { x->a.x = 1; }",
            "f.c:1",
            "type `int3`",
        ),
        ("\nvoid norm(int *x) { *x = 1; }", "f.c:2", "`norm`"),
        ("void time(int *x) { *x = 1; }", "f.c:1", "`time`"),
        ("void write(int *x) { *x = 1; }", "f.c:1", "would call this function instead"),
        ('#include <stdio.h>\nvoid f(int *x) {\n\n printf("%d", *x); }', "f.c:4", "`printf`"),
        ("#include <stdio.h>\nstatic void g(int v) { putchar(v); }\nvoid f(int *x) { g(*x); }", "f.c:2", "`putchar`"),
        ("#include <stdlib.h>\nvoid f(int *x) { *x = rand(); }", "f.c:2", "`rand`"),
        ("#include <time.h>\nvoid f(long *x) { *x = time(0); }", "f.c:2", "`time`"),
        ("#include <stdlib.h>\nvoid f(int *x) { if (*x) exit(1); }", "f.c:2", "`exit`"),
        ("#include <unistd.h>\nvoid f(int *x) { *x = getuid(); }", "f.c:2", "`getuid`"),
        ("int g(int);\nvoid f(int *x) { *x = g(*x); }", "f.c:2", "declared but not defined"),
        ("void f(int *x) { *x = g(*x); }", "f.c:1", "undeclared function"),
        ("void f(int *x) { *x = N; }", "f.c:1", "undeclared identifier"),
        ('#include "nowhere.h"\nvoid f(int *x) { *x = 1; }', "f.c:1", "file not found"),
        ("int *f(int *x) { return x; }", "f.c:1", "returns a pointer"),
        ("typedef struct { int a; } S;\nS f(int *x) { S s = {*x}; return s; }", "f.c:2", "returns a struct"),
        ("union u { int i; float f; };\nvoid f(union u *x) { x->i = 1; }", "f.c:2", "union"),
        ("struct b { int i : 3; };\nvoid f(struct b *x) { x->i = 1; }", "f.c:2", "bit-field"),
        ("void f(float _Complex *x) { *x = 1; }", "f.c:1", "complex"),
        ("void f(int *new) { *new = 1; }", "f.c:1", "keyword of C++"),
        ("int sum(const int *x, int n) {\n return n ? x[0] + sum(x + 1, n - 1) : 0; }", "f.c:2", "calls itself"),
        ("static void f(int *x) { *x = 1; }", "f.c:1", "static"),
        (SAXPY + "void other(int *x) { *x = 1; }", "f.c:1", "2 functions"),
        ("int main(void) { return 0; }", "f.c:1", "nothing says what it reads"),
        ("\n#include <tgmath.h>\nvoid f(float *x) { *x = sqrt(*x); }", "f.c:2", "tgmath"),
        ("__int128 f(int *x) { return *x; }", "f.c:1", "128"),
    ],
)
def test_refused_with_line_and_remedy(source: str, where: str, says: str) -> None:
    error = refused(source)
    assert error.where is not None
    assert (error.where + ":").startswith(f"{where}:")
    assert says in error.message


def test_a_file_that_is_too_long() -> None:
    assert "bytes" in refused("int x;\n" * 400_000).message


def test_a_binary_file(tmp_path: Path) -> None:
    path = tmp_path / "a.o"
    path.write_bytes(b"\x7fELF\x02\x01\0\0\xff")
    with pytest.raises(InputRefused, match="not a text file"):
        load_task(path)
    path.write_bytes("/* caf\xe9 */\nint f(int *x) { return *x; }".encode("latin-1"))
    with pytest.raises(InputRefused, match="UTF-8"):
        load_task(path)


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        load_task(tmp_path / "none.c")
    with pytest.raises(UsageError, match="neither"):
        load_task()


def test_asked_for_entries() -> None:
    source = SAXPY + "void other(int *x) { *x = 1; }"
    assert load_task(source=source, entry="other").name == "other"
    assert load_task(source=source, entry="other").kept_functions == ("saxpy",)
    error = refused(source, entry="saxpi")
    assert error.hint is not None
    assert "Did you mean --entry saxpy?" in error.hint


def test_a_marked_entry() -> None:
    source = SAXPY + "/* cudaperf: entry */\nvoid other(int *x) { *x = 1; }\nvoid third(int *x) { *x = 2; }"
    assert load_task(source=source).name == "other"
    assert load_task(source=source, entry="saxpy").name == "saxpy"
    twice = source.replace("void third", "/* cudaperf: entry */ void third")
    assert "marked as entry: other (line 3), third (line 4)" in refused(twice).message


def test_the_function_that_no_other_calls() -> None:
    source = (
        "float sq(float v) { return v * v; }\nvoid f(float *x, int n) { for (int i = 0; i < n; i++) x[i] = sq(x[i]); }"
    )
    task = load_task(source=source)
    assert task.name == "f"
    assert task.kept_functions == ()
    both = source + "\nfloat cube(float v) { return v * sq(v); }"
    assert load_task(source=both, entry="f").kept_functions == ("sq", "cube")


def test_a_comment_of_another_function_is_not_the_entrys() -> None:
    source = (
        "/* cudaperf: in x[2*n] */\nvoid g(const float *x, int n) { (void)x; (void)n; }\n"
        "/* cudaperf: entry; in x[3*n] */\nfloat f(const float *x, int n) { return x[n]; }\n"
    )
    extents = {p.name: p.extent.expr for p in load_task(source=source).buffers if p.extent}
    assert extents == {"x": "3*n"}


MAIN = (
    '#include <stdio.h>\nint main(void) { int n; if (scanf("%d", &n) != 1) return 1; '
    'printf("%d\\n", n * 2); return 0; }\n'
)


def test_programs(tmp_path: Path) -> None:
    error = refused(SAXPY + MAIN)
    assert error.hint is not None
    assert "cudaperf: stdin" in error.hint
    assert "--stdin FILE" in error.hint
    assert "--entry saxpy" in error.hint
    assert load_task(source=SAXPY + MAIN, entry="saxpy").mode == "function"
    task = load_task(source=f"// cudaperf: stdin n in 0..9\n{MAIN}")
    assert (task.mode, task.stdin[0].name) == ("program", "n")
    example = tmp_path / "in.txt"
    example.write_text("3\n")
    first = load_task(source=MAIN, stdin_files=[example])
    assert first.stdin_files == (str(example),)
    example.write_text("4\n")
    assert load_task(source=MAIN, stdin_files=[example]).digest != first.digest
    with pytest.raises(UsageError):
        load_task(source=MAIN, stdin_files=[tmp_path / "none"])


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("// cudaperf: stdin n in 0..9, n in 0..3\n" + MAIN, "read twice"),
        ("// cudaperf: stdin a[n] in 0..9, n in 0..3\n" + MAIN, "unknown name `n`"),
        ("// cudaperf: stdin n\n" + MAIN, "not a clause"),
        ("// cudaperf: stdin out n[3] in 0..3\n" + MAIN, "not an item"),
        ("// cudaperf: stdin n in 0..9; in x[n]\n" + MAIN, "no parameters"),
        (
            '// cudaperf: stdin n in 0..9\n#include <stdio.h>\nint main(void) { return fopen("x", "r") != 0; }',
            "`fopen`",
        ),
        ("// cudaperf: stdin n in 0..9\nint main(int argc, char **argv) { return argc; }", "command line"),
    ],
)
def test_refused_programs(source: str, says: str) -> None:
    assert says in refused(source).message


def test_headers_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "vec.h").write_text(
        "#include <stdint.h>\n#define DIM 3\ntypedef struct { float v[DIM]; uint8_t tag; } Vec;\n"
        "static inline float dot(const Vec *a, const Vec *b) { float s = 0; for (int i = 0; i < DIM; i++) "
        "s += a->v[i] * b->v[i]; return s; }\n"
    )
    path = tmp_path / "f.c"
    path.write_text(
        '#include "vec.h"\nvoid dots(const Vec *a, const Vec *b, float *o, int n)\n'
        "{ for (int i = 0; i < n; i++) o[i] = dot(a + i, &b[i]) * SCALE; }\n"
    )
    task = load_task(path, include_dirs=[tmp_path / "inc"], defines=["SCALE=2.0f"])
    assert [(p.name, p.role.value, p.extent.expr if p.extent else None) for p in task.buffers] == [
        ("a", "in", "n"),
        ("b", "in", "n"),
        ("o", "out", "n"),
    ]
    assert "#include <stdint.h>" in task.type_declarations
    assert "#define DIM 3" in task.type_declarations
    assert task.type_declarations.rstrip().endswith("Vec;")
    with pytest.raises(InputRefused, match=r"vec\.h"):
        load_task(path)


def test_type_declarations_are_valid_c_and_cpp(tmp_path: Path) -> None:
    import subprocess

    source = """#include <stdbool.h>
#define SIDE (2 + 2)
enum color { RED, GREEN };
typedef double real;
struct inner { real v[SIDE]; enum color c; bool on; };
typedef struct outer { struct inner in; int k; } outer_t;
struct unrelated { int z; };
static const struct inner table[2];
void f(outer_t *o, struct inner i, int n) { o[n - 1].in = i; o[0].k = table[0].on; }
"""
    task = load_task(source=source)
    assert "unrelated" not in task.type_declarations
    for suffix, compiler in ((".c", "gcc"), (".cpp", "g++")):
        parameters = ", ".join(p.declaration for p in task.parameters)
        path = tmp_path / f"t{suffix}"
        path.write_text(f"{task.type_declarations}\nvoid f({parameters});\n")
        subprocess.run([compiler, "-Wall", "-Werror", "-fsyntax-only", str(path)], check=True, timeout=60)
