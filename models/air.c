/* air.c - Attend, Infer, Repeat: an image shows an unknown number of objects, each at a place of its own.
 *
 *     n ~ steps, for each of n objects:  where ~ N(mu_n, sd_n),  what ~ N(0, I),  glimpse = decoder(what)
 *     x ~ Bernoulli(picture of the glimpses at their places),  or  N(sum of the glimpses at their places, 0.3^2)
 *
 * The guide finds one object after the other. A recurrent network decides from the image and from the objects found so
 * far whether there is one more (site "more") and where it is ("where"); from the glimpse at that place the guide
 * decides what it is ("what").
 *
 * Both programs visit "more" before every object, so that n objects are n times 1 and then a 0. After max_steps objects
 * there is no further visit, except with a geometric prior: its p(n) = s^n (1 - s) is not cut off at max_steps, so that
 * "more" is visited once more and the guide gives 0 there. If the model draws a 1 there in a dream, n stays max_steps.
 */
#include "models/corpora/canvas.h"
#include "models/corpora/idx.h"
#include "models/model.h"
#include "models/picture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STEPS 4
#define DARK -88.0f    /* logit of a probability that is 0 in float32 */
#define SMALLEST 1e-4f /* least scale of a window, and least probability of a pixel of the mean image */
#define LEAST_SD 0.01f
#define PIXEL_SD 0.3f   /* of a pixel with likelihood=normal */
#define SCALE 0.5f      /* of a window, unless the setting says another; the table below has it as text */
#define PRIOR_HIDDEN 10 /* hidden units of the network of p(where | n) */

typedef enum { CATEGORICAL, GEOMETRIC_ANNEAL, GEOMETRIC_FIXED } step_prior;

typedef struct {
    int          canvas, glimpse, what, steps, free; /* sides and lengths; `free`: random coordinates of where */
    float        scale;                              /* of a window whose scale is not random */
    bool         gray, normal, learned, constant;    /* air_gray, likelihood=normal, where=learned, bg=const */
    step_prior   prior;
    rws_canvases train, test;

    rws_param *logits;              /* theta: logits of n */
    rws_param *start, *mean, *dark; /* start of p(where | n); mean image and its background, or the one logit */
    rws_layer *prior_in, *prior_x, *prior_h, *prior_out, *decoder;
    rws_param *h0; /* phi */
    rws_layer *encoder, *cell, *more, *where, *what_net;
} air;

static const rws_setting settings[] = {
    {"images", "digits", 0, 0,
     "digits (0 to 2 of MNIST's on 50 x 50 pixels, see rws data), blocks (rectangles, drawn at the start), or a "
     "file that rws data multimnist --out wrote"},
    {"air_gray", "0", 0, 1, "1: grey images, as the authors' code; 0: black and white, drawn anew each time", true},
    {"likelihood", "bernoulli", 0, 0, "bernoulli, or normal: grey images, with the sum of the glimpses as mean"},
    {"steps", "categorical", 0, 0, "p(n): categorical (learned), geometric_anneal or geometric_fixed"},
    {"where", "learned", 0, 0, "p(where | n): learned, or fixed (N(0, 1))"},
    {"bg", "image", 0, 0, "background, with likelihood=bernoulli: image (learned, by pixel) or const (one logit)"},
    {"canvas", "50", 4, 200, "side of an image; digits come on 50, those of a file on its own", true},
    {"glimpse", "20", 2, 100, "side of a glimpse", true},
    {"what", "50", 1, 1000, "length of an object's code, site what", true},
    {"max_steps", "3", 1, MAX_STEPS, "most objects in an image", true},
    {"hidden", "256", 4, 4096, "units of a hidden layer; the network of site more has half and a quarter of them",
     true},
    {"free", "4", 1, 4, "random coordinates of where: 4 (scales and shifts), 2 (shifts) or 1 (shift across)", true},
    {"scale", "0.5", 0.01, 1, "scale of a window, where free is 1 or 2"},
    {0},
};

/* ---- images */

