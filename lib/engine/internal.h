/* internal.h - the engine's own structures; included by the files of this folder only.
 *
 * Levels. A level is a set of rows; every value lives at one. Levels form a tree, and a program's path is a chain in
 * it:
 *
 *     root   1 row: what depends on parameters alone          log softmax(theta)
 *      |
 *     data   a row per datum, standing for K particles        mlp(x)
 *      |     draw z: each row splits by outcome
 *     drawn  a row per (datum, outcome), with a count         log N(x; mu_z)
 *      |\    branch: rows part by value, one level each
 *     a  b   subsets of the rows above; two paths continue
 *
 * `up` leads from a row to its row at the parent. A value computed at an ancestor is read through the composition of
 * `up`s; its gradient is added the same way.
 *
 * Paths. A path is one execution of the program on its own fiber (struct rws_path): its level, its trace, and the log
 * of everything the library has returned to it, for replay.
 *
 * Nodes and calls. A node is an operation that a path recorded; a call is the batched execution of nodes with equal
 * call keys. Nodes wait until a value that is made of them is needed; then the waiting nodes of all paths with equal
 * keys meet in a call. Calls in the order of execution are the tape. A leaf node has no op: its value is there from the
 * beginning.
 *
 * Rows on demand. The level of a node says which rows its value has in principle; a row is computed when a path that
 * waits can reach it. A node of which few rows are wanted is computed for a narrowed level, a list of these rows that
 * hangs beside the tree. If other rows of it are wanted later, a second node, a part of the first, computes them:
 *
 *     data      rows  0 1 2 3 4 5 6 7            x; mlp(x, constants of path 1) is at this level, too
 *      |\
 *     path 1    rows  2 5                        waits for mlp(…) in an early flush, so 2 and 5 are computed
 *     path 1'   rows  1 2                        waits in a later flush, so 1 is computed
 *
 *     mlp(…)    ----- 2 5   narrowed {2, 5}, the node that programs know
 *       more    --- 1       narrowed {1}, its second part
 *
 * A value that does not depend on all draws before it has equal rows at its level. It is computed for a projection, a level
 * with one row for each combination that it depends on: see depend.c. Both are rows beside a level, and are read, added to
 * and differentiated by the same code: `place` leads from a row of the level to the row beside it, and `up` back to one of
 * those. A narrowed level may hang beside a projection:
 *
 *     drawn     rows  0 1 2 3 4 5        z: a a b c b a
 *      |- {z}   rows  0 1 2              up: 0 2 3, place: 0 0 1 2 1 0;  f(z) for a, b and c
 *      |   |--  rows  0 1                a path that waits can reach a and b only
 *
 * Paths, hashes and replay know nothing of this. A program that never splits has no narrowed levels: see demand.c.
 *
 * Merged levels. Paths that arrive at the next step of a loop with equal integers become one path (loop.c). Its level
 * has one parent, the level at which the loop was entered, so that what was computed before the loop is read through
 * `up` as ever; and it has parts, the levels of the paths, through which log-densities are added up (merge.c):
 *
 *     entry     rows  0 1              what was computed before the loop
 *      |\
 *      a b      rows  0 0 1 | 0 1      two paths that arrive: terms of their steps
 *      | |
 *     merged    rows  0 0 0 1 1        parent: entry, up: 0 0 0 1 1; parts: a, whose rows go to 0 1 3, and b, to 2 4
 *
 * A value that a path carries into the next step becomes a node at the merged level that reads the nodes of the
 * parts. Rows of every level are in the order of the rows of its parent. */
#ifndef RWS_ENGINE_INTERNAL_H
#define RWS_ENGINE_INTERNAL_H

#include "base/error.h"
#include "base/fiber.h"
#include "engine/engine.h"
#include "tensor/products.h"

#include <setjmp.h>

#define NONE UINT32_MAX
#define N_COEF 4 /* P, Q, R, G: the terms that have gradients */

enum { SCORE = N_COEF };
enum { ROOT = 0, DATA = 1 }; /* the first levels; a pass that sleeps has no data, and DATA is like any other */

/* Growing arrays that keep their memory from pass to pass. */
#define RWS_PUSH(engine, array, n, capacity)                                                                     \
    ((n) == (capacity) ? (void)((array) = rws__grow((engine), (array), &(capacity), sizeof *(array))) : (void)0, \
     &(array)[(n)++])
void *rws__grow(rws_engine *e, void *array, uint32_t *capacity, size_t item);

/* The same for n items at once. */
void *rws__grow_to(rws_engine *e, void *array, uint32_t *capacity, uint64_t n, size_t item);

/* The distributions that the rows of a level draw from, as integers: see draw.c. */
typedef struct {
    const int32_t  *full;
    const int16_t  *upper;
    const uint32_t *row; /* from a row of the level to its row of thresholds; NULL: row i is row i */
} thresholds;

/* How many draws each row of a level has made before: `row` of them, or `all` where that is NULL. */
typedef struct {
    const uint32_t *row;
    uint32_t        all;
} ordinals;

static inline uint32_t ordinal_of(ordinals o, uint32_t i)
{
    return o.row ? o.row[i] : o.all;
}

/* A draw of an index, kept so that the particles of its rows can be listed later: rws__level_particles. */
typedef struct {
    uint32_t        parent;
    ordinals        at_draw;
    int             n_categories;
    thresholds      threshold;
    const uint32_t *child;    /* per row of the parent: its first row at the drawn level */
    const uint32_t *category; /* per row of the drawn level */
} draw_record;

