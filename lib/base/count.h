/* count.h - whole numbers as people type them: 1000, 1e5, 2.5e3, 10k, 3M. */
#ifndef RWS_BASE_COUNT_H
#define RWS_BASE_COUNT_H

#include <stdbool.h>
#include <stdint.h>

/* Reads the number at *at and moves past it. False, with *at unmoved, if there is none (a sign, a blank), if it is not
 * whole, or if it does not fit. */
bool rws__count_read(const char **at, uint64_t *out);

#endif
