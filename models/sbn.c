/* sbn.c - sigmoid belief networks (Mnih and Rezende 2016): layers of binary units, each drawn from the one above.
 *
 *     model   h_n -> … -> h_2 -> h_1 -> x         p(h_n) = Bern(sigmoid(a)), the others Bern(sigmoid(W (2h - 1) + b))
 *     guide   x -> h_1 -> h_2 -> … -> h_n         q(h_1|x) = Bern(sigmoid(V psi(x) + c)), the others as above
 *
 * Inputs of every map are signs, 2h - 1; psi centres the pixels. A parameter has the name of its output: "theta.x" is
 * the map from h_1 to the pixels, "phi.h1" the map from the pixels to h_1.
 */
#include "models/corpora/mnist.h"
#include "models/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_LAYERS 16
#define MAX_UNITS 10000
#define CLIP 1e-4 /* least mean of a pixel, whose logit is where the pixel's bias starts */

/* Binary images. */
typedef struct {
    int      n;
    uint8_t *pixels; /* n x n_pixels */
} images;

typedef struct {
    int        n_pixels, n_layers, size[MAX_LAYERS]; /* size[0]: units of h_1, next to the pixels */
    bool       half;                                 /* psi(x) = (x - mean + 1) / 2 instead of x - mean */
    images     train, test;                          /* n = 0: data are noise */
    float     *mean;                                 /* n_pixels */
    rws_param *prior;                                /* a */
    rws_layer *up[MAX_LAYERS], *down[MAX_LAYERS];    /* up: into h_{i+1}; down: from h_{i+1} into h_i or the pixels */
    char       site[MAX_LAYERS][16];
} sbn;

static const rws_setting settings[] = {
    {"layers", "200,200,200", 0, 0, "units of each layer, from the pixels upwards"},
    {"sbn_center", "mean", 0, 0, "what the guide sees: mean (x - mean) or half ((x - mean + 1) / 2)"},
    {"data", "mnist", 0, 0, "mnist, or noise (every pixel a fair coin)"},
    {"pixels", "784", 1, 100000, "pixels of an image; only with data=noise", true},
    {0},
};

static rws_status read_layers(const char *text, sbn *m, rws_error *err)
{
    const char *at = text;
    do {
        char      *end;
        const long units = strtol(at, &end, 10);
        if (end == at || units < 1 || units > MAX_UNITS || (*end && *end != ',') || m->n_layers == MAX_LAYERS)
            return rws_fail(err, RWS_BAD_INPUT,
                            "layers are 1 to %d numbers of 1 to %d units with commas between them, not \"%s\".",
                            MAX_LAYERS, MAX_UNITS, text);
        m->size[m->n_layers++] = (int)units;
        at = *end ? end + 1 : NULL;
    } while (at);
    return RWS_OK;
}

static rws_status read_images(rws_setup *s, rws_mnist_subset part, images *out, rws_error *err)
{
    float           *pixels;
    const rws_status status = rws__mnist_binary(part, &pixels, &out->n, err);
    if (status != RWS_OK) return status;
    const size_t size = (size_t)out->n * RWS_MNIST_PIXELS;
    out->pixels = rws_setup_alloc(s, size);
    for (size_t i = 0; i < size && out->pixels; i++) out->pixels[i] = pixels[i] > 0;
    free(pixels);
    return out->pixels ? RWS_OK : rws_no_memory(err, "the images");
}

/* Computes the mean image and starts the bias of the pixels there. */
static rws_status centre(rws_setup *s, sbn *m, rws_error *err)
{
    const size_t n = (size_t)m->n_pixels;
    float       *bias = m->down[0] ? rws__declared_values(rws_layer_bias(m->down[0])) : NULL;
    m->mean = rws_setup_alloc(s, n * sizeof *m->mean);
    if (!m->mean || !bias) return rws_no_memory(err, "the mean image");
    for (int i = 0; i < m->train.n; i++)
        for (size_t j = 0; j < n; j++) m->mean[j] += m->train.pixels[(size_t)i * n + j]; /* whole numbers, exact */
    for (size_t j = 0; j < n; j++) {
        m->mean[j] = m->train.n ? m->mean[j] / (float)m->train.n : 0.5f;
        const double p = fmin(fmax((double)m->mean[j], CLIP), 1 - CLIP);
        bias[j] = (float)log(p / (1 - p));
    }
    return RWS_OK;
}

/* A map of theta or phi whose output is `what`. */
static rws_layer *map_to(rws_setup *s, rws_group group, const char *what, int n_in, int n_out)
{
    char name[32];
    snprintf(name, sizeof name, "%s.%s", group == RWS_THETA ? "theta" : "phi", what);
    return rws_setup_linear(s, group, name, n_in, n_out, RWS_UNIFORM);
}

