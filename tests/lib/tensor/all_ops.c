/* all_ops.c - the ops of all folders. */
#include "all_ops.h"

#include "dist/dist.h"
#include "nn/layer.h"
#include "models/picture.h"

#include <string.h>

const rws_op *ops[MAX_OPS];
int           n_ops;

void gather_ops(void)
{
    const rws_op *const *const tables[] = {rws_tensor_ops, rws_dist_ops, rws_nn_ops, rws_picture_ops};
    for (int r = 0; r < COUNT(tables); r++)
        for (int i = 0; tables[r][i] && n_ops < MAX_OPS; i++) ops[n_ops++] = tables[r][i];
}

const rws_op *op_named(const char *name)
{
    for (int i = 0; i < n_ops; i++)
        if (strcmp(ops[i]->name, name) == 0) return ops[i];
    fail_msg("no folder has an op %s", name);
    return NULL;
}