/* Canvases with bright rectangles with a grey rim in the place of digits. */
static rws_status draw_blocks(int canvas, rws_split split, int n, rws_canvases *out, rws_error *err)
{
    enum { KINDS = 16 };
    const int side = canvas < 8 ? 2 : 2 * canvas / 5;
    uint8_t   labels[KINDS] = {0}, *pixels = calloc(KINDS, (size_t)side * (size_t)side);
    if (!pixels) return rws_no_memory(err, "blocks");
    for (int b = 0; b < KINDS; b++) {
        const int rows = side - b % 4 * side / 8, cols = side - b / 4 * side / 8;
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < cols; j++) {
                const bool rim = i == 0 || j == 0 || i == rows - 1 || j == cols - 1;
                pixels[(b * side + i) * side + j] = rim ? 128 : 255;
            }
    }
    const rws_digits digits = {KINDS, side, side, pixels, labels};
    const rws_status status = rws__canvases_draw(&digits, split, n, canvas, 2, 0, NULL, NULL, out, err);
    free(pixels);
    return status;
}

static rws_status open_images(rws_setup *s, air *m, rws_error *err)
{
    const char *images = rws_setup_text(s, "images"), *path = NULL; /* NULL: the file of rws data multimnist */
    if (strcmp(images, "blocks") == 0) {
        RWS_TRY(draw_blocks(m->canvas, RWS_TRAIN, 4000, &m->train, err));
        return draw_blocks(m->canvas, RWS_TEST, 1000, &m->test, err);
    }
    if (strcmp(images, "digits") != 0 && !(path = rws_setup_path(s, "images")))
        return rws_no_memory(err, "the path of a file");
    RWS_TRY(rws__canvases_open(path, RWS_TRAIN, &m->train, err));
    RWS_TRY(rws__canvases_open(path, RWS_TEST, &m->test, err));
    if (m->train.size != m->canvas || m->test.size != m->canvas)
        return rws_fail(err, RWS_BAD_INPUT,
                        "canvas is %d, but the canvases of digits have a side of %d: set canvas to %d.", m->canvas,
                        m->train.size, m->train.size);
    return RWS_OK;
}

static void release(void *state)
{
    air *m = state;
    if (!m) return;
    rws__canvases_release(&m->train);
    rws__canvases_release(&m->test);
}

static size_t n_pixels(const air *m)
{
    return (size_t)m->canvas * (size_t)m->canvas;
}

/* An image as a datum: grey, or with pixels that are 1 with probability grey / 255. Only a pixel that is neither 0 nor
 * 255 takes a random number. */
static void to_datum(const air *m, const uint8_t *pixels, rws_random *random, float *x)
{
    const size_t n = n_pixels(m);
    for (size_t i = 0; i < n; i++) x[i] = (float)pixels[i] * (1.0f / 255);
    if (m->gray) return;
    float  u[256];
    size_t at = sizeof u / sizeof *u;
    for (size_t i = 0; i < n; i++) {
        if (pixels[i] == 0 || pixels[i] == 255) continue;
        if (at == sizeof u / sizeof *u) rws_random_uniforms(random, at, u), at = 0;
        x[i] = u[at++] < x[i];
    }
}

/* Training images are drawn with replacement; test images come in their order. */
static rws_status data(const void *state, rws_split split, uint64_t first, int n, rws_random *random,
                       float *const *fields, rws_error *err)
{
    const air          *m = state;
    const rws_canvases *from = split == RWS_TRAIN ? &m->train : &m->test;
    const size_t        size = n_pixels(m);
    if (split == RWS_TEST && first + (uint64_t)n > (uint64_t)from->n)
        return rws_fail(err, RWS_BAD_INPUT,
                        "There are %d test images, fewer than the %llu that are needed; lower `n_test`.", from->n,
                        (unsigned long long)first + (unsigned long long)n);
    for (int i = 0; i < n; i++) {
        const size_t image =
            split == RWS_TRAIN ? rws_random_below(random, (uint32_t)from->n) : (size_t)first + (size_t)i;
        to_datum(m, from->pixels + image * size, random, fields[0] + (size_t)i * size);
        fields[1][i] = from->counts[image];
    }
    return RWS_OK;
}

/* The mean of the training images, pixel by pixel. */
static rws_status mean_image(const air *m, float *out, rws_error *err)
{
    const size_t size = n_pixels(m), n = (size_t)m->train.n;
    uint64_t    *sum = calloc(size, sizeof *sum);
    if (!sum) return rws_no_memory(err, "the mean image");
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < size; j++) sum[j] += m->train.pixels[i * size + j];
    for (size_t j = 0; j < size; j++) out[j] = (float)((double)sum[j] / (255.0 * (double)n));
    free(sum);
    return RWS_OK;
}

/* ---- setup */

