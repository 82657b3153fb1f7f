/* record.c - what a program asks for becomes nodes; nothing is computed yet. */
#include "engine/internal.h"

#include <stdlib.h>
#include <string.h>

void *rws__grow_to(rws_engine *e, void *array, uint32_t *capacity, uint64_t n, size_t item)
{
    uint64_t more = *capacity ? *capacity : 64;
    while (more < n) more *= 2;
    array = more <= UINT32_MAX ? realloc(array, more * item) : NULL;
    if (!array) rws__engine_no_memory(e);
    *capacity = (uint32_t)more;
    e->n_allocations++;
    return array;
}

void *rws__grow(rws_engine *e, void *array, uint32_t *capacity, size_t item)
{
    return rws__grow_to(e, array, capacity, *capacity + UINT64_C(1), item);
}

/* ---- library calls of a program */

#define NEVER_ENDS                                                                                                   \
    "Either the branching never ends with a probability above 0, or an untrained guide goes on for too long: bound " \
    "the depth in guide and model alike."

#define MARGIN (16 << 10) /* bytes of stack that the library itself may need */

static _Noreturn void too_many_operations(rws_path *path)
{
    rws__path_mistake(path,
                      "one execution of the program makes more than %llu library calls. " NEVER_ENDS
                      " A larger `max_operations` allows more.",
                      (unsigned long long)path->e->limits.max_operations);
}

_Noreturn void rws__path_overflows(rws_path *path)
{
    if (path != path->e->running)
        rws__path_mistake(
            path,
            "%s was given a path that does not run: it stands in a loop, or its step has ended. A step uses the "
            "path that it is given.",
            path->function);
    rws__path_mistake(path,
                      "the stack of %zu KB runs over, by large arrays on it or by deep recursion. " NEVER_ENDS
                      " A larger `stack_bytes` allows more.",
                      path->e->limits.stack_bytes >> 10);
}

/* Every library call of a program begins with this function. */
static inline void enter(rws_path *path, const char *function)
{
    path->function = function;
    if ((const char *)__builtin_frame_address(0) < path->stack_end + MARGIN) rws__path_overflows(path);
    if (++path->operations > path->e->limits.max_operations) too_many_operations(path);
}

void rws__enter(rws_path *path, const char *function)
{
    enter(path, function);
}

bool rws__replayed_as(rws_path *path, rws_var *v, const char *function)
{
    if (path->depth == 0) {
        enter(path, function);
        if (path->cursor < path->n_log) {
            *v = path_var(path, path->log[path->cursor++]);
            return true;
        }
    }
    path->depth++;
    return false;
}

rws_var rws__returns(rws_path *path, rws_var v)
{
    if (--path->depth == 0) {
        *RWS_PUSH(path->e, path->log, path->n_log, path->log_capacity) = v.id;
        path->cursor = path->n_log;
    }
    return v;
}

static _Noreturn void no_value(const rws_path *path, rws_var v, const char *function)
{
    rws__path_mistake(
        (rws_path *)path, "%s was given %s", function,
        v.id ? path->loop
                   ? "a value of another step or path; what a step needs of the steps before must be handed on."
                   : "a value that does not belong to this path; a program must not keep values in static memory "
                     "or in the model's state."
             : "no value (an rws_var that is all zeros).");
}

bool rws__path_has(const rws_path *path, rws_var v)
{
    if (v.id == 0 || v.id >= path->e->n_nodes) return false;
    if (v.stamp == path->stamp) return true;
    for (const loop *l = path->loop; l; l = l->outer)
        if (v.stamp == l->stamp) return true;
    return false;
}

void rws__path_expect(const rws_path *path, rws_var v, const char *function)
{
    if (!rws__path_has(path, v)) no_value(path, v, path->depth ? path->function : function);
}

static _Noreturn void too_many_nodes(rws_engine *e)
{
    char text[240];
    rws__engine_fail(
        e, RWS_BAD_INPUT,
        "The pass records more than %llu operations%s%s. Do its programs end? An untrained guide may loop or recurse "
        "without end: start its logits so that it ends soon (rws_layer_bias), or limit the depth. A larger "
        "`max_nodes` allows more.",
        (unsigned long long)e->limits.max_nodes, e->running ? ", the last one in " : "",
        e->running ? rws__path_where(e->running, text) : "");
}