/* A hash table of numbers above 0, in the arena: it lasts as long as the pass. */
typedef struct {
    uint64_t *slots; /* the upper half of the hash, and the number; 0: free */
    uint32_t  n, capacity;
} numbers;

static inline uint64_t hash_word(uint64_t h, uint64_t word)
{
    h ^= word;
    h *= 0x9e3779b97f4a7c15u;
    return h ^ (h >> 29);
}

#define N_MAPS 4

/* The map to a level; NULL: row i is row i. */
typedef struct {
    uint32_t        to;
    const uint32_t *map;
} known_map;

#define N_IMAGES 8

/* The rows that nodes with rows `at` are computed for if the level that has this entry reads them: a narrowed level beside
 * `at`, or `at` itself for all rows. */
typedef struct {
    uint32_t at, rows;
} known_image;

/* A level whose rows read the rows of a narrowed level. */
typedef struct reader {
    uint32_t       level;
    struct reader *next;
} reader;

typedef struct {
    uint32_t        parent, n_rows;
    const uint32_t *up;
    const uint32_t *count;           /* particles per row; NULL where a row stands for none (the root of a wake pass) */
    const uint32_t *particles;       /* particle ids, row after row, ascending within a row; NULL: not listed (yet) */
    const uint32_t *particles_start; /* n_rows places in `particles`, where that is not NULL */
    uint32_t        stride; /* not 0: row i is particles i * stride … i * stride + count - 1, and no list is needed */
    const draw_record *draw;   /* not NULL: how to list the particles */
    bool               single; /* every row is one particle */
    uint32_t        width; /* numbers that a particle takes: 1, or the product of the values of summed sites (sums.c) */
    uint32_t        values; /* of a level that a summed site has made: how many the site has; else 0 */
    uint32_t        terms;  /* the first of the log-density terms that its particles gained here; NONE: no terms */
    uint32_t        summed; /* the first of those that are in `total`; NONE: none */
    bool            sums;   /* `total` has the terms of the levels above */
    uint32_t        outputs[RWS_OUTPUTS];
    double         *total[RWS_TERMS]; /* sums of terms from the root down to here; NULL: zero */
    double         *coef[N_COEF + 1]; /* the last, SCORE: of log q, by rws_scores.coef_score */
    uint32_t        n_live;           /* rows that backward works on: all rows, or those listed in `live` */
    const uint32_t *live, *position;  /* position: from a row to its place in `live` */
    known_map       maps[N_MAPS];     /* the maps that were composed last; they are usually asked for again */
    const uint32_t *to_data;          /* the map to level DATA, once it is known */
    const struct merge *merge;        /* of a merged level; else NULL */
    uint32_t            next_map;     /* place in maps of the next map, modulo N_MAPS */
    uint32_t            cover;        /* the highest ancestor, or this level, all of whose rows have rows here */
    known_image         images[N_IMAGES];
    uint32_t            next_image; /* place in images of the next image, modulo N_IMAGES */
    const uint32_t     *place;   /* of a level beside: from a row of the parent to its row here, or NONE; else NULL */
    reader             *readers; /* of a narrowed level: the levels that read it */
    bool     projected;  /* it is a projection: `place` is never NONE, and `up` leads to the first of the rows */
    uint32_t drawn;      /* the index whose draw made this level; 0: it is another kind of level */
    uint32_t dependence; /* the last dependence whose home this level is; 0: there is none */
} level;

/* What a value depends on: see depend.c. */
typedef struct {
    uint32_t        base;   /* a level of the tree */
    uint32_t        n;      /* indices that were drawn below it */
    const uint32_t *index;  /* these nodes, in ascending order */
    uint32_t        home;   /* the level of the last of them, which is that of the nodes with this dependence */
    uint32_t        next;   /* another dependence with this home; 0: none */
    uint32_t        values; /* of the dependence of an index on itself: it is in 0 … values - 1 */
    uint32_t        most;   /* rows that a projection has at most */
    uint32_t        rows; /* the projection; the home if that would have hardly fewer rows; NONE: it is not made yet */
    uint32_t        work; /* of the nodes with this dependence, for each row */
} dependence;

typedef struct {
    uint32_t node, next;
    uint32_t site : 24, kind : 8;
    uint32_t visit;
} term;

/* A site by name. Sites are numbered as they are first visited and stay so for the engine's life. */
typedef struct {
    const char *name;
    uint64_t    hash;
    int         field; /* the field of the data that it observes; -1: it is latent */
    int8_t how; /* rws_gradient of its values; -1: reparameterised where the family can and no jump is made of them */
    bool   scored, jumps; /* its values come by score in this pass; a jump was made of them in this pass: jump.c */
} site;

#define MAX_SITES (1u << 24) /* what fits a term */

typedef struct {
    const rws_op *op;
    uint64_t      hash;
} op_hash;

#define N_OP_HASHES 64

#define NO_SITE UINT16_MAX

typedef enum { WAITING, NEEDED, DONE } node_state;

/* Bits of node.depends behind those of the groups. DRAWN: it is made of a reparameterised draw, perhaps by operations
 * without a gradient. IS_DRAW: it is one. The others: the draws that it is made of have been found, for a branch or look, and for a
 * comparison. */
enum { DRAWN = 0x80, IS_DRAW = 0x40, FOUND_FOR_BRANCH = 0x20, FOUND_FOR_OP = 0x10 };

