/* mixing.h - do chains agree, and as how many independent draws do they count?
 *
 *     rws_quantities of states, the states of chains -> [mixing] -> R-hat, effective number of draws
 */
#ifndef RWS_ASK_MIXING_H
#define RWS_ASK_MIXING_H

#include "ask/quantities.h"

typedef struct {
    double r_hat;       /* NaN: there is nothing to compare, or a chain has fewer than 4 draws */
    double n_effective; /* independent draws with the same errors, at most as many as there are draws; NaN as r_hat */
} rws_mixing;

/* The worse of the rank-normalised split R-hat and of that of the folded draws (Vehtari, Gelman, Simpson, Carpenter and Bürkner,
 * 2021), and the effective number of draws by the means of the halves of chains; draws[c * n + t] is draw t of chain c. Numbers
 * that are not finite are refused by NaN, as is no memory. */
rws_mixing rws__mixing_of(const double *draws, int n_chains, int n);

/* The largest R-hat and the smallest effective number of all quantities in a sorted list, whose number k has draws of trace
 * state[c * n + t]; a quantity that a trace does not have counts as lower than any value. `worst` becomes the name of the
 * quantity with the largest R-hat, or "". False without memory. */
bool rws__mixing_worst(const rws_quantities *o, const int *state, int n_chains, int n, rws_mixing *out,
                       char worst[static RWS_QUANTITY_NAME]);

#endif
