/* internal.h - what the files of this folder share.
 *
 *     discover.c    the sites that prior draws visit
 *     layers.c      the parameters for them
 *     state.c       what a head sees: encoded data, the state over choices
 *     propose.c     from a head's output to a proposal
 *     guide.c       the program that runs in the guide's place
 */
#ifndef RWS_GUIDE_INTERNAL_H
#define RWS_GUIDE_INTERNAL_H

#include "dist/dist.h"
#include "guide/guide.h"

enum {
    MAX_HEADS = 200,  /* sites with parameters of their own */
    MAX_VISITS = 32,  /* a head tells so many visits of a site apart */
    MAX_WIDTH = 4096, /* numbers of a value, or of its logits, that a head makes */
    SMALL_COUNTS = 16 /* a whole number below this may come from a table instead of the prior's family */
};

/* How a head makes a proposal of its output. */
typedef enum {
    HEAD_MOVED,   /* the prior's family with moved parameters */
    HEAD_MIXED,   /* a mixture of several such */
    HEAD_TABLE,   /* a count: a mixture of such one with a table of small numbers */
    HEAD_BESIDE,  /* a family without a rule: a mixture of the prior with others of the same support */
    HEAD_GROWING, /* a choice among a number of categories that differs from visit to visit */
    HEAD_PRIOR,   /* the prior: there is nothing to learn */
} head_kind;

typedef struct rule rule;

/* A site as prior draws have shown it, and its layers. A site that is visited with two families has two. */
typedef struct {
    const char *site, *family;
    rws_support support;
    int         width;   /* of its longest parameter */
    int         dim;     /* of a value */
    int         n_prior; /* numbers of all parameters */
    int         n_choices, most_visits;
    bool        grows;
    head_kind   kind;
    const rule *rule;
    rws_layer  *hidden, *out, *up; /* up: from a value to the input of the cell */
    rws_layer  *query, *key;       /* of HEAD_GROWING */
} head;

struct rws_guide {
    rws_automatic    automatic; /* first: the engine hands it back */
    const rws_setup *setup;
    const rws_model *model;
    rws_guide_sizes  sizes;
    head             heads[MAX_HEADS + 1]; /* the one behind the last is for sites that were not found */
    int              n_heads;
    int              most_choices;    /* that a particle made */
    int             *n_categories;    /* by field: its numbers are choices among so many; 0: they are numbers */
    rws_param      **shift, **factor; /* by field: numbers x become (x - shift) factor; NULL: they stay */
    rws_layer      **reader;          /* by field: of a series */
    rws_layer       *encoder, *cell;
    int             *series, n_series; /* the number of a field among the series; -1: it is none */
    char             unknown[RWS_PARAM_NAME + 1];
    int              noted; /* 2: a site is in `unknown`; 1: it is being written; atomic */
};

/* An earlier visit of a site whose categories grow: what it chose, and what is known of the item. */
typedef struct earlier {
    const struct earlier *before;
    uint32_t              choice, key;
} earlier;

/* What a path keeps: a memory, then a series_state for each series, then a head_state for each head. Nodes are kept by their
 * ids; what is pointed to is never changed. */
typedef struct {
    uint32_t encoded, state; /* 0: not computed yet, or no choice so far */
    uint32_t choice;         /* the last choice, which is not in the state yet; 0: none */
    int      chosen_at;      /* the head of its site */
    int      n_choices;
} memory;

typedef struct {
    int             length, seen;
    const uint32_t *states; /* of the reader, at each item */
} series_state;

typedef struct {
    const earlier *earlier;
    int            visits;
} head_state;

/* discover.c */
rws_status rws__guide_discover(rws_guide *g, rws_setup *s, const void *state, const rws_limits *limits, rws_error *err);

/* layers.c */
void rws__guide_declare(rws_guide *g, rws_setup *s);

/* guide.c: the head of a site, NULL if it has none; and the field of an observed site, -1 if it is latent. */
const head *rws__guide_head(const rws_guide *g, const char *site, const rws_family *f, int width);
int         rws__guide_field_of(const rws_guide *g, const char *site);

/* state.c */
size_t        rws__guide_bytes(const rws_guide *g, int n_heads); /* of what a path keeps */
series_state *rws__guide_series(rws_path *path, const rws_guide *g, int field);
head_state   *rws__guide_head_state(rws_path *path, const rws_guide *g, int i);
rws_var rws__guide_hidden(rws_path *path, const rws_guide *g, const head *h, const rws_var *prior); /* of a head */
void    rws__guide_chose(rws_path *path, const rws_guide *g, const head *h, rws_var value);
int     rws__guide_about(rws_path *path, const rws_guide *g, rws_var about[2]); /* the data, and the next items */
int     rws__guide_next_size(const rws_guide *g);
rws_var rws__guide_onehot(rws_path *path, rws_var index, int n);

/* propose.c */
const rule *rws__guide_rule(const rws_family *f);
head_kind   rws__guide_kind(const head *h, int components);
int         rws__guide_outputs(const head *h, int components);
void        rws__guide_offsets(const head *h, int components, float *bias); /* of the last layer */
rws_var     rws__guide_propose(rws_path *path, const rws_guide *g, const head *h, const char *site, const rws_family *f,
                               const rws_var *params);

#endif