/* Resets slot nodes[n_nodes]; the caller commits it by n_nodes++. Written field by field: most of a node is inputs, and
 * most nodes have few. */
static node *node_draft(rws_engine *e, uint32_t level, int dim, node_state state)
{
    if (e->n_nodes == e->node_capacity) {
        if (e->n_nodes >= e->limits.max_nodes) too_many_nodes(e);
        e->nodes = rws__grow(e, e->nodes, &e->node_capacity, sizeof *e->nodes);
    }
    node *n = &e->nodes[e->n_nodes];
    n->op = NULL;
    n->n_in = n->depends = 0;
    n->state = state;
    n->level = n->all = n->rows = level;
    n->dim = dim;
    n->wave = n->first_live = n->more = n->needs = 0;
    n->origin = e->n_nodes;
    n->reader = NONE;
    n->call = n->tangent = NONE;
    n->site = NO_SITE;
    n->side = RWS_SIDE_NONE;
    n->seen = false;
    n->value = n->saved = NULL;
    n->param = NULL;
    return n;
}

uint32_t rws__node_leaf(rws_engine *e, uint32_t level, int dim, float *value)
{
    node_draft(e, level, dim, DONE)->value = value;
    return e->n_nodes++;
}

uint32_t rws__node_more(rws_engine *e, uint32_t id)
{
    node *n = node_draft(e, ROOT, 1, WAITING), *first = &e->nodes[id];
    *n = *first;
    n->value = n->saved = NULL;
    n->call = NONE;
    first->more = e->n_nodes;
    return e->n_nodes++;
}

static uint64_t hash_floats(float a, float b)
{
    uint32_t u, v;
    memcpy(&u, &a, sizeof u);
    memcpy(&v, &b, sizeof v);
    return (uint64_t)u << 32 | v;
}

/* Calls are executed in the order of hashes, which must therefore be the same in every process: they are made of names,
 * not of addresses. */
uint64_t rws__hash_name(uint64_t h, const char *name)
{
    for (; *name; name++) h = (h ^ (uint64_t)(unsigned char)*name) * 0x100000001b3u;
    return h;
}

static uint64_t hash_op(rws_engine *e, const rws_op *op)
{
    op_hash *known = &e->op_hashes[(uintptr_t)op / sizeof *op % N_OP_HASHES];
    if (known->op != op) *known = (op_hash){op, rws__hash_name(0, op->name)};
    return known->hash;
}

uint32_t rws__node_new(rws_engine *e, const rws_op *op, uint32_t level, int dim, uint8_t depends)
{
    node *n = node_draft(e, level, dim, WAITING);
    n->op = op;
    n->args = (rws_op_args){0};
    n->depends = depends;
    n->call_key = hash_word(hash_op(e, op), e->n_nodes); /* it has a call to itself */
    return e->n_nodes++;
}

/* ---- nodes that may be recorded again. A node at a level above the path's own may have been recorded by another path below
 * that level; a product may have been recorded by another child of the same parent. They are found by what a program gives:
 * an op, its arguments and inputs. */

/* Differs for most operations; those that agree are told apart by same_operation. */
static uint64_t hash_operation(const rws_op *op, const rws_op_args *a, const uint32_t *in, int n_in)
{
    uint64_t h = ((uintptr_t)op >> 3) * 0x9e3779b97f4a7c15u + ((uintptr_t)a->w >> 3) * 0xc2b2ae3d27d4eb4fu;
    h += hash_floats(a->s, a->t) * 0xff51afd7ed558ccdu + ((uint64_t)(uint32_t)a->offset << 32 | (uint32_t)a->k);
    for (int i = 0; i < n_in; i++) h = (h ^ in[i]) * 0x9e3779b97f4a7c15u;
    return hash_word(h >> 32, h);
}

