#include "train/forest.h"

#include "base/error.h"

/* NULL stands for zeros. Adding +0 changes no bit, except of -0; no sum here is -0, because every sum began at +0. */
static float *add(float *restrict left, const float *restrict right, size_t length)
{
    if (!left) return (float *)right;
    if (!right) return left;
    for (size_t k = 0; k < length; k++) left[k] += right[k];
    return left;
}

static bool are_brothers(const rws_subtree *left, const rws_subtree *right)
{
    return left->size == right->size && left->first + left->size == right->first && left->first % (2 * left->size) == 0;
}

void rws__forest_add(rws_forest *f, rws_subtree tree, size_t length)
{
    while (f->n && are_brothers(&f->list[f->n - 1], &tree)) {
        const rws_subtree *left = &f->list[--f->n];
        tree = (rws_subtree){left->first, 2 * left->size, add(left->sum, tree.sum, length)};
    }
    RWS_CHECK(f->n < RWS_MAX_FOREST);
    f->list[f->n++] = tree;
}

rws_forest rws__forest_of(int first, int end)
{
    rws_forest f = {0};
    for (int i = first; i < end; i++) rws__forest_add(&f, (rws_subtree){i, 1, NULL}, 0);
    return f;
}

float *rws__forest_sum(rws_forest *f, size_t length)
{
    float *sum = NULL;
    for (; f->n; f->n--) sum = add(f->list[f->n - 1].sum, sum, length);
    return sum;
}