typedef struct {
    const rws_op *op;       /* NULL: a leaf node (data, noise, a drawn index, a constant, a parameter) */
    uint64_t      call_key; /* nodes with equal keys may share a call */
    uint32_t      in[RWS_OP_INPUTS];
    uint8_t  n_in, state, depends; /* depends: bit per parameter group that its gradient reaches, and bits of jump.c */
    uint8_t  side : 4, seen : 1;   /* the program that recorded it, for messages: rws_side; and see seen.c */
    uint32_t level, wave, call;
    uint32_t needs;      /* its dependence; 0: it has a row for each row of its level */
    uint32_t all;        /* the level of all its rows: `level`, or a projection beside it */
    uint32_t rows;       /* the level whose rows `value` has: `all`, or a narrowed level beside that */
    uint32_t origin;     /* the node that this is a part of; itself for the first part */
    uint32_t more;       /* the next part; 0: none */
    uint32_t reader;     /* while rows are asked for: a level that reads them, or MIXED | place in mixtures; or NONE */
    uint32_t first_live; /* place of its first live row among the live rows of the call */
    int      dim;
    uint32_t tangent;
    uint16_t site, visit; /* the last site of the path that recorded it, for messages; NO_SITE: none known */
    float   *value, *saved;
    const rws_param *param; /* the parameter that a leaf node is; else NULL */
    rws_op_args      args;
} node;

/* The rows of a node that several levels read. It exists while rows are asked for. */
typedef struct {
    uint64_t *rows; /* a bit for each of all rows of the node */
    reader   *readers;
} mixture;

#define MIXED (1u << 31)

/* A node that was asked for, and the level whose rows read it. */
typedef struct {
    uint32_t node, level;
} ask;

/* The rows of a node that a level reads: row i of the level is row `row ? row[i] : i` of these. */
typedef struct {
    const float    *value, *exp; /* exp: the exponentials of value, if its op saved them; else NULL */
    const uint32_t *row;
    uint32_t        n; /* rows of value */
} reading;

/* A slot of the table of nodes; a slot of an earlier pass is free. Small, because the table is as large as a cache. */
typedef struct {
    uint32_t node, tag : 24, pass : 8; /* tag: the upper bits of the node's hash */
} known_node;

typedef struct {
    rws_call c;
    uint32_t first, n_nodes;        /* in engine.order */
    uint32_t source[RWS_OP_INPUTS]; /* the node whose memory the view reads; NONE: rows of several nodes, gathered */
    uint32_t n_live;                /* rows that backward works on */
    float   *gradient;              /* of the live rows; NULL until something is added */
    uint8_t  depends;
} call;

typedef struct {
    const char *family;
    uint32_t    var, next; /* next visit of the same site */
    uint32_t    known;     /* after a branch, the constant node that every particle of the path has drawn; else 0 */
    uint32_t    site, visit;
    int         size, n_values; /* these and the next three: rws_visit.values */
    uint32_t    low, high;
    uint8_t     support;
    bool        given;
    uint32_t    kept; /* of a choice in a segment: its number in engine.kept */
} trace_entry;

/* A site on a path. */
typedef struct {
    uint32_t last; /* its latest entry in the trace; or NONE */
    uint32_t next; /* its first entry that the other side has not scored; of a series, place in engine.items; or NONE */
} visited;

/* A report of a path on its particles: a node, or a text. */
typedef struct {
    const char *name, *text;
    uint32_t    node;
} report;

/* A number that grows along a program, for each row of a merged level: base[row] + offset; base NULL: offset. */
typedef struct {
    const uint32_t *base;
    uint32_t        offset;
} counter;

/* What a path has done since its particles last came together. */
typedef struct {
    uint32_t            level, n_trace, n_reports;
    const trace_entry  *trace;
    const report       *reports;
    const struct merge *before; /* where it began; NULL: with the program */
    const uint32_t     *to;     /* from rows of its level to rows of the merged level; NULL: row i becomes row i */
} segment;

/* Segments that end, and the counters with which a path continues at `level`. A single segment may end without a merge. */
typedef struct merge {
    uint32_t        level, n;
    segment        *parts;
    const uint32_t *part, *row; /* of each row of the level: its part, and its row there; NULL: part 0, the same row */
    counter         ordinal;
    uint32_t        n_sites;
    counter *visits, *scored; /* by site: its visits, by the side that draws or observes it, and by the other side */
} merge;

/* A choice of a row: an entry in engine.kept, and the row at the level of its segment. */
typedef struct {
    uint32_t entry, row;
} kept_choice;

typedef struct {
    const trace_entry *entry;
    uint32_t           level;
} kept_entry;

/* What the drawing side has chosen, for each row of a level: visit k of site s in row i is choice[s][start[s][i] + k]. */
typedef struct {
    uint32_t      level, n_sites;
    uint32_t    **start; /* by site: n_rows + 1 places; NULL: it was never visited */
    kept_choice **choice;
} history;

/* A node that is made of rows of other nodes: row i is row row[i] of the level at[which[i]], read from source[which[i]]. */
typedef struct {
    uint32_t        n;
    const uint32_t *source, *at;
    const uint32_t *which, *row;
} join;

/* What guide and model hand on in the loop that they share: see shared.c. */
typedef struct {
    rws_step   *step;
    const void *env;
    void       *carry; /* the program's own */
    uint32_t    n_values, n_words;
    bool        acts; /* these and `frozen` as they are in rws_path */
    unsigned    frozen;
} half_loop;

