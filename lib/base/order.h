/* order.h - orders for qsort. */
#ifndef RWS_BASE_ORDER_H
#define RWS_BASE_ORDER_H

/* Numbers of type double and int, ascending. */
static inline int rws__order_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline int rws__order_ints(const void *a, const void *b)
{
    const int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

#endif
