typedef struct { int key; float val; } Item;
void reverse_items(Item *a, int n)
{
    for (int i = 0, j = n - 1; i < j; i++, j--) {
        Item t = a[i];
        a[i] = a[j];
        a[j] = t;
    }
}