static bool same_operation(const node *n, const rws_op *op, const rws_op_args *a, const uint32_t *in, int n_in, int dim)
{
    if (n->op != op || n->dim != dim || n->n_in != n_in) return false;
    if (memcmp(&n->args, a, offsetof(rws_op_args, tangent)) != 0) return false;
    if (n->args.tangent != a->tangent || n->args.stop != a->stop || n->args.frozen != a->frozen) return false;
    for (int i = 0; i < n_in; i++)
        if (n->in[i] != in[i]) return false;
    return true;
}

static void grow_shared(rws_engine *e)
{
    const known_node *old = e->shared;
    const uint32_t    old_capacity = e->shared_capacity, capacity = old_capacity ? 2 * old_capacity : 256;
    known_node       *table = calloc(capacity, sizeof *table);
    if (!table) rws__engine_no_memory(e);
    e->shared = table;
    e->shared_capacity = capacity;
    e->n_allocations++;
    for (uint32_t i = 0; i < old_capacity; i++) {
        if (old[i].pass != e->pass_number) continue;
        const node *n = &e->nodes[old[i].node];
        uint32_t    at = (uint32_t)hash_operation(n->op, &n->args, n->in, n->n_in) & (e->shared_capacity - 1);
        while (e->shared[at].pass) at = (at + 1) & (e->shared_capacity - 1);
        e->shared[at] = old[i];
    }
    free((void *)old);
}

/* The slot of an operation: it is free unless it was recorded before. */
static known_node *find_shared(rws_engine *e, const rws_op *op, const rws_op_args *a, const uint32_t *in, int n_in,
                               int dim)
{
    if (4 * e->n_shared >= 3 * e->shared_capacity) grow_shared(e);
    const uint64_t h = hash_operation(op, a, in, n_in);
    for (uint32_t at = (uint32_t)h & (e->shared_capacity - 1);; at = (at + 1) & (e->shared_capacity - 1)) {
        known_node *slot = &e->shared[at];
        if (slot->pass != e->pass_number) {
            slot->tag = h >> 40 & 0xffffff;
            return slot;
        }
        if (slot->tag == (h >> 40 & 0xffffff) && same_operation(&e->nodes[slot->node], op, a, in, n_in, dim))
            return slot;
    }
}

/* Enters the node that is recorded next in a free slot. */
static void share(rws_engine *e, known_node *slot)
{
    e->n_shared++;
    slot->node = e->n_nodes;
    slot->pass = e->pass_number;
}

/* Whether an operation of a path at level `at` may have been recorded by another path. */
static bool may_be_shared(const rws_engine *e, const rws_op *op, const rws_op_args *a, const uint32_t *in, int n_in,
                          uint32_t at)
{
    bool above = at != ROOT;
    for (int i = 0; i < n_in && !a->w; i++) above &= e->nodes[in[i]].level != at;
    return !e->pass.scalar && !op->local && (above || a->w);
}

static bool is_seen(const rws_engine *e, const uint32_t *in, int n_in)
{
    bool seen = false;
    for (int i = 0; i < n_in; i++) seen |= e->nodes[in[i]].seen;
    return seen;
}

