typedef struct { double w, x, y, z; } Quat;
static Quat mul(Quat a, Quat b)
{
    Quat r = {.w = a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z,
              .x = a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
              .y = a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x,
              .z = a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w};
    return r;
}
void rotate_all(Quat *q, int n, Quat by)
{
    for (int i = 0; i < n; i++)
        q[i] = mul(by, q[i]);
}
