/* routes.c - the table of routes, and the description that is made from it: /api/openapi.json.
 *
 * Shapes of JSON are written in a notation of this file:
 *
 *     string   number   integer   boolean   object      a value of this type
 *     number|null                                       a value of one of these types
 *     integer 0..9   integer 0..   string ..99          least and most; of a text its length
 *     string /PATTERN/   =a|b                           a text that fits the pattern; one of these texts
 *     [TYPE]   <TYPE>                                   an array; an object with any keys
 *     {key: TYPE, other?: TYPE}                         an object with these keys, of which `other` may be missing
 *     Run                                               the shape of that name in the table `shapes`
 *
 * A type may be followed by a description in parentheses.
 */
#include "serve/core.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- tables */

#define SELECT "where runs"
#define CURVES "metric since points"
#define COMPARE "metric! x panel log from to points " SELECT

const rws_route rws_routes[] = {
    {"GET", "/api", rws__answer_overview, .id = "overview", .shape = "Overview",
     .summary = "Version, folders, addresses, styles of methods, limits"},
    {"GET", "/api/openapi.json", rws__answer_openapi, .id = "openapi", .summary = "This description"},
    {"GET", "/api/runs", rws__answer_runs, .id = "runs", .query = SELECT, .shape = "Runs",
     .summary = "All runs with their configuration, state, last values and warnings"},
    {"GET", "/api/runs/{run}", rws__answer_run, .id = "run", .shape = "Run", .summary = "One run"},
    {"GET", "/api/runs/{run}/metrics", rws__answer_metrics_of, .id = "metricsOfRun", .query = CURVES, .shape = "Curves",
     .summary = "Curves of a run"},
    {"GET", "/api/runs/{run}/snapshots", rws__answer_snapshots, .id = "snapshots", .shape = "Snapshots",
     .summary = "Distributions, rules and trees of a run at some iterations"},
    {"GET", "/api/runs/{run}/pictures", rws__answer_pictures, .id = "pictures", .shape = "Pictures",
     .summary = "Iterations of which there are pictures"},
    {"GET", "/api/runs/{run}/pictures/{iteration}", rws__answer_picture, .id = "picture", .type = "image/png",
     .summary = "A picture"},
    {"GET", "/api/runs/{run}/ask", rws__answer_askable, .id = "askable", .shape = "Askable",
     .summary = "What can be asked of a run"},
    {"POST", "/api/runs/{run}/infer", rws__answer_infer, .id = "infer", .body = "Question", .shape = "Answers",
     .lines = "The answer; many data are answered line by line.",
     .summary = "The posterior of a datum: answers with their probabilities",
     .examples = "\"numbers\":{\"value\":{\"fields\":{\"x\":30},\"marginals\":true}},"
                 "\"test\":{\"value\":{\"test\":3,\"particles\":200,\"particles_listed\":true,\"top\":2}},"
                 "\"many\":{\"value\":{\"data\":[{\"test\":0},{\"test\":1}],\"particles\":100}},"
                 "\"given\":{\"value\":{\"fields\":{\"x\":30},\"given\":[{\"site\":\"z\",\"visit\":0,\"value\":3}],"
                 "\"particles_listed\":true}}"},
    {"POST", "/api/runs/{run}/sample", rws__answer_sample, .id = "sample", .body = "Sampling", .shape = "Samples",
     .lines = "The answer; with \"Accept: application/x-ndjson\" a line for each sample.",
     .summary = "Samples of the model",
     .examples = "\"three\":{\"value\":{\"n\":3,\"seed\":7,\"particles_listed\":true}}"},
    {"POST", "/api/runs/{run}/score", rws__answer_score, .id = "score", .body = "Scoring", .shape = "Score",
     .summary = "log p(z, x) and log q(z | x) of given choices",
     .examples = "\"gmm\":{\"value\":{\"fields\":{\"x\":30},\"choices\":[{\"site\":\"z\",\"visit\":0,\"value\":3}]}}"},
    {"GET", "/api/metrics", rws__answer_metrics, .id = "metrics", .query = CURVES " " SELECT, .shape = "ManyCurves",
     .summary = "Curves of many runs"},
    {"GET", "/api/compare", rws__answer_compare, .id = "compare", .query = COMPARE, .shape = "Comparison",
     .summary = "Medians and quartiles over seeds"},
    {"GET", "/api/compare.svg", rws__answer_compare_svg, .id = "compareSvg", .query = COMPARE, .type = "image/svg+xml",
     .summary = "The comparison as a figure"},
    {"GET", "/api/compare.pdf", rws__answer_compare_pdf, .id = "comparePdf", .query = COMPARE,
     .type = "application/pdf", .summary = "The comparison as a figure"},
    {"GET", "/api/compare.png", rws__answer_compare_png, .id = "comparePng", .query = COMPARE, .type = "image/png",
     .summary = "The comparison as a figure"},
    {"GET", "/api/compare.csv", rws__answer_compare_csv, .id = "compareCsv", .query = COMPARE, .type = "text/csv",
     .summary = "The comparison as a table"},
    {"GET", "/api/events", rws__answer_events, .id = "events", .query = "after", .type = "text/event-stream",
     .shape = "Changes",
     .summary = "Changes of runs as server-sent events: \"runs\", whose data are as the schema Changes; \"reset\" if "
                "some were missed"},
    {0},
};