uint32_t rws__node_op(rws_engine *e, const rws_op *op, rws_op_args args, const uint32_t *in, int n_in, int dim,
                      uint32_t at, unsigned frozen)
{
    RWS_CHECK(n_in <= RWS_OP_INPUTS && dim > 0);
    args.frozen = (uint8_t)frozen;
    known_node *slot = may_be_shared(e, op, &args, in, n_in, at) ? find_shared(e, op, &args, in, n_in, dim) : NULL;
    if (slot && slot->pass == e->pass_number) {
        node *known = &e->nodes[slot->node];
        if (known->seen && !is_seen(e, in, n_in)) known->seen = false; /* an input was drawn since: seen.c */
        return slot->node;
    }
    node    *n = node_draft(e, op->local ? at : ROOT, dim, WAITING);
    uint64_t h = hash_word(hash_op(e, op), (uint64_t)(uint32_t)dim << 32 | (uint32_t)n_in);
    unsigned depends = 0;
    uint32_t needs = 0;
    if (args.w) h = hash_word(h, args.w->offset + 1), depends |= args.tangent ? 0 : 1u << args.w->group;
    if (args.b) h = hash_word(h, args.b->offset + 2), depends |= args.tangent ? 0 : 1u << args.b->group;
    h = hash_word(h, (uint64_t)(uint32_t)args.offset << 32 | (uint32_t)args.k);
    h = hash_word(h, hash_floats(args.s, args.t) + args.tangent + 2u * args.stop + 4u * frozen);
    depends &= ~frozen;
    for (int i = 0; i < n_in; i++) {
        n->in[i] = in[i];
        if (!in[i]) continue; /* absent */
        const node *m = &e->nodes[in[i]];
        h = hash_word(h, (uint64_t)(uint32_t)m->dim << 8 | (uint64_t)i);
        if (m->level > n->level) n->level = m->level;
        depends |= m->depends;
        n->seen |= m->seen;
        needs |= m->needs;
    }
    n->all = n->rows = n->level;
    n->op = op;
    n->args = args;
    n->n_in = (uint8_t)n_in;
    n->depends = (uint8_t)(args.stop ? 0 : op->constant ? depends & DRAWN : depends & (e->pass.groups | DRAWN));
    n->call_key = h;
    if (needs) n->needs = rws__dependence_join(e, n, op->local ? at : ROOT);
    if (n->needs) rws__dependence_work(e, n);
    if (slot) share(e, slot);
    return e->n_nodes++;
}

static void note_site(node *n, const rws_path *path)
{
    n->site = path->site < NO_SITE ? (uint16_t)path->site : NO_SITE;
    n->side = (uint8_t)path->side;
    n->visit = path->site_visit < UINT16_MAX ? (uint16_t)path->site_visit : UINT16_MAX;
}

rws_var rws__record(rws_path *path, const rws_op *op, rws_op_args args, const rws_var *in, int n_in, int dim)
{
    uint32_t ids[RWS_OP_INPUTS];
    RWS_CHECK(n_in <= RWS_OP_INPUTS);
    for (int i = 0; i < n_in; i++) {
        ids[i] = in[i].id;
        if (ids[i] == 0 && i == 0 && op == &rws_op_dense) continue; /* a layer whose parts are all added */
        rws__path_expect(path, in[i], op->name);
        if (!op->constant) rws__path_expect_unseen(path, in[i]);
    }
    const uint32_t next = path->e->n_nodes,
                   id = rws__node_op(path->e, op, args, ids, n_in, dim, path->level, path->frozen);
    if (id == next) note_site(&path->e->nodes[id], path);
    for (int i = 0; op->jumps >> i; i++)
        if (op->jumps >> i & 1) rws__path_jumps(path, in[i], JUMP_OP);
    return path_var(path, id);
}

int rws__dim_for(const rws_path *path, rws_var v, const char *function)
{
    rws__path_expect(path, v, function);
    return path->e->nodes[v.id].dim;
}

int rws_dim(const rws_path *path, rws_var v)
{
    return rws__dim_for(path, v, __func__);
}

bool rws__path_is_nested(const rws_path *path)
{
    return path->depth > 1;
}

int rws__site_observes(const rws_path *path, const char *site)
{
    const rws_engine *e = path->e;
    for (int i = 0; i < e->n_fields; i++)
        if (strcmp(e->fields[i].name, site) == 0) return e->fields[i].most ? e->fields[i].item : e->fields[i].dim;
    return 0;
}

rws_var rws__var_stop(rws_path *path, rws_var v)
{
    rws__path_expect(path, v, "a draw");
    return path->e->nodes[v.id].depends & path->e->pass.groups ? rws_detach(path, v) : v;
}

/* Whether the guide has drawn a value by an operation on what the model must not use: such an operation is not made one with
 * the model's. */
static bool is_hidden(const rws_path *path, const node *n)
{
    bool seen = false;
    for (int i = 0; i < n->n_in; i++) seen |= path->e->nodes[n->in[i]].seen;
    return seen && !n->seen && path->side == RWS_SIDE_MODEL && !n->op->binary;
}