static rws_status read_settings(rws_setup *s, air *m, rws_error *err)
{
    static const char *const priors[] = {"categorical", "geometric_anneal", "geometric_fixed", NULL};
    int                      prior;
    bool                     fixed;
    RWS_TRY(rws__setting_word(s, "steps", priors, &prior, err));
    RWS_TRY(rws__setting_either(s, "where", "learned", "fixed", &fixed, err));
    RWS_TRY(rws__setting_either(s, "bg", "image", "const", &m->constant, err));
    RWS_TRY(rws__setting_either(s, "likelihood", "bernoulli", "normal", &m->normal, err));
    m->prior = (step_prior)prior;
    m->learned = !fixed;
    m->gray = m->normal || rws_setup_int(s, "air_gray");
    m->canvas = rws_setup_int(s, "canvas");
    m->glimpse = rws_setup_int(s, "glimpse");
    m->what = rws_setup_int(s, "what");
    m->steps = rws_setup_int(s, "max_steps");
    m->free = rws_setup_int(s, "free");
    m->scale = (float)rws_setup_number(s, "scale");
    if (m->free == 3) return rws_fail(err, RWS_BAD_INPUT, "free is 1, 2 or 4, not 3.");
    if (m->free == 4 && m->scale != SCALE)
        return rws_fail(err, RWS_BAD_INPUT, "scale is for free=1 and free=2; with free=4 the scales are random.");
    if (m->normal && m->constant)
        return rws_fail(err, RWS_BAD_INPUT,
                        "bg is for likelihood=bernoulli; with likelihood=normal the background is black.");
    return RWS_OK;
}

static rws_status declare_model(rws_setup *s, air *m, int hidden, rws_error *err)
{
    const int pixels = (int)n_pixels(m), glimpse = m->glimpse * m->glimpse;
    if (m->prior == CATEGORICAL) m->logits = rws_setup_param(s, RWS_THETA, "theta.steps", 1, m->steps + 1, RWS_ZERO);
    if (m->learned) {
        m->start = rws_setup_param(s, RWS_THETA, "theta.where.start", 1, m->free, RWS_ZERO);
        m->prior_in = rws_setup_linear(s, RWS_THETA, "theta.where.in", m->free + m->steps, PRIOR_HIDDEN, RWS_TRUNCATED);
        m->prior_x = rws_setup_linear(s, RWS_THETA, "theta.where.x", PRIOR_HIDDEN, m->free, RWS_TRUNCATED);
        rws_setup_unused(s,
                         "theta.where.x.weight"); /* its input is zero at the first object, and there may be no other */
        m->prior_h = rws_setup_linear(s, RWS_THETA, "theta.where.h", PRIOR_HIDDEN, m->free, RWS_TRUNCATED);
        m->prior_out = rws_setup_linear(s, RWS_THETA, "theta.where.out", m->free, 2 * m->free, RWS_TRUNCATED);
    }
    m->decoder = rws_setup_mlp(s, RWS_THETA, "theta.decoder", RWS_ELU, RWS_TRUNCATED,
                               (int[]){m->what, hidden, hidden, glimpse}, 4);
    if (m->normal) return RWS_OK; /* the background is black */
    m->dark = rws_setup_param(s, RWS_THETA, "theta.background", 1, m->constant ? 1 : pixels, RWS_ZERO);
    float *dark = rws__declared_values(m->dark);
    if (!dark) return rws_no_memory(err, "the background");
    for (int i = 0; i < (m->constant ? 1 : pixels); i++) dark[i] = m->constant ? -5 : -DARK;
    if (m->constant) return RWS_OK;
    m->mean = rws_setup_param(s, RWS_THETA, "theta.mean", 1, pixels, RWS_ZERO);
    float *mean = rws__declared_values(m->mean);
    return mean ? mean_image(m, mean, err) : rws_no_memory(err, "the mean image");
}

