/* air.h - figures and claims that the experiments with attend, infer, repeat share. */
#ifndef RWS_PAPER_AIR_H
#define RWS_PAPER_AIR_H

#include "paper/paper.h"

extern const rws_paper_figure rws_air_figures[];
extern const rws_claim        rws_air_claims[];

#endif
