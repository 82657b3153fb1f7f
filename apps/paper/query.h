/* query.h - the runs behind claims and figures: those of a method with K particles.
 *
 * Only finished runs count. It draws nothing and is not specific to an experiment.
 *
 *     results -> [query] -> claims, figures
 */
#ifndef RWS_PAPER_QUERY_H
#define RWS_PAPER_QUERY_H

#include "rws_results.h"

/* A setting that runs of one method must have. */
typedef struct {
    const char *method, *key, *value;
} rws_query_own;

typedef struct {
    const rws_results    *results;
    const rws_result_key *where;      /* keys and values that all runs must have; the end has key NULL; may be NULL */
    const rws_query_own  *own;        /* the end has method NULL; may be NULL */
    uint64_t              iterations; /* of the paper; 0: not known */
    bool *starved; /* becomes true if there is no memory for runs or numbers, which are then none; may be NULL */
} rws_query;

/* In ascending order of what decides: the verdict on a claim is the largest of the verdicts on its parts. */
typedef enum { RWS_HOLDS, RWS_UNDECIDED, RWS_UNKNOWN, RWS_FAILS, RWS_VERDICTS } rws_verdict;

extern const char *const rws_verdict_names[]; /* "holds", "undecided", "does not hold", "not enough runs" */

/* The result of checking a claim. Made by rws__finding_new. */
typedef struct {
    rws_verdict verdict;
    int         seeds;         /* of the number that has the fewest seeds */
    char        numbers[2500]; /* the parts, one after the other */
} rws_finding;

rws_finding rws__finding_new(void);

/* Adds a part: its verdict and its numbers. */
void rws__finding_add(rws_finding *f, rws_verdict verdict, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Notes that a number comes from this many seeds. */
void rws__finding_seeds(rws_finding *f, int n);

/* Memory that a query needs for n items of a size, zeroed; the caller frees it. NULL sets *starved. */
void *rws__query_alloc(const rws_query *q, int n, size_t size);

/* Finished runs of the method with K particles (0: any number) and the query's conditions, and their number. The
 * caller frees the list. NULL and 0 without memory. */
const rws_result **rws__query_runs(const rws_query *q, const char *method, int K, int *n);

/* The finished run of the method with K particles that has the lowest seed; NULL if there is none. Method NULL means any
 * method. */
const rws_result *rws__query_first_run(const rws_query *q, const char *method, int K);

/* The last snapshot of that name of this run, or NULL. */
const rws_shot *rws__query_shot(const rws_query *q, const char *method, int K, const char *name);

/* The metric over the iterations; the caller releases it. */
rws_status rws__query_curve(const rws_query *q, const char *method, int K, const char *metric, rws_gathered *out,
                            rws_error *err);

/* Writes what a figure of the runs should say: which reading of a method they have, how many seeds, and how many of the paper's
 * iterations. Returns text. */
char *rws__query_note(const rws_query *q, char *text, size_t size);

/* The most iterations of a finished run. */
uint64_t rws__query_iterations(const rws_query *q);

/* The numbers of particles in the results, in ascending order; at most the first RWS_MAX_K that are found. */
enum { RWS_MAX_K = 16 };

typedef struct {
    int n, K[RWS_MAX_K];
} rws_particles;

rws_particles rws__query_particles(const rws_query *q);

#endif
