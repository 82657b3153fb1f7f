/* state.c - programs that are no functions of their choices. */
#include "planted.h"

#include <stdio.h>

/* ---- a number in a static variable, across choices */

static void static_guide(rws_path *path, const void *state)
{
    static int heads;
    (void)state;
    heads = 0;
    for (int i = 0; i < 4; i++) heads += rws_flip(path, "coin", rws_constant(path, 0.5f * (float)heads));
}

static void coins_model(rws_path *path, const void *state)
{
    (void)state;
    int heads = 0;
    for (int i = 0; i < 4; i++) heads += rws_flip(path, "coin", rws_constant(path, 0));
    rws_normal(path, "x", rws_constant(path, (float)heads), rws_constant(path, 1));
}

/* The guide names its sites by a counter that other executions move. */
static void counted_guide(rws_path *path, const void *state)
{
    static int node;
    (void)state;
    node = 0;
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "coin%d", node);
        node += rws_flip(path, name, rws_constant(path, 0.1f * (float)i)) ? 1 : 4;
    }
}

static void counted_model(rws_path *path, const void *state)
{
    (void)state;
    int node = 0;
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "coin%d", node);
        node += rws_flip(path, name, rws_constant(path, 0)) ? 1 : 4;
    }
    rws_normal(path, "x", rws_constant(path, (float)node), rws_constant(path, 1));
}

/* ---- numbers from elsewhere */

static void rand_model(rws_path *path, const void *state)
{
    const mixture *m = state;
    rws_categorical(path, "z", rws_parameter(path, m->prior));
    rws_normal(path, "x", rws_constant(path, (float)(rand() % 100) / 25), rws_constant(path, 1));
}

static void counter_model(rws_path *path, const void *state)
{
    static int     n;
    const mixture *m = state;
    rws_categorical(path, "z", rws_parameter(path, m->prior));
    rws_normal(path, "x", rws_constant(path, 0.01f * (float)n++), rws_constant(path, 1));
}

const planted planted_state[] = {
    {"a static counter of heads", "state", RWS_MISTAKE, "coin", "local variable", NULL, true, static_guide,
     coins_model},
    {"a static counter in names of sites", "state", RWS_MISTAKE, NULL, "they fail", NULL, true, counted_guide,
     counted_model},
    {"rand() in the model", "random", RWS_MISTAKE, "x", "elsewhere", NULL, true, mixture_guide, rand_model},
    {"a static variable that counts executions", "random", RWS_MISTAKE, "x", "lasts", NULL, true, mixture_guide,
     counter_model},
    {0},
};