typedef struct {
    const char *name;
    half_loop   guide, model;
    bool        met; /* the model has come to its loop */
} shared_loop;

/* The loop that a step belongs to. */
typedef struct loop {
    rws_step          *step;
    rws_once          *body; /* of rws_call_once, instead of step */
    const void        *env;
    uint32_t           n_values, n_words; /* of the carry: values, and all words of 32 bits */
    uint32_t           entry;             /* the level at which it was entered */
    uint32_t           depth;             /* 1 for a loop that is in no other loop */
    uint32_t           n_log;             /* calls of its owner before it */
    uint32_t           stamp;             /* of its owner's values */
    rws_path          *owner;             /* the path that stands in rws_loop */
    const struct loop *outer;             /* the loop that the owner is a step of; NULL: none */
    uint32_t           n_going;           /* paths that have arrived and continue with a step */
    int32_t            clock;             /* the lowest of these */
    bool               resampled;         /* of a shared loop: in this turn */
    rws_path          *ended;             /* its impossible particles; NULL: none, or they are in several paths */
    bool               shared;            /* guide and model make its steps in turn */
    bool               apart;             /* its paths do not come together */
} loop;

/* A path that has ended, by its number, and its level then. */
typedef struct {
    uint32_t level, path;
} path_end;

/* Where a row of the table comes from: a place in engine.ends, and a row of the level there. */
typedef struct {
    uint32_t end, row;
} origin;

struct rws_path {
    rws_engine     *e;
    rws_fiber      *fiber;
    uint32_t        level, base; /* base: the level of the data */
    uint32_t       *log, n_log, log_capacity, cursor;
    int             depth;      /* number of library functions that are being executed, one within the other */
    const char     *function;   /* the library function that the program called last */
    uint32_t        stamp;      /* of the values that belong to this path */
    uint64_t        operations; /* library calls so far, those that were replayed included */
    const char     *stack_end;  /* the lowest address of its stack */
    bool            overflowed; /* its stack ran over: the frames on it are lost */
    bool            abandoned;  /* it is resumed only to leave its frames: see host.c */
    void           *slot;       /* the host's: rws_path_slot */
    rws_side        side;
    const char     *coming;  /* the name of a site that is not looked up yet, for messages; NULL: none */
    bool            acts;    /* the model's program runs in the place of the guide: rws__path_acts */
    void           *memory;  /* of rws_automatic.bytes; NULL: not used yet */
    unsigned        frozen;  /* groups whose parameters count as constants */
    uint32_t        number;  /* place in engine.paths */
    uint32_t        ordinal; /* draws so far, of the row that has made fewest */
    loop           *loop;    /* the innermost loop that it executes a step of; NULL: it executes the program */
    const uint32_t *carry;   /* with which the step began or, of a path that has arrived, which it hands on */
    bool            stands;  /* it waits for the end of a loop */
    uint64_t        steps;   /* of loops so far */
    bool            goes_on; /* of a path that has arrived: with a further step */
    bool            ended;   /* of a path that has arrived: its particles are impossible */
    shared_loop    *shares;  /* of a guide that stands in such a loop, while the model runs; else NULL */
    bool            met;     /* the guide has come to such a loop, and the model has run in it */
    bool            scored;  /* it is in or behind such a loop: every choice before the present step is scored */
    const merge    *before;  /* where its trace begins; NULL: with the program */
    const history  *history; /* what the drawing side has chosen, if that is in several traces; else NULL */
    const rws_var  *wants;   /* the nodes it waits for */
    int             n_wants;
    trace_entry    *trace;
    uint32_t        n_trace, trace_capacity, n_scored;
    uint32_t        n_taken; /* given choices that it has taken */
    visited        *sites;   /* by number of the site */
    uint32_t        n_sites, site_capacity;
    uint64_t        fields_seen[RWS_FIELDS / 64]; /* bit per field: its site has been visited */
    uint32_t        note[RWS_NOTES];
    report         *reports;
    uint32_t        n_reports, report_capacity;
    uint32_t        site, site_visit; /* the site that was visited last; NONE before the first */
    /* Nodes, by number of the field; 0: not there (yet). Behind them those that the guide of a wake pass reads, which
     * are marked as seen; 0: the same. */
    uint32_t field[];
};

struct rws_engine {
    const rws_params        *params;
    rws_field               *fields;
    int                      n_fields;
    rws_limits               limits;
    const rws_site_gradient *gradients; /* by site */
    int                      n_gradients;
    const rws_automatic     *automatic; /* takes the place of the models' guides; NULL: none */
    const rws_host          *host;      /* of the programs' language; NULL: C */
    bool                     inside;    /* between host->enter and host->leave */
    bool (*stop)(void *context);        /* rws__engine_watch; NULL: never */
    void      *stop_context;
    uint64_t   unwatched; /* numbers that calls have computed since `stop` was asked */
    rws_pass   pass;
    rws_path  *running; /* on its fiber; NULL: none */
    jmp_buf    leave;   /* where a failure outside of all paths goes: see rws__engine_fail */
    bool       entered; /* `leave` is set */
    uint32_t   stamp;   /* of the path that began last */
    bool       again; /* the pass has failed because gradients of sites must come otherwise, and begins anew: jump.c */
    rws_arena  arena;
    rws_status status;
    rws_error  error;