const rws_op *rws__var_op(const rws_path *path, rws_var v, rws_var *in, rws_op_args *args)
{
    const node *n = &path->e->nodes[v.id];
    if (in && is_hidden(path, n)) return NULL;
    for (int i = 0; i < n->n_in && in; i++) in[i] = path_var(path, n->in[i]);
    if (args) *args = n->args;
    return n->op;
}

bool rws__var_is_shared(const rws_path *path, rws_var v, rws_var than)
{
    const rws_engine *e = path->e;
    const node       *a = &e->nodes[v.id], *b = &e->nodes[than.id];
    if (rws__node_is_coarse(e, a) || rws__node_is_coarse(e, b))
        return rws__node_most_rows(e, a) < rws__node_most_rows(e, b);
    return a->level < b->level;
}

bool rws__var_is_above(const rws_path *path, rws_var v)
{
    const node *n = &path->e->nodes[v.id];
    return n->level < path->level || rws__node_is_coarse(path->e, n);
}

bool rws__var_is_fixed(const rws_path *path, rws_var v)
{
    return path->e->nodes[v.id].level == ROOT;
}

bool rws__var_is_here(const rws_path *path, rws_var v)
{
    const node *n = &path->e->nodes[v.id];
    return path->level != ROOT && n->level == path->level && !rws__node_is_coarse(path->e, n);
}

/* ---- leaf nodes */

/* A leaf node at the root that every path may find again: its identity stands in args. */
static rws_var root_leaf(rws_path *path, rws_op_args identity, int dim, const float *value)
{
    rws_engine *e = path->e;
    identity.frozen = (uint8_t)path->frozen;
    known_node *slot = find_shared(e, NULL, &identity, NULL, 0, dim);
    if (slot->pass == e->pass_number) return path_var(path, slot->node);
    share(e, slot);
    const uint32_t id = e->n_nodes;
    node          *n = node_draft(e, ROOT, dim, DONE);
    n->args = identity;
    n->param = identity.w;
    if (!value) {
        n->value = identity.w->value;
        n->depends = (uint8_t)(1u << identity.w->group & e->pass.groups & ~path->frozen);
    } else {
        n->value = RWS_NEW(&e->arena, float, dim);
        memcpy(n->value, value, (size_t)dim * sizeof(float));
    }
    e->n_nodes++;
    return path_var(path, id);
}

uint32_t rws__node_constant(rws_path *path, float value)
{
    return root_leaf(path, (rws_op_args){.s = value}, 1, &value).id;
}

rws_var rws_constant(rws_path *path, float value)
{
    rws_var v;
    if (rws__replayed(path, &v)) return v;
    return rws__returns(path, path_var(path, rws__node_constant(path, value)));
}

rws_var rws_constants_sized(rws_path *path, const float *values, int dim, size_t bytes)
{
    rws_var v;
    if (rws__replayed_as(path, &v, "rws_constants")) return v;
    if (dim < 1 || !values)
        rws__path_mistake(path, "rws_constants takes at least one number, not %d.", values ? dim : 0);
    if (bytes < (size_t)dim * sizeof *values)
        rws__path_mistake(path, "rws_constants takes %d numbers of an array that has %zu.", dim,
                          bytes / sizeof *values);
    float *copy = RWS_NEW(&path->e->arena, float, dim);
    memcpy(copy, values, (size_t)dim * sizeof(float));
    return rws__returns(path, path_var(path, rws__node_leaf(path->e, ROOT, dim, copy)));
}

rws_var rws_parameter(rws_path *path, const rws_param *p)
{
    rws_var v;
    if (rws__replayed(path, &v)) return v;
    if (!p || !p->value) rws__path_mistake(path, "rws_parameter was given no parameter.");
    return rws__returns(path, root_leaf(path, (rws_op_args){.w = p}, (int)rws__param_size(p), NULL));
}

void *rws_alloc(rws_path *path, size_t bytes)
{
    if (path->depth == 0) enter(path, __func__);
    return rws__arena_zero(&path->e->arena, bytes);
}
