#include "a.h"
#define TWICE(x) ((x) * 2)

struct pair {
    int left, (*right)(int);
};
typedef enum color { RED, GREEN = 2 } color;
static int declared(int n);

static int declared(int n)
{
    int i, total = 0, *p = &total;
    for (i = 0; i < n; i++) {
        if (i % 2 == 0)
            continue;
        else if (check(i, n) && n > 3)
            total += TWICE(i);
    }
    do {
        *p = obj->run(p, (struct pair){1, 0});
    } while (total > 10);
    switch (n) {
    case 1:
        p[0] = n ? one() : two();
        break;
    default:
        goto done;
    }
    while (next())
        --total;
done:
    return total;
}
