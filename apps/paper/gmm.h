/* gmm.h - tools that the experiments with the Gaussian mixture share. */
#ifndef RWS_PAPER_GMM_H
#define RWS_PAPER_GMM_H

#include "paper/paper.h"

enum {
    GMM_CONCRETE,
    GMM_RELAX,
    GMM_REINFORCE,
    GMM_VIMCO,
    GMM_WS,
    GMM_WW,
    GMM_DWW,
    GMM_METHODS,
    GMM_K = 4,
};

/* In the order of the figures' legends; NULL-terminated. */
extern const char *const rws_gmm_methods[], *const rws_gmm_names[];
extern const int         rws_gmm_particles[GMM_K];
extern const rws_variant rws_gmm_variants[];

/* Figures and claims of the far start, also for runs with other settings. */
extern const rws_paper_figure rws_gmm_figures[];
extern const rws_claim        rws_gmm_claims[];

/* The same for the near start. */
extern const rws_paper_figure rws_gmm_near_figures[];
extern const rws_claim        rws_gmm_near_claims[];

#define GMM_RUNS(start, methods, particles, seeds, more) \
    RWS_RUNS("gmm", methods, particles, seeds, "100000", "1000", "set start " start "\n" more)

/* The runs of a figure: all methods, and VIMCO with and without its log K. `all` are further lines for all
 * runs, `concrete` further lines for blocks with Concrete. */
#define GMM_SWEEP(start, all, concrete)                                              \
    GMM_RUNS(start, "concrete relax reinforce vimco ws ww dww", "2 5 10 20", "1-10", \
             all concrete "set vimco.vimco_no_logK 0 1\n")

/* The same with fewer seeds; the slow methods, RELAX and Concrete, have one. */
#define GMM_QUICK(start, all, concrete)                                                                   \
    GMM_RUNS(start, "reinforce vimco ws ww dww", "2 5 10 20", "1-3", all "set vimco.vimco_no_logK 0 1\n") \
    GMM_RUNS(start, "concrete relax", "2 5 10 20", "1", all concrete)

#endif
