/* paper.h - the experiments of the paper, and the gallery of examples: their runs, figures, claims and tables.
 *
 * An experiment is a sweep (in full, and a quick one with fewer or shorter runs), figures and claims. It reads results;
 * it trains nothing and prints nothing.
 *
 *     sweep -> runs -> results -> [paper] -> figures, findings
 */
#ifndef RWS_PAPER_PAPER_H
#define RWS_PAPER_PAPER_H

#include "paper/compare.h"

typedef struct {
    const char *file;    /* without an ending: "gmm-main" */
    const char *caption; /* one line */
    rws_status (*draw)(const rws_query *q, const char *path, rws_error *err);
    const char *question; /* what the paper's caption says, as a question; NULL: nothing */
    const char *answers;  /* names of the claims that answer it, with blanks between */
} rws_paper_figure;

typedef struct {
    const char          *name;                          /* "G1" */
    const char          *text;                          /* the paper's statement */
    const rws_statement *statements;                    /* comparisons, the end has metrics NULL; or NULL */
    void (*check)(const rws_query *q, rws_evidence *e); /* other comparisons; or NULL */
    bool varies; /* the claim is about a method that has variants in the experiment */
} rws_claim;

/* Another reading of a method, such as VIMCO's baseline in the authors' code. */
typedef struct {
    const char          *name; /* NULL: the experiment's own reading */
    const rws_query_own *own;
} rws_variant;

/* VIMCO's baseline as in the paper, and without its log K. */
extern const rws_variant rws_vimco_variants[];

/* Runs that need a file, which a script among the models of examples/ fetches and which is kept in the cache. */
#define RWS_CORPUS "corpus.csv" /* stands for the file in the sweeps */
typedef struct {
    const char *file, *script; /* the name in the cache; `script FILE` makes it */
    const char *sweep, *quick;
} rws_corpus_runs;

typedef struct {
    const char             *name;     /* on the command line: "gmm-near" */
    const char             *help;     /* one line */
    bool                    code;     /* with the settings of the authors' code, where these differ from the text */
    bool                    examples; /* models are built from examples/, which stands for their folder in a sweep;
                                              not part of "all" */
    const char             *sweep, *quick; /* sweep files (sweep.h) */
    rws_corpus_runs         corpus;        /* more runs, if the file is there or can be fetched; zeros: none */
    uint64_t                iterations;    /* of the paper: runs with less than half of them decide nothing; 0: any */
    const rws_result_key   *where;         /* keys and values that all its runs have */
    const rws_variant      *variants;      /* the experiment's own reading first; the end has own NULL */
    const rws_paper_figure *figures;       /* the end has file NULL */
    const rws_claim        *claims;        /* the end has name NULL */
    /* A Markdown table of results, which the caller frees; it returns NULL without memory. The pointer is NULL if the
     * experiment has no table. */
    char *(*table)(const rws_query *q);
} rws_experiment;

/* A block of an experiment's sweep; `more` are further lines. */
#define RWS_RUNS(model, methods, particles, seeds, iterations, every, more) \
    "model      " model "\n"                                                \
    "methods    " methods "\n"                                              \
    "particles  " particles "\n"                                            \
    "seeds      " seeds "\n"                                                \
    "iterations " iterations "\n"                                           \
    "eval-every " every "\n" more

/* Every experiment, NULL-terminated. */
extern const rws_experiment *const rws_experiments[];
extern const rws_experiment        rws_experiment_gmm, rws_experiment_gmm_code, rws_experiment_gmm_near,
    rws_experiment_gmm_near_code, rws_experiment_gmm_snr, rws_experiment_gmm_tried, rws_experiment_pcfg,
    rws_experiment_air, rws_experiment_air_code, rws_experiment_sbn, rws_experiment_gallery;

/* A claim that was checked. */
typedef struct {
    const rws_experiment *experiment;
    const rws_claim      *claim;
    const char           *variant; /* NULL: as the paper says */
    rws_finding           finding;
} rws_checked;

/* Checks the experiment's claims in all variants that have runs. Writes at most `capacity` of them; returns their
 * number, or -1 without memory. */
int rws__paper_check(const rws_experiment *e, const rws_results *r, rws_checked *out, int capacity);

/* Draws the experiment's figures into the folder, each as PNG, SVG and PDF. */
rws_status rws__paper_draw(const rws_experiment *e, const rws_results *r, const char *folder, rws_error *err)
    __attribute__((warn_unused_result));

/* The experiment's own table of results as Markdown, which the caller frees; NULL if it has none. */
rws_status rws__paper_table(const rws_experiment *e, const rws_results *r, char **out, rws_error *err)
    __attribute__((warn_unused_result));

/* ---- Texts, which the caller frees; NULL without memory. */

/* The whole report as Markdown: what ran, the verdicts, each figure with the answer to its caption, the claims. */
char *rws__paper_document(const rws_experiment *e, const rws_results *r, const rws_checked *claims, int n);

/* One line for each finished run, as CSV: what it is, and the mean of the last ten values of each metric. */
char *rws__paper_csv(const rws_experiment *e, const rws_results *r);

/* The claims as a Markdown table and as a JSON array. */
char *rws__paper_markdown(const rws_checked *claims, int n);
char *rws__paper_json(const rws_checked *claims, int n);

#endif