/* Arguments of queries and parts of paths. The name ends with ! if a query must have it. */
static const struct {
    const char *name, *shape, *example, *help;
} parameters[] = {
    {"run", "string /^[0-9a-f]{16}$/", NULL, "The id of a run, as in the list of runs."},
    {"iteration", "integer", NULL, "The iteration."},
    {"where", "string", "method=ww",
     "A condition, key=value or key=value,value; the key is one of the configuration, run or state. May be repeated."},
    {"runs", "string", NULL, "Only these runs: ids, separated by commas."},
    {"metric", "string", "log_evidence", "Only these metrics: names, separated by commas."},
    {"metric!", "string", "log_evidence", "The metric."},
    {"since", "integer", "0", "Only evaluations after this iteration."},
    {"points", "integer 3..5000", "200",
     "Most points of a curve; a longer one is downsampled (largest triangle three buckets)."},
    {"x", "=iteration|seconds", "seconds", "The x axis."},
    {"panel", "string", "particles", "The key of the configuration that makes panels; none: no panels."},
    {"log", "string", "x", "Logarithmic axes of a figure: x, y or x,y."},
    {"from", "number", "0", "Only points from this x on."},
    {"to", "number", "1000000", "Only points up to this x."},
    {"after", "integer", "0",
     "The number of the event after which to begin; the header Last-Event-ID takes precedence."},
    {0},
};

#define DATUM                                                                                                   \
    "text?: string ..20000, picture?: {wide: integer, high: integer, grey: [number 0..255]}, fields?: object, " \
    "test?: integer 0.."