static void make_maps(rws_setup *s, sbn *m)
{
    const int top = m->n_layers - 1;
    char      name[32];
    for (int i = 0; i <= top; i++) snprintf(m->site[i], sizeof m->site[i], "h%d", i + 1);
    snprintf(name, sizeof name, "theta.%s.bias", m->site[top]);
    m->prior = rws_setup_param(s, RWS_THETA, name, 1, m->size[top], RWS_ZERO);
    for (int i = top; i >= 0; i--)
        m->down[i] = map_to(s, RWS_THETA, i ? m->site[i - 1] : "x", m->size[i], i ? m->size[i - 1] : m->n_pixels);
    for (int i = 0; i <= top; i++)
        m->up[i] = map_to(s, RWS_PHI, m->site[i], i ? m->size[i - 1] : m->n_pixels, m->size[i]);
}

static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)random;
    sbn *m = rws_setup_alloc(s, sizeof *m);
    if (!m) return rws_no_memory(err, "the belief network");
    bool noise;
    RWS_TRY(rws__setting_either(s, "sbn_center", "mean", "half", &m->half, err));
    RWS_TRY(rws__setting_either(s, "data", "mnist", "noise", &noise, err));
    m->n_pixels = rws_setup_int(s, "pixels");
    if (!noise && m->n_pixels != RWS_MNIST_PIXELS)
        return rws_fail(err, RWS_BAD_INPUT, "pixels is for data=noise; images of mnist have %d.", RWS_MNIST_PIXELS);
    RWS_TRY(read_layers(rws_setup_text(s, "layers"), m, err));
    if (!noise) RWS_TRY(read_images(s, RWS_SUBSET_TRAIN, &m->train, err));
    if (!noise) RWS_TRY(read_images(s, RWS_SUBSET_TEST, &m->test, err));
    rws_setup_field(s, "x", m->n_pixels);
    make_maps(s, m);
    *state = m;
    return centre(s, m, err);
}

/* Batches are drawn with replacement. */
static rws_status data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                       float *const *fields, rws_error *err)
{
    const sbn    *m = state;
    const images *from = split == RWS_TRAIN ? &m->train : &m->test;
    const size_t  width = (size_t)m->n_pixels, size = (size_t)n * width;
    if (from->n == 0) {
        rws_random_uniforms(random, size, fields[0]);
        for (size_t i = 0; i < size; i++) fields[0][i] = fields[0][i] < 0.5f;
        return RWS_OK;
    }
    if (split == RWS_TEST && first + (uint64_t)n > (uint64_t)from->n)
        return rws_fail(err, RWS_BAD_INPUT, "There are %d test images; `n_test` asks for more.", from->n);
    for (int i = 0; i < n; i++) {
        const uint64_t number = split == RWS_TEST ? first + (uint64_t)i : rws_random_below(random, (uint32_t)from->n);
        const uint8_t *image = from->pixels + number * width;
        for (size_t j = 0; j < width; j++) fields[0][(size_t)i * width + j] = image[j];
    }
    return RWS_OK;
}

/* ---- the two programs */

static rws_var signs(rws_path *path, rws_var h)
{
    return rws_affine(path, h, 2, -1);
}

static void guide(rws_path *path, const void *state)
{
    const sbn *m = state;
    rws_var    x = rws_observed(path, "x"), in = rws_sub(path, x, rws_constants(path, m->mean, m->n_pixels));
    if (rws_reports_all(path)) rws_report(path, "seen", x);
    if (m->half) in = rws_affine(path, in, 0.5f, 0.5f);
    for (int i = 0; i < m->n_layers; i++)
        in = signs(path, rws_bernoulli(path, m->site[i], rws_linear(path, m->up[i], in)));
}

static void model(rws_path *path, const void *state)
{
    const sbn *m = state;
    int        i = m->n_layers - 1;
    rws_var    h = rws_bernoulli(path, m->site[i], rws_parameter(path, m->prior));
    for (; i > 0; i--) h = rws_bernoulli(path, m->site[i - 1], rws_linear(path, m->down[i], signs(path, h)));
    const rws_var logits = rws_linear(path, m->down[0], signs(path, h));
    if (rws_reports_all(path)) rws_report(path, "picture", rws_apply(path, RWS_SIGMOID, logits));
    rws_bernoulli(path, "x", logits);
}

const rws_model rws_model_sbn = {
    .abi = RWS_ABI,
    .name = "sbn",
    .help = "sigmoid belief network: layers of binary units over binary images",
    .settings = settings,
    .defaults = {.batch = 24,
                 .particles = 5,
                 .iterations = 1000000,
                 .eval_every = 10000,
                 .n_test = 1000,
                 .optimiser = "adam",
                 .lr = "3e-4",
                 .shards = 2,
                 .at_once = 2000,
                 .pictures = 10},
    .setup = setup,
    .data = data,
    .guide = guide,
    .model = model,
};