    level      *levels;
    uint32_t    n_levels, level_capacity;
    term       *terms;
    uint32_t    n_terms, term_capacity;
    node       *nodes;
    uint32_t    n_nodes, node_capacity;
    call       *calls;
    uint32_t    n_calls, call_capacity;
    dependence *dependences;
    uint32_t    n_dependences, dependence_capacity;
    numbers     known_dependences, narrowed; /* narrowed levels that several levels may read */
    uint32_t   *order;                       /* nodes in the order of execution; calls are ranges of it */
    uint32_t    n_order, order_capacity;
    uint32_t   *pending; /* scratch of rws__engine_execute and rws__engine_tangent */
    uint32_t    n_pending, pending_capacity;
    uint64_t   *asked; /* a bit for each node that is asked for; all zero between flushes */
    uint32_t requested_capacity, requested_low, requested_end; /* words of it that may not be zero: low … end - 1 */
    mixture *mixtures;
    uint32_t n_mixtures, mixture_capacity;
    ask     *asks; /* everything that was asked for in this pass, if rows are counted */
    uint32_t n_row_requests, row_request_capacity;
    bool     counts;    /* rows that are needed are counted: rws__engine_count_rows */
    known_node *shared; /* hash table of the nodes that another path may record again */
    uint32_t    n_shared, shared_capacity;
    uint8_t     pass_number; /* 1 … 255, in turn */

    op_hash op_hashes[N_OP_HASHES]; /* hashes of the names of ops, by address of the op */

    rws_path  **paths; /* all paths ever made; the first n_paths are of this pass */
    uint32_t    n_paths, path_capacity, n_made;
    uint32_t    n_started;                                     /* paths that were run */
    uint32_t   *spare, n_spare, spare_capacity;                /* paths of this pass that can be used again */
    uint32_t   *arrived, n_arrived, arrived_capacity;          /* paths that have executed a step */
    uint32_t    n_summed;                                      /* levels whose `total` was begun */
    bool        shares;                                        /* guide and model share a loop */
    segment   **segments;                                      /* all that have ended before their paths did */
    uint32_t    n_segments, segment_capacity, n_segments_kept; /* the choices of the first ones are in `kept` */
    kept_entry *kept;
    uint32_t    n_kept, kept_capacity;
    join       *joins; /* of nodes with rws__op_join, by their in[0] */
    uint32_t    n_joins, join_capacity;
    uint32_t   *ready; /* paths that can continue, first in first out */
    uint32_t    n_ready, ready_capacity, ready_at;
    uint32_t   *waiting, n_waiting, waiting_capacity;
    path_end   *ends;
    uint32_t    n_ends, end_capacity;
    uint32_t   *zeros, n_zeros; /* the map to the root from any level with up to n_zeros rows */

    site      *sites;
    uint32_t   n_sites, site_capacity;
    uint32_t  *site_table, site_table_size; /* by hash of the name: the number of a site plus 1; 0: free */
    uint64_t   bits_seen[RWS_FIELDS / 64];  /* by field: all its numbers in this pass are known to be 0 to 1 */
    uint32_t  *field_sites;                 /* by number of the field: its site; NONE: it has not been visited yet */
    uint32_t **item_nodes; /* by place in path.field and item: the leaf node of item t of all data, or 0; may be NULL */
    int32_t  **item_fits;  /* by field and item: what the item of all data is known to be, see series.c; may be NULL */
    uint32_t  *items, n_items, item_capacity; /* nodes of the items of dreams, series after series: see series.c */

    struct word_source *words; /* scratch of draws */

    rws_scores scores;
    uint32_t *place; /* from the rows of all ends, one end after the other, to their places in scores; NULL: in order */
    origin   *origins;    /* per row of the table; NULL: not asked for yet */
    uint32_t  n_given;    /* choices given for the data of this pass */
    bool     *given_used; /* by place in pass.given: some path took it; if the list holds for every datum */
    uint32_t *given_next; /* place in pass.given where the next search begins; for each datum if they have their own */
    rws_products     products;
    bool            *touched; /* by number of the parameter: something was added to its gradient; or NULL */
    const float     *tangent, *tangent_transposed;
    rws_engine_stats stats;
    uint64_t         forward_flops; /* of the last pass */
    uint64_t         n_allocations;
};

/* level.c */
uint32_t rws__level_new(rws_engine *e, uint32_t parent, uint32_t n_rows);
/* The map from rows of a level to rows of an ancestor, or of a level beside an ancestor; NONE for a row that a narrowed
 * level does not have. NULL: row i is row i. */
const uint32_t *rws__level_map(rws_engine *e, uint32_t from, uint32_t to);
void            rws__level_note_map(rws_engine *e, uint32_t from, uint32_t to, const uint32_t *map);
uint32_t        rws__level_expand(rws_engine *e, uint32_t l);          /* a level below with one particle per row */
bool rws__path_has_row(const rws_path *path, uint32_t at, size_t row); /* the path reads this row of level `at` */

/* draw.c: level.particles, which is listed now if need be. NULL: stride is not 0, and there is no list. */
const uint32_t *rws__level_particles(rws_engine *e, uint32_t l);

/* schedule.c: what loops do with paths */
rws_path *rws__path_new(rws_engine *e);
void      rws__path_copy(rws_path *to, const rws_path *from); /* what its particles have done; not its log */
void      rws__path_begin(rws_path *path);                    /* runs its program, or its step, from the beginning */
void      rws__path_continue(rws_path *path);                 /* runs it from where it waits */
void      rws__path_close(rws_path *path);   /* until one of these, a library call that is given it is refused */
void      rws__path_recycle(rws_path *path); /* it is not used any more */
uint32_t  rws__stamp_new(rws_engine *e);

