#include "program/config.h"

#include "base/error.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMBER(member) #member, .offset = offsetof(rws_config, member)
#define TEXT .kind = RWS_CONFIG_TEXT
#define FLAG .kind = RWS_CONFIG_FLAG
#define INT(low, high) .kind = RWS_CONFIG_INT, .least = (low), .most = (high)
#define COUNT(low, high) .kind = RWS_CONFIG_COUNT, .least = (low), .most = (high)
#define NUMBER(low, high) .kind = RWS_CONFIG_NUMBER, .least = (low), .most = (high)

const rws_config_member rws_config_members[] = {
    {MEMBER(model), .option = "model", TEXT},
    {MEMBER(method), .option = "method", TEXT},
    {MEMBER(particles), .option = "particles", INT(1, RWS_MAX_PARTICLES)},
    {MEMBER(batch), .option = "batch", INT(1, 1000000), .of_sweeps = true},
    {MEMBER(shards), .option = "shards", INT(1, 1024), .of_sweeps = true},
    {MEMBER(particle_shards), .option = "particle-shards", INT(1, 1024), .of_sweeps = true},
    {MEMBER(n_test), .option = "eval-data", INT(1, RWS_MAX_TEST), .of_sweeps = true},
    {MEMBER(eval_particles), .option = "eval-particles", INT(1, RWS_MAX_PARTICLES), .of_sweeps = true},
    {MEMBER(iterations), .option = "iterations", COUNT(1, RWS_MAX_ITERATIONS), .free = true, .of_sweeps = true},
    {MEMBER(eval_every), .option = "eval-every", COUNT(1, RWS_MAX_ITERATIONS), .of_sweeps = true},
    {MEMBER(seed), .option = "seed", COUNT(0, 0)},
    {MEMBER(threads), .option = "threads", INT(1, 1024), .free = true},
    {MEMBER(scalar), .option = "scalar", FLAG},
    {MEMBER(optimiser), .option = "optimiser", TEXT, .of_sweeps = true},
    {MEMBER(lr), .option = "lr", TEXT, .free = true, .of_sweeps = true},
    {MEMBER(l2), .option = "l2", NUMBER(0, 1000000), .of_sweeps = true},
    {MEMBER(resample), .option = "resample", NUMBER(0, 1), .of_sweeps = true},
    {0},
};

const rws_config_member *rws__config_member(const char *option)
{
    const rws_config_member *m = rws_config_members;
    while (m->name && strcmp(m->option, option) != 0) m++;
    return m->name ? m : NULL;
}

const char *rws__config_value(const rws_config_member *m, const rws_config *c, char out[static RWS_CONFIG_VALUE])
{
    const void *at = (const char *)c + m->offset;
    switch (m->kind) {
    case RWS_CONFIG_TEXT: return *(const char *const *)at ? *(const char *const *)at : "";
    case RWS_CONFIG_INT: snprintf(out, RWS_CONFIG_VALUE, "%d", *(const int *)at); break;
    case RWS_CONFIG_COUNT: snprintf(out, RWS_CONFIG_VALUE, "%" PRIu64, *(const uint64_t *)at); break;
    case RWS_CONFIG_FLAG: snprintf(out, RWS_CONFIG_VALUE, "%d", *(const bool *)at); break;
    case RWS_CONFIG_NUMBER:
        snprintf(out, RWS_CONFIG_VALUE, "%.15g", *(const double *)at);
        if (strtod(out, NULL) != *(const double *)at) snprintf(out, RWS_CONFIG_VALUE, "%.17g", *(const double *)at);
        break;
    }
    return out;
}

bool rws__config_has(const rws_config_member *m, const rws_config *c)
{
    char        text[RWS_CONFIG_VALUE];
    const char *value = rws__config_value(m, c, text);
    return m->kind == RWS_CONFIG_TEXT ? value[0] : strcmp(value, "0") != 0;
}

bool rws__config_fits(const rws_config_member *m, const rws_config *c)
{
    const void *at = (const char *)c + m->offset;
    if (!m->most) return true;
    switch (m->kind) {
    case RWS_CONFIG_INT: return *(const int *)at >= (int)m->least && *(const int *)at <= (int)m->most;
    case RWS_CONFIG_COUNT: return *(const uint64_t *)at >= m->least && *(const uint64_t *)at <= m->most;
    case RWS_CONFIG_NUMBER: return *(const double *)at >= (double)m->least && *(const double *)at <= (double)m->most;
    default: return true;
    }
}