static void declare_guide(rws_setup *s, air *m, int hidden)
{
    const int pixels = (int)n_pixels(m), glimpse = m->glimpse * m->glimpse;
    m->h0 = rws_setup_param(s, RWS_PHI, "phi.h0", 1, hidden, RWS_ZERO);
    m->encoder = rws_setup_mlp(s, RWS_PHI, "phi.encoder", RWS_ELU, RWS_TRUNCATED, (int[]){pixels, hidden, hidden}, 3);
    m->cell = rws_setup_rnn(s, RWS_PHI, "phi.cell", hidden + m->what + m->free + 1, hidden, RWS_TRUNCATED);
    m->more =
        rws_setup_mlp(s, RWS_PHI, "phi.more", RWS_ELU, RWS_TRUNCATED, (int[]){hidden, hidden / 2, hidden / 4, 1}, 4);
    m->where =
        rws_setup_mlp(s, RWS_PHI, "phi.where", RWS_ELU, RWS_TRUNCATED, (int[]){hidden, hidden, hidden, 2 * m->free}, 4);
    m->what_net =
        rws_setup_mlp(s, RWS_PHI, "phi.what", RWS_ELU, RWS_TRUNCATED, (int[]){glimpse, hidden, hidden, 2 * m->what}, 4);
}

static rws_status setup(rws_setup *s, rws_random *random, void **state, rws_error *err)
{
    (void)random;
    air *m = rws_setup_alloc(s, sizeof *m);
    *state = m;
    if (!m) return rws_no_memory(err, "the model of images");
    RWS_TRY(read_settings(s, m, err));
    RWS_TRY(open_images(s, m, err));
    rws_setup_field(s, "x", (int)n_pixels(m));
    rws_setup_label(s, "count", 1);
    RWS_TRY(declare_model(s, m, rws_setup_int(s, "hidden"), err));
    declare_guide(s, m, rws_setup_int(s, "hidden"));
    return RWS_OK;
}

/* ---- parts of both programs */

/* The sd of a normal distribution from the output of a network. */
static rws_var to_sd(rws_path *path, rws_var raw)
{
    return rws_affine(path, rws_apply(path, RWS_SOFTPLUS, raw), 1, LEAST_SD);
}

/* Two scales in (0, 1) and two shifts in (-1, 1) from the value of site "where". */
static rws_var coordinates(rws_path *path, const air *m, rws_var where)
{
    const int     shifts = m->free == 1 ? 1 : 2;
    const rws_var scales = m->free == 4
                               ? rws_clip(path, rws_apply(path, RWS_SIGMOID, rws_slice(path, where, 0, 2)), SMALLEST, 1)
                               : rws_constants(path, (float[]){m->scale, m->scale}, 2);
    const rws_var shift = rws_apply(path, RWS_TANH, rws_slice(path, where, m->free - shifts, shifts));
    return rws_concat(path, (rws_var[]){scales, shift, rws_constant(path, 0)}, shifts == 1 ? 3 : 2);
}

/* ---- the model */

/* s of the geometric prior. GEOMETRIC_ANNEAL: near 1 for 1000 iterations, then falling to 1e-5 over 1e5 more. */
static double success(const air *m, uint64_t iteration)
{
    const double first = 1 - 1e-7, last = 1e-5;
    if (m->prior == GEOMETRIC_FIXED) return 0.75;
    const double late = iteration > 1000 ? ((double)iteration - 1000) / 1e5 : 0;
    return fmax(last, first * pow(last / first, late));
}

/* Whether the model draws one more object after n. */
static int one_more(rws_path *path, const air *m, int n)
{
    rws_var logit;
    if (m->prior == CATEGORICAL) {
        const rws_var all = rws_parameter(path, m->logits);
        logit =
            rws_sub(path, rws_log_sum_exp(path, rws_slice(path, all, n + 1, m->steps - n)), rws_slice(path, all, n, 1));
    } else {
        const double s = success(m, rws_iteration(path));
        logit = rws_constant(path, (float)(log(s) - log1p(-s)));
    }
    return rws_flip(path, "more", logit);
}

/* Mean and sd of every "where" given n. The recurrent network that computes them makes one step, from an input of 0. */
static void where_prior(rws_path *path, const air *m, int n, rws_var *mean, rws_var *sd)
{
    float mask[MAX_STEPS] = {0};
    for (int i = 0; i < n; i++) mask[i] = 1;
    *mean = rws_zeros(path, m->free);
    *sd = rws_constant(path, 1);
    if (!m->learned) return;
    const rws_var in[] = {rws_parameter(path, m->start), rws_constants(path, mask, m->steps)};
    const rws_var h = rws_apply(path, RWS_ELU, rws_linear_parts(path, m->prior_in, in, 2));
    const rws_var y = rws_apply(
        path, RWS_TANH,
        rws_add(path, rws_linear(path, m->prior_x, rws_zeros(path, PRIOR_HIDDEN)), rws_linear(path, m->prior_h, h)));
    const rws_var out = rws_linear(path, m->prior_out, y);
    *mean = rws_slice(path, out, 0, m->free);
    *sd = to_sd(path, rws_slice(path, out, m->free, m->free));
}