/* loop.c */
void rws__loop_step(rws_path *path);     /* on the path: executes a step */
bool rws__loops_continue(rws_engine *e); /* when every path waits: lets some go on. False: none has arrived */
/* What a loop hands on; stops with a message if that has not the right shape. */
loop rws__loop_measure(rws_path *path, const loop *what, const void *carry, size_t size, size_t first_int);
void rws__loop_run(rws_path *path, const loop *l, void *carry); /* returns when it has ended */

/* shared.c */
void rws__shared_expect(rws_engine *e,
                        bool        ran);       /* stops with a message if a pass cannot resample; ran: it has ended */
void rws__shared_begins(rws_path *path); /* stops with a message if a choice before a shared loop is not scored */
/* Ends the impossible particles of paths that have arrived in a shared loop, and resamples. Returns how many of the n paths
 * are left. */
uint32_t rws__shared_weigh(rws_engine *e, rws_path **turn, uint32_t n);

/* resample.c: of paths that have arrived in a loop; a path that is left without particles is recycled, and NULL */
void rws__resample(rws_engine *e, rws_path **paths, uint32_t n);

/* merge.c */
extern const rws_op rws__op_join;
uint32_t            rws__node_join(rws_engine *e, uint32_t at, const join *of); /* a node at level `at` */
void                rws__join_forward(rws_engine *e, const node *n, float *out);
void                rws__merge(rws_engine *e, rws_path **paths, uint32_t n); /* the first one continues */
/* The path goes on at a level below its own that has some of its rows, with this number of draws in each. */
void rws__segment_below(rws_path *path, uint32_t to, uint32_t ordinal);
void rws__history_make(rws_path *path); /* of the side that draws, which has ended on this path */
/* Enters the next choices of all rows at the site that is visited. False: a row has no more. May part the path. */
bool rws__history_next(rws_path *path, trace_entry *t);
/* The node of item t of a series that the model has made; 0: a row of the path has no such item. */
uint32_t rws__history_item(rws_path *path, uint32_t site, uint32_t t);
/* Whether the scoring side has not visited all that was chosen; sets what it has not. */
bool     rws__history_missing(rws_path *path, uint32_t *site, uint32_t *visit);
ordinals rws__path_ordinals(rws_path *path);                   /* of a draw that is made now */
uint32_t rws__next_visit(const rws_path *path, uint32_t site); /* of the row with fewest visits */
/* By how many the visits of each row exceed these; NULL: no row has more. */
const uint32_t *rws__visits_beyond(rws_path *path, uint32_t site);

/* A row of a path and the segment that it is in, which leads to the segments before. */
typedef struct {
    const segment *in;
    uint32_t       row;
} past;
segment rws__segment_of(const rws_path *path);    /* the one that has not ended yet; it reads the path's own arrays */
bool    rws__past_before(rws_engine *e, past *p); /* moves to the segment before; false: there is none */
/* The segments of a row of a path that has ended, the first one first. They last as long as the pass. */
const past *rws__past_of(rws_engine *e, const rws_path *path, uint32_t row, uint32_t *n);

/* record.c */
uint32_t rws__node_leaf(rws_engine *e, uint32_t level, int dim, float *value);
uint32_t rws__node_op(rws_engine *e, const rws_op *op, rws_op_args args, const uint32_t *in, int n_in, int dim,
                      uint32_t at, unsigned frozen);
uint32_t rws__node_constant(rws_path *path, float value);
uint32_t rws__node_new(rws_engine *e, const rws_op *op, uint32_t level, int dim, uint8_t depends); /* not shared */
uint32_t rws__node_more(rws_engine *e, uint32_t id); /* a further part of a node, without a value yet */

/* numbers.c: the next number that has this hash, or 0; *place is 0 at first. And adds a number, which it returns. */
uint32_t rws__numbers_next(const numbers *t, uint64_t hash, uint32_t *place);
uint32_t rws__numbers_add(rws_engine *e, numbers *t, uint64_t hash, uint32_t number);

/* depend.c */
void     rws__dependence_begin(rws_engine *e);
void     rws__dependence_index(rws_engine *e, uint32_t id, uint32_t n_values);  /* the leaf node is a drawn index */
uint32_t rws__dependence_join(rws_engine *e, const node *n, uint32_t at_least); /* of a node, from its inputs */
void     rws__dependence_work(rws_engine *e, const node *n); /* a node with a dependence was recorded */
uint32_t rws__dependence_rows(rws_engine *e, uint32_t id);   /* the level of all rows of a node with a dependence */
bool     rws__node_is_coarse(const rws_engine *e, const node *n); /* a projection has far fewer rows than its level */
uint32_t rws__node_most_rows(const rws_engine *e, const node *n);

/* backward.c: the gradient of a node, which is allocated on first use; that of a parameter is a part of `gradient` */
float *rws__node_gradient(rws_engine *e, uint32_t id, float *gradient);

/* demand.c: rows on demand. A level reads a row of a node if a row of the level stands on it. */
void rws__demand_begin(rws_engine *e); /* forgets what was asked for in a pass that failed */
void rws__request_rows(rws_engine *e, uint32_t id,
                       uint32_t from); /* asks for the rows of a node that level `from` reads */
void rws__demand(rws_engine *e); /* lists in e->pending the nodes to execute for all that was asked for, inputs first */