static const struct {
    const char *name, *shape;
} shapes[] = {
    {"Error", "{error: string}"},
    {"Overview",
     "{version: string, folders: [string], routes: [string], "
     "methods: [{method: string, name: string, colour: string /^#[0-9a-f]{6}$/, dash: [number]}], limits: <number>, "
     "models: <<string>> (What the metrics of the models that are built in mean.)}"},
    {"Run", "{id: string, name: string, store: string, folder: string|null, state: =training|stopped|finished|failed, "
            "model: string|null, "
            "method: string|null, iteration: number, iterations: number, seconds: number, time_left: number|null, "
            "started: string|null, host: string|null, version: string|null, failure: string|null, has_folder: boolean, "
            "config: object, last: <number|null>, spark: {metric: string|null, values: [number|null]}, "
            "warnings: [{kind: =damaged|failed|broken|closed|falling, message: string}]}"},
    {"Runs", "{serial: number, event: number, runs: [Run], problems: Problems}"},
    {"Curve", "{name: string, n: number, iterations: [number], seconds: [number|null], values: [number|null]}"},
    {"Curves", "{id: string, name: string, iteration: number, metrics: [Curve]}"},
    {"ManyCurves", "{runs: [Curves]}"},
    {"Snapshots", "{snapshots: [{name: string, iteration: number, values: [number|null], labels: [string|null]}]}"},
    {"Pictures", "{iterations: [number]}"},
    {"Comparison",
     "{metric: string, x: string, keys: [string], "
     "groups: [{label: string, panel: string, method: string|null, shade: number, keys: object, runs: [string], "
     "damaged: [string] (ids of the runs among them whose rows do not fit their checksum), x: [number], "
     "median: [number|null], low: [number|null], high: [number|null], count: [number]}]}"},
    {"Askable", "{model: string, help: string, iteration: number, text: boolean, picture: boolean, exact: boolean, "
                "n_test: number, max_particles: number, "
                "fields: [{name: string, dim: number, label: boolean, input: boolean, item: number, most: number}]}"},
    {"Choice", "{site: string, visit: number, value: number|array|null}"},
    {"Answers",
     "{particles: number, @answers, n_answers: number, answers: [{@answer, reports: object}], marginals?: [object], "
     "particles_listed?: [{@particle, choices: [Choice]}]}"},
    {"Samples", "{samples: [{reports: object, fields: object, choices?: [Choice]}]}"},
    {"Score", "{log_p: number|null, log_q: number|null}"},
    {"Question",
     "{" DATUM ", data?: [{" DATUM "}], particles?: integer 1.., seed?: integer 0.., top?: integer 0..1000, "
     "particles_listed?: boolean, marginals?: boolean, given?: [Choice] (Choices that are known, for all data of the "
     "request: every particle takes them, and log_evidence is that of the data and these choices together.)} "
     "(One datum, as text, picture, fields or test; or data, a list of such objects, which is answered by a line of "
     "JSON for each.)"},
    {"Sampling",
     "{n?: integer 1..100000, seed?: integer 0.., particles_listed?: boolean, fields?: object, "
     "test?: integer 0..1000000} (A model with inputs is sampled at those that fields have, or at those of a test "
     "datum; by default each sample has the inputs of a test datum that is drawn at random.)"},
    {"Scoring", "{" DATUM ", choices: [Choice]}"},
    {"Problems", "[{path: string, message: string}]"},
    {"Changes",
     "{serial: integer, runs: [Run], gone: [string] (Ids of runs that are no longer there.), problems: Problems}"},
    {0},
};

/* ---- from the notation to JSON schemas. Functions return where they have stopped to read. */

#define ENDS "|,}]> ("

/* Copies what lies before one of `ends`. */
static const char *cut(const char *at, const char *ends, char part[static 256])
{
    const size_t n = strcspn(at, ends);
    snprintf(part, 256, "%.*s", (int)n, at);
    return at + n;
}

static const char *write_part(const char *at, const char *ends, rws_buffer *out)
{
    char part[256];
    at = cut(at, ends, part);
    rws__buffer_text(out, part);
    return at;
}

static const char *write_words(const char *at, rws_buffer *out)
{
    rws__buffer_open(out, '[');
    for (at = write_part(at, ENDS, out); *at == '|';) at = write_part(at + 1, ENDS, out);
    rws__buffer_close(out, ']');
    return at;
}

/* 0..9, 0.. or ..9 */
static const char *write_range(const char *at, const char *const keys[2], rws_buffer *out)
{
    for (int i = 0; i < 2; i++, at += strspn(at, "."))
        if (isdigit((unsigned char)*at)) rws__buffer_key_number(out, keys[i], (double)strtol(at, (char **)&at, 10));
    return at;
}

/* A type that has no shape inside. */
static const char *write_plain(const char *at, rws_buffer *out)
{
    static const char *const range[][2] = {{"minimum", "maximum"}, {"minLength", "maxLength"}};
    const bool               text = strncmp(at, "string", 6) == 0;
    rws__buffer_key(out, "type");
    at = at[strcspn(at, ENDS)] == '|' ? write_words(at, out) : write_part(at, ENDS, out);
    if (strncmp(at, " /", 2) == 0) {
        rws__buffer_key(out, "pattern");
        return write_part(at + 2, "/", out) + 1;
    }
    return *at == ' ' && at[1] != '(' ? write_range(at + 1, range[text], out) : at;
}

