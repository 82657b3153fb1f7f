/* rng.h - random numbers by counter: a draw is a function of its key and counter, never of when it is made.
 *
 * Philox4x32-10 (Random123) turns a key and a 128-bit counter into 128 random bits. The key holds seed, iteration and
 * purpose; the counter holds the datum, the particle and the draw's place on the particle's path. Therefore neither
 * shared rows nor threads nor a resume can change a draw. */
#ifndef RWS_BASE_RNG_H
#define RWS_BASE_RNG_H

#include "rws.h"

typedef struct {
    uint32_t word[2];
} rws_key;

/* The purpose of a key: two uses in one iteration never share a number. */
typedef enum { RWS_KEY_DATA, RWS_KEY_WAKE, RWS_KEY_SLEEP, RWS_KEY_INIT, RWS_KEY_TEST, RWS_KEY_METRIC } rws_purpose;

/* The phase of a key of RWS_KEY_TEST. An enumeration draws nothing; it does not matter that samples have its key. */
enum {
    RWS_TEST_DATA,
    RWS_TEST_BOUND,
    RWS_TEST_DREAM,
    RWS_TEST_QUESTION,
    RWS_TEST_SAMPLE,
    RWS_TEST_ORDER,
    RWS_TEST_CHECK,
    RWS_TEST_TIES,
    RWS_TEST_INPUTS,
};
#define RWS_TEST_ENUMERATION RWS_TEST_SAMPLE

/* The phase of a key of RWS_KEY_INIT. A number never changes its meaning, because a run must begin as it did. */
enum {
    RWS_INIT_PARAMETERS = 0,   /* first values */
    RWS_INIT_MODEL = 1,        /* draws of the model's setup */
    RWS_INIT_DISCOVERY = 3,    /* the pass that finds the sites of an automatic guide, */
    RWS_INIT_GUIDE_SCALE = 4,  /* the data that scale its inputs, */
    RWS_INIT_GUIDE_INPUTS = 5, /* and the inputs of that pass */
};

rws_key rws__key_for(uint64_t seed, uint64_t iteration, rws_purpose purpose, uint32_t phase);

/* Fills out[4 i … 4 i + 3] with the block of counter (c0[i], c1[i], c2, c3). */
void rws__rng_blocks(rws_key key, size_t n, const uint32_t *c0, const uint32_t *c1, uint32_t c2, uint32_t c3,
                     uint32_t *out);

/* The same with an ordinal for each counter. */
void rws__rng_blocks_at(rws_key key, size_t n, const uint32_t *c0, const uint32_t *c1, const uint32_t *c2, uint32_t c3,
                        uint32_t *out);

/* The same for one particle: out[4 i … 4 i + 3] is the block of counter (c0, c1, c2, first + i). */
void rws__rng_row(rws_key key, size_t n, uint32_t c0, uint32_t c1, uint32_t c2, uint32_t first, uint32_t *out);

/* A number in (0, 1): 23 bits and a half, which a float holds exactly, so that neither end is ever reached. */
static inline float rws__unit(uint32_t bits)
{
    return ((float)(int32_t)(bits >> 9) + 0.5f) * 0x1p-23f;
}

/* A sequential stream over blocks of counters, for data and starts. */
struct rws_random {
    rws_key  key;
    uint32_t next;      /* number of the next block */
    uint32_t stream;    /* second counter word */
    uint32_t buffer[4]; /* the words of block next - 1 */
    int      left;      /* words of the buffer that were not used yet */
};

rws_random rws__random_new(rws_key key, uint32_t stream);

#endif