/* Whether all rows of a node that a level reads are computed. */
bool rws__node_has(rws_engine *e, uint32_t id, uint32_t from);

/* The part, of a node with several parts, that has all rows that a level reads. NONE: the rows are in several parts. */
uint32_t rws__node_find(rws_engine *e, uint32_t id, uint32_t from);

/* Moves *id to the part that has a row of node.all, and returns the place of the row in that part. NONE: the row
 * is not computed. */
uint32_t rws__node_row(const rws_engine *e, uint32_t *id, uint32_t row);

/* A copy of the rows of a node that a level reads. */
reading rws__node_gather(rws_engine *e, uint32_t id, uint32_t from);

void rws__demand_count(rws_engine *e); /* adds needed and history of the last pass to the stats */

/* The same as rws__node_find for a node with any number of parts. */
static inline uint32_t rws__node_part(rws_engine *e, uint32_t id, uint32_t from)
{
    return e->nodes[id].more ? rws__node_find(e, id, from) : id;
}

/* The nodes that a node is made of. */
static inline const uint32_t *node_inputs(const rws_engine *e, const node *n, uint32_t *n_in)
{
    const join *j = n->op == &rws__op_join ? &e->joins[n->in[0]] : NULL;
    *n_in = j ? j->n : n->n_in;
    return j ? j->source : n->in;
}

/* The exponentials of a node's value, if they are what its op saved; else NULL. */
static inline const float *node_exp(const node *n)
{
    return n->saved && n->op->saves_exp ? n->saved : NULL;
}

/* What the rows of a level read of a node. */
static inline reading rws__node_read(rws_engine *e, uint32_t id, uint32_t from)
{
    const uint32_t part = rws__node_part(e, id, from);
    if (part == NONE) return rws__node_gather(e, id, from);
    const node *n = &e->nodes[part];
    return (reading){n->value, node_exp(n), rws__level_map(e, from, n->rows), e->levels[n->rows].n_rows};
}

/* execute.c */
void rws__engine_execute(rws_engine *e); /* computes what was asked for, and what that needs */

/* explain.c: after a call has refused rows, fails the pass if a path or the table needs one of them */
void rws__call_explain(rws_engine *e, uint32_t call);

/* explain.c: fails the pass and returns true if the op of a node has a message for this row of its level */
bool rws__node_explain(rws_engine *e, uint32_t id, uint32_t row);

/* host.c: all do nothing for an engine without a host. */
void rws__host_enter(rws_engine *e);
void rws__host_leave(rws_engine *e);
void rws__host_resume(rws_path *path); /* runs a path until it waits or ends */
void rws__host_wait(rws_path *path);   /* on the path: waits until it is resumed */
void rws__host_escape(rws_path *path); /* on a path that goes no further; may return, if the host has no way */
void rws__host_abandon(rws_engine *e); /* after a pass that failed: every waiting path leaves its frames */
void rws__host_forget(rws_engine *e);  /* before paths are freed */

/* execute.c: to be called before each call, forward and backward, and, with NULL, when every path waits. Leaves the pass if
 * the watch says so. */
void rws__engine_check_stop(rws_engine *e, const rws_call *k);

