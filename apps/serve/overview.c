/* overview.c - the route /api: version, addresses, colours of methods, metrics of models, limits. */
#include "figure/style.h"
#include "serve/core.h"

#include <math.h>
#include <stdio.h>

static void write_colour(const rws_colour *colour, rws_buffer *out)
{
    char text[8];
    snprintf(text, sizeof text, "#%02x%02x%02x", (unsigned)lrint(255 * colour->red) & 255,
             (unsigned)lrint(255 * colour->green) & 255, (unsigned)lrint(255 * colour->blue) & 255);
    rws__buffer_text(out, text);
}

static void write_styles(rws_buffer *out)
{
    rws__buffer_open_key(out, "methods", '[');
    for (const rws_style *s = rws_styles; s->method; s++) {
        rws__buffer_open(out, '{');
        rws__buffer_key_text(out, "method", s->method);
        rws__buffer_key_text(out, "name", s->name);
        rws__buffer_key(out, "colour");
        write_colour(&s->colour, out);
        rws__buffer_key(out, "dash");
        rws__buffer_numbers(out, s->dash, s->n_dash);
        rws__buffer_close(out, '}');
    }
    rws__buffer_close(out, ']');
}

/* The meaning of the metrics of built-in models. */
static void write_models(rws_buffer *out)
{
    rws__buffer_open_key(out, "models", '{');
    for (int i = 0; rws_model_at(i); i++) {
        const rws_model *m = rws_model_at(i);
        rws__buffer_open_key(out, m->name, '{');
        for (const rws_metric *metric = m->metrics; metric && metric->name; metric++) {
            rws__buffer_key_text(out, metric->name, metric->help);
        }
        rws__buffer_close(out, '}');
    }
    rws__buffer_close(out, '}');
}

static void write_limits(const rws_core *c, rws_buffer *out)
{
    const struct {
        const char *name;
        double      value;
    } limits[] = {{"body_bytes", RWS_MAX_BODY},
                  {"points", RWS_MAX_POINTS},
                  {"particles", c->limits.particles},
                  {"particles_in_all", c->limits.work},
                  {"data", c->limits.data},
                  {"samples", c->limits.samples},
                  {"seconds", c->options.max_seconds},
                  {"connections", RWS_MAX_CONNECTIONS},
                  {"watchers", RWS_MAX_WATCHERS}};
    rws__buffer_open_key(out, "limits", '{');
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        rws__buffer_key_number(out, limits[i].name, limits[i].value);
    }
    rws__buffer_close(out, '}');
}

bool rws__answer_overview(rws_core *c, const rws_request *r, rws_reply *reply)
{
    rws_buffer *out = &reply->body;
    (void)r;
    rws__buffer_open(out, '{');
    rws__buffer_key_text(out, "version", RWS_VERSION_STRING);
    rws__buffer_open_key(out, "folders", '[');
    for (int i = 0; i < c->options.n_folders; i++) rws__buffer_text(out, c->options.folders[i]);
    rws__buffer_close(out, ']');
    rws__buffer_open_key(out, "routes", '[');
    for (const rws_route *route = rws_routes; route->method; route++) {
        char text[128];
        snprintf(text, sizeof text, "%s %s", route->method, route->path);
        rws__buffer_text(out, text);
    }
    rws__buffer_close(out, ']');
    write_styles(out);
    write_models(out);
    write_limits(c, out);
    rws__buffer_close(out, '}');
    return rws__reply_end(reply, "application/json");
}