static const char *write_type(const char *at, rws_buffer *out);

/* The members that answers, an answer or a particle have (@answers, @answer, @particle). */
static const char *write_members(const char *at, rws_buffer *required, rws_buffer *out)
{
    static const char *const names[] = {"@answers", "@answer", "@particle"};
    char                     name[256];
    const rws_answer_member *m;
    rws_member_of            of = RWS_OF_ANSWERS;
    at = cut(at, ENDS, name);
    while (strcmp(names[of], name) != 0) of++;
    for (int i = 0; (m = rws_answer_member_at(of, i)); i++) {
        const bool text = m->type == RWS_MEMBER_TEXT || m->type == RWS_MEMBER_TRUST;
        if (m->when == RWS_MEMBER_ALWAYS) rws__buffer_text(required, m->name);
        rws__buffer_open_key(out, m->name, '{');
        write_type(text ? "string" : m->type == RWS_MEMBER_COUNT ? "number" : "number|null", out);
        rws__buffer_key_text(out, "description", m->help);
        rws__buffer_close(out, '}');
    }
    return at;
}

/* The keys of an object, up to its brace. */
static const char *write_keys(const char *at, rws_buffer *out)
{
    rws_buffer required = {0};
    char       key[256];
    rws__buffer_key_text(out, "type", "object");
    rws__buffer_open_key(out, "properties", '{');
    while (*at != '}') {
        at += strspn(at, ", ");
        if (*at == '@') {
            at = write_members(at, &required, out);
            continue;
        }
        at = cut(at, "?:", key);
        if (*at == ':') rws__buffer_text(&required, key);
        rws__buffer_open_key(out, key, '{');
        at = write_type(at + strspn(at, "?: "), out);
        rws__buffer_close(out, '}');
    }
    rws__buffer_close(out, '}');
    if (required.n) rws__buffer_print(out, ",\"required\":[%s]", required.bytes);
    rws__buffer_key_true(out, "additionalProperties", false);
    rws__buffer_release(&required);
    return at;
}

/* The type of the items of an array, or of the values of an object with any keys. */
static const char *write_inside(const char *at, const char *type, const char *key, rws_buffer *out)
{
    rws__buffer_key_text(out, "type", type);
    rws__buffer_open_key(out, key, '{');
    at = write_type(at, out);
    rws__buffer_close(out, '}');
    return at;
}

static const char *write_type(const char *at, rws_buffer *out)
{
    char text[256];
    if (*at == '{') at = write_keys(at + 1, out) + 1;
    else if (*at == '[') at = write_inside(at + 1, "array", "items", out) + 1;
    else if (*at == '<') at = write_inside(at + 1, "object", "additionalProperties", out) + 1;
    else if (*at == '=') {
        rws__buffer_key_text(out, "type", "string");
        rws__buffer_key(out, "enum");
        at = write_words(at + 1, out);
    } else if (isupper((unsigned char)*at)) {
        at = cut(at, ENDS, text);
        rws__buffer_print(out, "\"$ref\":\"#/components/schemas/%s\"", text);
    } else at = write_plain(at, out);
    if (strncmp(at, " (", 2) != 0) return at;
    rws__buffer_key(out, "description");
    return write_part(at + 2, ")", out) + 1;
}

/* A key with a schema. */
static void write_schema(const char *key, const char *shape, rws_buffer *out)
{
    rws__buffer_open_key(out, key, '{');
    write_type(shape, out);
    rws__buffer_close(out, '}');
}

/* ---- the description */