/* schedule.c: stops the pass. The function that runs it returns the status of the first failure. */
_Noreturn void rws__engine_fail(rws_engine *e, rws_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
_Noreturn void rws__engine_no_memory(void *engine); /* RWS_NO_MEMORY; what the engine's arena does without memory */

/* Executes a statement from which rws__engine_fail comes back here. Every public function that may fail, or allocate,
 * enters the engine so. Calls of such functions within one another leave by the outermost. */
#define RWS_ENTER(e, statement)                 \
    do {                                        \
        if ((e)->entered) {                     \
            statement;                          \
            break;                              \
        }                                       \
        (e)->entered = true;                    \
        if (setjmp((e)->leave) == 0) statement; \
        (e)->entered = false;                   \
    } while (0)

/* How the last statement ended. */
static inline rws_status rws__engine_status(const rws_engine *e, rws_error *err)
{
    if (e->status != RWS_OK && err) *err = e->error;
    return e->status;
}

_Noreturn void rws__path_fail(rws_path *path, rws_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
_Noreturn void rws__path_overflows(rws_path *path);                     /* record.c */
void           rws__path_need(rws_path *path, const rws_var *v, int n); /* returns when they have been computed */

/* scores.c */
void     rws__scores_make(rws_engine *e);
void     rws__level_request(rws_engine *e, uint32_t at); /* asks for its terms that are not in its totals */
void     rws__level_sum(rws_engine *e, uint32_t at);     /* adds them, and at first those of the levels above */
double   rws__row_weight(const rws_engine *e, uint32_t at, uint32_t row); /* the log-weight by its totals */
uint32_t rws__scores_place(const rws_engine *e, uint32_t at); /* place in the table of a row, counted over all ends */
void     rws__scores_output(rws_engine *e, int slot);

/* The level before a level on the way of a row, and the row there; NONE: there is none. */
uint32_t     rws__level_before(const rws_engine *e, uint32_t at, uint32_t *row);
origin       rws__scores_origin(rws_engine *e, int row); /* where a row of the table comes from */
const float *rws__value_at(rws_engine *e, uint32_t level, uint32_t row,
                           uint32_t id); /* of a node, for a row of a level */

/* sums.c: the particles of the table's rows, if a site was summed */
void rws__sums_make(rws_engine *e);
void rws__scores_columns(rws_engine *e, rws_scores *s); /* scores.c: what is to be filled in for s->n rows */

/* What is added to the ordinals of draws at a level: where particles were divided into other numbers of rows they draw others. */
static inline uint32_t sums_ordinal(const level *l)
{
    return (l->width - 1) * 0x9e3779b0u;
}

/* choices.c: what a pass does with rws_pass.given before and after its programs; and whether this path, which has ended,
 * has not taken all choices that are given for the datum. */
void rws__given_begin(rws_engine *e);
void rws__given_end(rws_engine *e);
bool rws__given_missing(const rws_engine *e, const rws_path *path, uint32_t datum);

/* choices.c: sets the value of a visit and returns true if one is given for the site. */
bool rws__given_take(rws_path *path, rws_visit *v);

/* jump.c: the program uses v, or records it, in a way that has no derivative. Returns unless the pass must begin anew. */
typedef enum { JUMP_BRANCH, JUMP_LOOK, JUMP_OP } jump;
void rws__path_jumps(rws_path *path, rws_var v, jump how);
void rws__jumps_begin(rws_engine *e);
void rws__jumps_end(rws_engine *e); /* all programs have ended */

/* schedule.c: parts the path before the library call that it executes: row i belongs to part[i] in 0 … n_parts - 1, and
 * no part is empty. This path continues as part 0; the others execute the call themselves. */
void rws__path_split(rws_path *path, const uint32_t *part, uint32_t n_parts);

/* schedule.c: whether the scoring side has not visited a site, or not as often as the other side; sets which. And rows of a
 * level as a level below it. */
bool     rws__path_missing(rws_path *path, uint32_t *site, uint32_t *visit);
uint32_t rws__level_subset(rws_engine *e, uint32_t from, const uint32_t *rows, uint32_t n);

/* scores.c: the datum, from 0, that a row of a level belongs to. to_base: the map to the data, rws__level_map. */
uint32_t rws__row_datum(rws_engine *e, uint32_t level, const uint32_t *to_base, uint32_t row);

/* series.c */
bool         rws__series_find(rws_path *path, int field, rws_visit *v);
void         rws__series_put(rws_path *path, int field, const rws_visit *v);
void         rws__series_expect(rws_path *path, int field, const rws_visit *v);
void         rws__series_check_data(rws_engine *e, int field);
void         rws__series_check_end(rws_path *path, int field);
uint32_t     rws__series_visits(const rws_path *path, int field);
const float *rws__series_dream(rws_engine *e, const rws_path *path, origin o, int field);

/* seen.c: the number of a field that the program may read; the place in path.field of the node that it reads */
int      rws__field_to_read(rws_path *path, const char *field, const char *function);
uint32_t rws__field_place(const rws_path *path, int field);

/* seen.c: stops with a message if the model uses a value that the guide has made of an observed field. */
void rws__path_expect_unseen(rws_path *path, rws_var v);

/* trace.c: adds an entry at the site that is being visited */
void rws__trace_add(rws_path *path, const rws_visit *v);

/* trace.c: whether a visit can observe this number: a choice, or zeros and ones and grey values between; and what is expected, as
 * the end of a message. */
bool        rws__visit_fits(const rws_visit *v, float x);
const char *rws__visit_expects(const rws_visit *v, char out[static 80]);

/* trace.c */
bool        rws__path_draws(const rws_path *path);    /* the side that is executed draws, and the other one scores */
bool        rws__site_is_field(const rws_path *path); /* the site that is being visited */
const char *rws__site_text(const rws_engine *e, uint32_t site, uint32_t visit, char out[static 160]);
const char *rws__side_name(rws_side side); /* "model", "guide"; "program" if it is neither */
const char *rws__path_where(const rws_path *path, char out[static 240]); /* "the guide, after site …" */

/* Whether a node's parameter is of one of the groups and not frozen there. */
static inline bool param_moves(const rws_param *p, const rws_op_args *args, unsigned groups)
{
    return (groups & ~args->frozen) >> p->group & 1;
}

/* Whether the path has visited the site of a field; and the bytes of the bitmap that the engine's fields use. */
static inline bool field_seen(const rws_path *path, int field)
{
    return path->fields_seen[field / 64] >> field % 64 & 1;
}

static inline size_t fields_seen_bytes(const rws_engine *e)
{
    return ((size_t)e->n_fields + 63) / 64 * sizeof(uint64_t);
}

/* Whether the pass has data: a wake pass, and a sleep pass of a model with inputs. */
static inline bool pass_has_data(const rws_engine *e)
{
    return e->pass.mode != RWS_SLEEP || e->pass.fields;
}

/* Whether a pass is given the numbers of a field: in a sleep pass those of inputs only. */
static inline bool field_is_given(const rws_engine *e, int field)
{
    return e->pass.mode != RWS_SLEEP || (e->pass.fields && e->fields[field].input);
}

/* The rws_var of a node, as a program of this path gets it. */
static inline rws_var path_var(const rws_path *path, uint32_t id)
{
    return (rws_var){id, path->stamp};
}

/* Whether v is a value of this path, or of a program that stands in a loop that it executes a step of. */
bool rws__path_has(const rws_path *path, rws_var v);
void rws__enter(rws_path *path, const char *function); /* begins a library call that is not nested */

/* Stops with a message if v is no value of this path. */
void     rws__path_expect(const rws_path *path, rws_var v, const char *function);
uint64_t rws__hash_name(uint64_t h, const char *name);

#endif