/* front: logits of the background that a glimpse is added to. back: minus the logits of pixels without a glimpse. */
static void background(rws_path *path, const air *m, rws_var *front, rws_var *back)
{
    const rws_var dark = rws_parameter(path, m->dark);
    if (m->constant) {
        *front = rws_add(path, rws_zeros(path, (int)n_pixels(m)), dark);
        *back = rws_affine(path, *front, -1, 0);
        return;
    }
    const rws_var p = rws_clip(path, rws_parameter(path, m->mean), SMALLEST, 1 - SMALLEST);
    *front = rws_sub(path, rws_apply(path, RWS_LOG, p), rws_apply(path, RWS_LOG, rws_affine(path, p, -1, 1)));
    *back = dark;
}

/* A grey image around the sum of the glimpses. */
static void draw_grey(rws_path *path, const air *m, const rws_var *glimpses, const rws_var *places, int n)
{
    rws_var sum = rws_zeros(path, (int)n_pixels(m));
    for (int t = 0; t < n; t++)
        sum = rws_add(path, sum, rws_place(path, glimpses[t], m->glimpse, m->glimpse, places[t], m->canvas, m->canvas));
    if (rws_reports_all(path)) rws_report(path, "picture", rws_clip(path, sum, 0, 1));
    rws_normal(path, "x", sum, rws_constant(path, PIXEL_SD));
}

/* Grey values in the place of zeros and ones, as the authors' code has them: x log p + (1 - x) log(1 - p), which is no density. */
static rws_var grey_density(rws_path *path, rws_var x, const void *logits)
{
    return rws_log_density(path, rws_family_find("bernoulli vector"), x, logits);
}

static rws_var draw_ink(rws_path *path, const void *logits)
{
    return rws_draw_from(path, rws_family_find("bernoulli vector"), logits);
}

static void model(rws_path *path, const void *state)
{
    const air *m = state;
    int        n = 0;
    while (n < m->steps && one_more(path, m, n)) n++;
    if (n == m->steps && m->prior != CATEGORICAL) one_more(path, m, n);
    rws_report(path, "n", rws_constant(path, (float)n));

    rws_var mean, sd, front, back, glimpses[MAX_STEPS], places[MAX_STEPS];
    if (n > 0) where_prior(path, m, n, &mean, &sd);
    for (int t = 0; t < n; t++) {
        places[t] = coordinates(path, m, rws_normal(path, "where", mean, sd));
        const rws_var what = rws_normal(path, "what", rws_zeros(path, m->what), rws_constant(path, 1));
        glimpses[t] = rws_affine(path, rws_mlp(path, m->decoder, what), 0.25f, 0);
        rws_report(path, "where", places[t]);
    }
    if (m->normal) {
        draw_grey(path, m, glimpses, places, n);
        return;
    }
    background(path, m, &front, &back);
    const rws_var logits =
        rws__picture(path, glimpses, places, n, m->glimpse, m->glimpse, front, back, m->canvas, m->canvas);
    if (rws_reports_all(path)) rws_report(path, "picture", rws_apply(path, RWS_SIGMOID, logits));
    if (m->gray) rws_observe(path, "x", grey_density, draw_ink, &logits);
    else rws_bernoulli(path, "x", logits);
}

/* ---- the guide */

static void guide(rws_path *path, const void *state)
{
    const air    *m = state;
    const rws_var x = rws_observed(path, "x"), yes = rws_constant(path, 1);
    if (rws_reports_all(path)) rws_report(path, "seen", x);
    const rws_var e = rws_apply(path, RWS_ELU, rws_mlp(path, m->encoder, x));
    rws_var       h = rws_parameter(path, m->h0), what = rws_zeros(path, m->what), where = rws_zeros(path, m->free);
    int           n = 0;
    for (; n < m->steps; n++) {
        h = rws_rnn(path, m->cell, (rws_var[]){e, what, where, yes}, 4, h);
        if (!rws_flip(path, "more", rws_affine(path, rws_mlp(path, m->more, h), 1, 1))) break;

        const rws_var at = rws_mlp(path, m->where, h);
        where = rws_normal(path, "where", rws_slice(path, at, 0, m->free),
                           to_sd(path, rws_affine(path, rws_slice(path, at, m->free, m->free), 1, -3)));
        const rws_var seen =
            rws_attend(path, x, m->canvas, m->canvas, coordinates(path, m, where), m->glimpse, m->glimpse);
        const rws_var code = rws_mlp(path, m->what_net, seen);
        what = rws_normal(path, "what", rws_slice(path, code, 0, m->what),
                          to_sd(path, rws_slice(path, code, m->what, m->what)));
    }
    if (n == m->steps && m->prior != CATEGORICAL) rws_flip(path, "more", rws_constant(path, DARK));
}