/* The name is cut from a path or a query; a ! behind it belongs to its name in the table. */
static void write_parameter(const char *name, size_t n, const char *in, rws_buffer *out)
{
    int          i = 0;
    const size_t length = n - (name[n - 1] == '!');
    while (strlen(parameters[i].name) != n || strncmp(parameters[i].name, name, n) != 0) i++;
    rws__buffer_open(out, '{');
    rws__buffer_print(out, "\"name\":\"%.*s\"", (int)length, name);
    rws__buffer_key_text(out, "in", in);
    rws__buffer_key_text(out, "description", parameters[i].help);
    write_schema("schema", parameters[i].shape, out);
    rws__buffer_key_true(out, "required", length < n || in[0] == 'p');
    if (parameters[i].example) {
        rws__buffer_key(out, "example");
        rws__buffer_value(out, parameters[i].example);
    }
    rws__buffer_close(out, '}');
}

static void write_parameters(const rws_route *r, rws_buffer *out)
{
    rws__buffer_open_key(out, "parameters", '[');
    for (const char *at = r->path; (at = strchr(at, '{')); at++)
        write_parameter(at + 1, strcspn(at + 1, "}"), "path", out);
    for (const char *at = r->query ? r->query : ""; *at; at += strspn(at, " ")) {
        const size_t n = strcspn(at, " ");
        write_parameter(at, n, "query", out);
        at += n;
    }
    rws__buffer_close(out, ']');
}

/* The key "content"; the caller closes it. */
static void open_content(const char *type, const char *shape, rws_buffer *out)
{
    rws__buffer_open_key(out, "content", '{');
    rws__buffer_open_key(out, type, '{');
    if (shape) write_schema("schema", shape, out);
}

static void write_replies(const rws_route *r, rws_buffer *out)
{
    rws__buffer_print(out, ",\"responses\":{\"200\":{");
    rws__buffer_key_text(out, "description", r->lines ? r->lines : "The answer.");
    open_content(r->type ? r->type : "application/json", r->shape, out);
    rws__buffer_print(out, "}%s}},\"default\":{", r->lines ? ",\"application/x-ndjson\":{}" : "");
    rws__buffer_key_text(out, "description", "A message that says what is wrong.");
    open_content("application/json", "Error", out);
    rws__buffer_print(out, "}}}}");
}

static void write_route(const rws_route *r, rws_buffer *out)
{
    rws__buffer_open_key(out, r->path, '{');
    rws__buffer_open_key(out, r->body ? "post" : "get", '{');
    rws__buffer_key_text(out, "summary", r->summary);
    rws__buffer_key_text(out, "operationId", r->id);
    write_parameters(r, out);
    if (r->body) {
        rws__buffer_print(out, ",\"requestBody\":{\"required\":true");
        open_content("application/json", r->body, out);
        rws__buffer_print(out, ",\"examples\":{%s}}}}", r->examples);
    }
    write_replies(r, out);
    rws__buffer_print(out, "}}");
}

bool rws__answer_openapi(rws_core *c, const rws_request *r, rws_reply *reply)
{
    rws_buffer *out = &reply->body;
    (void)c, (void)r;
    rws__buffer_print(out, "%s",
                      "{\"openapi\":\"3.1.0\",\"info\":{\"title\":\"rws serve\",\"version\":\"" RWS_VERSION_STRING "\","
                      "\"description\":\"Runs of rws: watch, compare, ask. Numbers that are NaN or infinite are null. "
                      "Errors are {\\\"error\\\": \\\"a message\\\"}. With --listen or --token every request needs the "
                      "header \\\"Authorization: Bearer TOKEN\\\".\","
                      "\"license\":{\"name\":\"MIT\",\"identifier\":\"MIT\"}},"
                      "\"servers\":[{\"url\":\"http://127.0.0.1:8765\"}],\"security\":[{},{\"token\":[]}],\"paths\":{");
    for (const rws_route *route = rws_routes; route->method; route++) write_route(route, out);
    rws__buffer_print(out,
                      "},\"components\":{\"securitySchemes\":{\"token\":{\"type\":\"http\",\"scheme\":\"bearer\"}},"
                      "\"schemas\":{");
    for (int i = 0; shapes[i].name; i++) write_schema(shapes[i].name, shapes[i].shape, out);
    rws__buffer_print(out, "}}}");
    return rws__reply_end(reply, "application/json");
}