/* ---- images of a user */

/* An image as a datum without random numbers: a pixel above 127 is 1. */
static void to_datum_rounded(const air *m, const uint8_t *pixels, float *x)
{
    for (size_t i = 0; i < n_pixels(m); i++) x[i] = m->gray ? (float)pixels[i] * (1.0f / 255) : pixels[i] > 127;
}

/* Reads "NUMBER", a test image, or "FILE" or "FILE:NUMBER", an image of an IDX file. */
static rws_status read_image(const void *state, const char *text, float *const *fields, rws_error *err)
{
    const air  *m = state;
    const char *colon = strrchr(text, ':');
    char       *end;
    long        number = strtol(colon ? colon + 1 : text, &end, 10);
    const bool  numbered = *end == '\0' && end != (colon ? colon + 1 : text) && number >= 0;
    if (numbered && !colon) {
        if (number >= m->test.n)
            return rws_fail(err, RWS_BAD_INPUT, "There are %d test images, numbered from 0; %ld is not one of them.",
                            m->test.n, number);
        to_datum_rounded(m, m->test.pixels + (size_t)number * n_pixels(m), fields[0]);
        return RWS_OK;
    }
    char *path = strndup(text, numbered ? (size_t)(colon - text) : strlen(text));
    if (!path) return rws_no_memory(err, "the path of a file");
    rws_idx file;
    if (!numbered) number = 0;
    rws_status status = rws__idx_read(path, &file, err);
    if (status == RWS_OK && (file.n_dims != 3 || (int)file.dims[1] != m->canvas || (int)file.dims[2] != m->canvas ||
                             (size_t)number >= file.dims[0]))
        status = rws_fail(err, RWS_BAD_INPUT, "\"%.150s\" does not hold an image %ld of %d x %d pixels.", path, number,
                          m->canvas, m->canvas);
    if (status == RWS_OK) to_datum_rounded(m, file.values + (size_t)number * n_pixels(m), fields[0]);
    rws__idx_release(&file);
    free(path);
    return status;
}

static rws_status see(const void *state, const rws_grey *picture, float *const *fields, rws_error *err)
{
    const air *m = state;
    if (picture->wide != m->canvas || picture->high != m->canvas)
        return rws_fail(
            err, RWS_BAD_INPUT,
            "\"%.150s\" is %d x %d pixels, and the run was trained on %d x %d; scale it to that size, or place "
            "it on a black canvas of it.",
            picture->name, picture->wide, picture->high, m->canvas, m->canvas);
    to_datum_rounded(m, picture->grey, fields[0]);
    return RWS_OK;
}

/* ---- metrics */

static double number_found(const rws_particle *p, const void *state)
{
    (void)state;
    return (double)*rws_particle_report(p, "n", 0);
}

static double counted_right(const rws_particle *p, const void *state)
{
    return number_found(p, state) == (double)*rws_particle_datum(p, "count");
}

static const rws_metric metrics[] = {
    {"count_accuracy", "share of the posterior that has the true number of objects", .posterior = counted_right},
    {"presence", "mean number of objects that the guide proposes", .guide = number_found},
    {0},
};

const rws_model rws_model_air = {
    .abi = RWS_ABI,
    .name = "air",
    .help = "Attend, Infer, Repeat: images of an unknown number of objects",
    .settings = settings,
    .metrics = metrics,
    .defaults = {.batch = 32,
                 .particles = 5,
                 .iterations = 2000000,
                 .eval_every = 10000,
                 .n_test = 500,
                 .optimiser = "rmsprop",
                 .lr = "1e-5,400000:/3,1000000:/3",
                 .shards = 2,
                 .at_once = 2000,
                 .pictures = 10},
    .setup = setup,
    .release = release,
    .data = data,
    .guide = guide,
    .model = model,
    .read = read_image,
    .see = see,
};
