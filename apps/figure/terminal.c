#include "figure/terminal.h"

#include "base/error.h"
#include "figure/style.h"

#include <errno.h>
#include <glib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MIN_COLUMNS = 12, MIN_ROWS = 3 };

/* Characters of the curves in ASCII, in the order of the list. */
static const char symbols[] = "*o+x#@%&=~";

/* A name beside the plot: the row where its curve ends, and the row where it is written. */
typedef struct {
    int   curve;
    char *text;
    int   target, row;
} name;

typedef struct {
    const rws_terminal *t;
    rws_range           x, y;
    int                 columns, rows; /* of the plot, in characters */
    int                 across, down;  /* dots per character: 2 x 4 in braille */
    guint8             *dots;          /* [rows][columns]: braille bits, or an ASCII character */
    int                *owner;         /* [rows][columns]: the curve drawn last, -1 for none */
} plot;

/* ---- text ---- */

/* An ASCII text for the few other characters in names of methods and axes. */
static const char *in_ascii(gunichar c)
{
    switch (c) {
    case 0x03b4: return "d"; /* delta */
    case 0x03b8: return "theta";
    case 0x03c6: return "phi";
    case 0x00d7: return "x";
    case 0x2212: return "-";
    case 0x00a0: return " ";
    default: return "?";
    }
}

/* A copy that is safe on a terminal: valid UTF-8 without control characters, or only ASCII. The caller frees it. */
static char *clean(const char *text, bool ascii)
{
    char    *valid = g_utf8_make_valid(text ? text : "", -1);
    GString *out = g_string_new(NULL);
    for (const char *c = valid; *c; c = g_utf8_next_char(c)) {
        gunichar code = g_utf8_get_char(c);
        if (g_unichar_iscntrl(code)) g_string_append_c(out, ' ');
        else if (ascii && code > 126) g_string_append(out, in_ascii(code));
        else g_string_append_unichar(out, code);
    }
    g_free(valid);
    return g_string_free(out, FALSE);
}

static int length_of(const char *text)
{
    return (int)g_utf8_strlen(text, -1);
}

/* Appends the text cut to so many characters. */
static void append_cut(GString *out, const char *text, int most)
{
    const char *end = text;
    for (int i = 0; i < most && *end; i++) end = g_utf8_next_char(end);
    g_string_append_len(out, text, end - text);
}

static void append_spaces(GString *out, int n)
{
    for (int i = 0; i < n; i++) g_string_append_c(out, ' ');
}

static void append_centred(GString *out, const char *text, int left, int width)
{
    append_spaces(out, left + MAX(width - length_of(text), 0) / 2);
    append_cut(out, text, width);
    g_string_append_c(out, '\n');
}

/* ---- colour ---- */

/* The nearest of the 6 x 6 x 6 colours that 256-colour terminals agree on; 0 for black, which stays the terminal's own
 * text colour so that it shows on a dark background. */
static int ansi_colour(rws_colour colour)
{
    static const int levels[] = {0, 95, 135, 175, 215, 255};
    double           parts[] = {colour.red, colour.green, colour.blue};
    int              code = 0;
    for (int i = 0; i < 3; i++) {
        int best = 0;
        for (int k = 1; k < 6; k++) {
            if (fabs(parts[i] * 255 - levels[k]) < fabs(parts[i] * 255 - levels[best])) best = k;
        }
        code = code * 6 + best;
    }
    return code ? 16 + code : 0;
}

static void append_colour(GString *out, const rws_terminal *t, int curve)
{
    if (!t->colour) return;
    const rws_curve *c = curve >= 0 ? &t->curves[curve] : NULL;
    int              code = c ? ansi_colour(rws__colour_shade(rws__style_find(c->method)->colour, c->shade)) : 0;
    if (code) g_string_append_printf(out, "\033[38;5;%dm", code);
    else g_string_append(out, "\033[0m");
}

/* ---- dots ---- */

/* Bits of a braille character: dot (row, column) is bit braille[row][column], counted from U+2800. */
static const guint8 braille[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};

static void put_dot(plot *p, int curve, int x, int y)
{
    if (x < 0 || y < 0 || x >= p->columns * p->across || y >= p->rows * p->down) return;
    int cell = y / p->down * p->columns + x / p->across;
    if (p->t->unicode) p->dots[cell] |= braille[y % p->down][x % p->across];
    else p->dots[cell] = (guint8)symbols[curve % (sizeof symbols - 1)];
    p->owner[cell] = curve;
}

static double dot_x(const plot *p, double value)
{
    return rws__range_place(p->x, value) * (p->columns * p->across - 1);
}

static double dot_y(const plot *p, double value)
{
    return (1 - rws__range_place(p->y, value)) * (p->rows * p->down - 1);
}

/* Whether a dashed line has ink after so many dots: the dash's points are taken as dots. */
static bool has_ink(const rws_style *style, double along)
{
    double whole = 0;
    for (int i = 0; i < style->n_dash; i++) whole += style->dash[i];
    if (whole <= 0) return true;
    along = fmod(along, whole);
    for (int i = 0; i < style->n_dash; i++) {
        if (along < style->dash[i]) return i % 2 == 0;
        along -= style->dash[i];
    }
    return true;
}

static void put_curve(plot *p, int index)
{
    const rws_curve *curve = &p->t->curves[index];
    const rws_style *style = rws__style_find(curve->method);
    bool             dashed =
        p->t->unicode && (curve->line == RWS_LINE_DASHED || (curve->line == RWS_LINE_AS_METHOD && style->n_dash));
    double x0 = NAN, y0 = NAN, along = 0;
    for (int i = 0; i < curve->n; i++) {
        double x = dot_x(p, curve->x[i]), y = dot_y(p, curve->y[i]);
        if (isnan(x) || isnan(y)) {
            x0 = NAN;
            continue;
        }
        if (isnan(x0)) {
            put_dot(p, index, (int)lround(x), (int)lround(y));
        } else {
            /* Places reach one width beyond the plot at most, so this is a few thousand steps at worst. */
            double length = hypot(x - x0, y - y0);
            int    steps = (int)ceil(fmax(fabs(x - x0), fabs(y - y0)));
            for (int s = 1; s <= steps; s++) {
                double share = (double)s / steps;
                if (dashed && !has_ink(style, along + share * length)) continue;
                put_dot(p, index, (int)lround(x0 + share * (x - x0)), (int)lround(y0 + share * (y - y0)));
            }
            along += length;
        }
        x0 = x;
        y0 = y;
    }
}

/* ---- names ---- */

static int by_target(const void *left, const void *right)
{
    const name *a = left, *b = right;
    return a->target != b->target ? (a->target > b->target) - (a->target < b->target) : a->curve - b->curve;
}

/* Places each name at its curve's last visible point, then moves it down past the name above, and up from the
 * bottom. */
static void place_names(const plot *p, name *names, int n)
{
    for (int i = 0; i < n; i++) {
        const rws_curve *curve = &p->t->curves[names[i].curve];
        names[i].target = p->rows - 1;
        for (int k = curve->n - 1; k >= 0; k--) {
            double y = dot_y(p, curve->y[k]);
            if (isnan(y) || isnan(dot_x(p, curve->x[k]))) continue;
            names[i].target = MIN(MAX((int)lround(y) / p->down, 0), p->rows - 1);
            break;
        }
    }
    qsort(names, n, sizeof *names, by_target);
    for (int i = 0; i < n; i++) names[i].row = i ? MAX(names[i].target, names[i - 1].row + 1) : names[i].target;
    for (int i = n - 1, free = p->rows - 1; i >= 0; i--) {
        names[i].row = MIN(names[i].row, free);
        free = names[i].row - 1;
    }
}

/* ---- lines ---- */

static void append_plot_row(GString *out, const plot *p, int row)
{
    int owner = -1;
    int last = p->columns - 1;
    while (last >= 0 && !p->dots[row * p->columns + last]) last--;
    for (int column = 0; column <= last; column++) {
        int cell = row * p->columns + column;
        int now = p->dots[cell] ? p->owner[cell] : owner;
        if (now != owner) append_colour(out, p->t, now);
        owner = now;
        if (!p->dots[cell]) g_string_append_c(out, ' ');
        else if (p->t->unicode) g_string_append_unichar(out, 0x2800 + p->dots[cell]);
        else g_string_append_c(out, (char)p->dots[cell]);
    }
    if (owner >= 0) append_colour(out, p->t, -1);
    append_spaces(out, p->columns - 1 - last);
}

static void append_rows(GString *out, const plot *p, const rws_tick *ticks, int n_ticks, int margin, const name *names,
                        int n_names)
{
    bool unicode = p->t->unicode;
    for (int row = 0; row < p->rows; row++) {
        const char *label = NULL;
        for (int i = 0; i < n_ticks; i++) {
            if (!ticks[i].minor && (int)lround(dot_y(p, ticks[i].value)) / p->down == row && !label)
                label = ticks[i].text;
        }
        append_spaces(out, margin - (label ? length_of(label) : 0));
        g_string_append(out, label ? label : "");
        g_string_append(out, unicode ? (label ? "┤" : "│") : (label ? "+" : "|"));
        append_plot_row(out, p, row);
        for (int i = 0; i < n_names; i++) {
            if (names[i].row != row) continue;
            g_string_append_c(out, ' ');
            append_colour(out, p->t, names[i].curve);
            g_string_append(out, names[i].text);
            append_colour(out, p->t, -1);
        }
        while (out->len && out->str[out->len - 1] == ' ') g_string_truncate(out, out->len - 1);
        g_string_append_c(out, '\n');
    }
}

/* The axis line with a notch at each tick, and the labels centred under the notches as far as they fit. */
static void append_x_axis(GString *out, const plot *p, const rws_tick *ticks, int n_ticks, int margin, int width)
{
    bool  unicode = p->t->unicode;
    char *notch = g_new0(char, p->columns);
    for (int i = 0; i < n_ticks; i++) {
        int column = (int)lround(dot_x(p, ticks[i].value)) / p->across;
        if (!ticks[i].minor && column >= 0 && column < p->columns) notch[column] = 1;
    }
    append_spaces(out, margin);
    g_string_append(out, unicode ? "└" : "+");
    for (int i = 0; i < p->columns; i++)
        g_string_append(out, unicode ? (notch[i] ? "┬" : "─") : (notch[i] ? "+" : "-"));
    g_string_append_c(out, '\n');
    g_free(notch);

    int at = 0; /* characters on the line so far */
    for (int i = 0; i < n_ticks; i++) {
        if (ticks[i].minor) continue;
        int length = length_of(ticks[i].text);
        int start = margin + 1 + (int)lround(dot_x(p, ticks[i].value)) / p->across - length / 2;
        start = MIN(start, width - length);
        if (start < at + (at > 0)) continue;
        append_spaces(out, start - at);
        g_string_append(out, ticks[i].text);
        at = start + length;
    }
    g_string_append_c(out, '\n');
}

static bool has_points(const rws_curve *curve)
{
    for (int i = 0; i < curve->n; i++) {
        if (isfinite(curve->x[i]) && isfinite(curve->y[i])) return true;
    }
    return false;
}

static rws_status find_ranges(plot *p, rws_error *err)
{
    rws_extent x = rws__extent_empty(), y = rws__extent_empty();
    for (int c = 0; c < p->t->n_curves; c++) {
        const rws_curve *curve = &p->t->curves[c];
        for (int i = 0; i < curve->n; i++) {
            if (!isfinite(curve->x[i]) || !isfinite(curve->y[i])) continue;
            rws__extent_add(&x, curve->x[i]);
            rws__extent_add(&y, curve->y[i]);
        }
    }
    RWS_TRY(rws__axis_range(&p->t->x, &x, NULL, 0, &p->x, err));
    return rws__axis_range(&p->t->y, &y, NULL, 0.03, &p->y, err);
}

/* As many ticks as fit, by the widest label of a first choice. */
static int x_ticks(const plot *p, rws_tick *ticks)
{
    int n = 0;
    for (int wanted = MIN(MAX(p->columns / 8, 2), 8); wanted >= 1; wanted--) {
        n = rws__axis_ticks(&p->t->x, p->x, wanted, !p->t->unicode, ticks);
        int total = 0;
        for (int i = 0; i < n; i++) total += ticks[i].minor ? 0 : length_of(ticks[i].text) + 3;
        if (total <= p->columns + 3) break;
    }
    return n;
}

/* Says that there are no points in the middle row, which has only the axis and perhaps a label. Rows begin at `start`.
 * */
static void append_no_data(GString *out, const plot *p, size_t start)
{
    size_t at = start;
    for (int row = 0; row < p->rows / 2; row++) at = (size_t)(strchr(out->str + at, '\n') - out->str) + 1;
    at = (size_t)(strchr(out->str + at, '\n') - out->str);
    GString *note = g_string_new(NULL);
    append_spaces(note, (p->columns - 7) / 2);
    g_string_append(note, "no data");
    g_string_insert(out, (gssize)at, note->str);
    g_string_free(note, TRUE);
}

/* Marks the dots of all curves in a grid of p->rows by p->columns characters. */
static void put_curves(plot *p)
{
    p->dots = g_new0(guint8, (size_t)p->rows * p->columns);
    p->owner = g_new0(int, (size_t)p->rows * p->columns);
    for (int i = 0; i < p->rows * p->columns; i++) p->owner[i] = -1;
    for (int c = 0; c < p->t->n_curves; c++) put_curve(p, c);
}

static rws_status draw(plot *p, GString *out, name *names, int n_names, rws_error *err)
{
    const rws_terminal *t = p->t;
    bool                ascii = !t->unicode;
    int                 width = t->width ? t->width : 80, height = t->height ? t->height : 24;
    char                caption[256];
    char               *title = clean(t->title, ascii);
    char               *x_label = clean(rws__axis_caption(&t->x, caption, sizeof caption), ascii);
    char               *y_label = clean(rws__axis_caption(&t->y, caption, sizeof caption), ascii);

    rws_tick y_ticks[RWS_MAX_TICKS], ticks[RWS_MAX_TICKS];
    int      names_margin = 0, y_margin = 0;
    for (int i = 0; i < n_names; i++) names_margin = MAX(names_margin, length_of(names[i].text) + 1);
    p->rows = height - 2 - (title[0] != 0) - (y_label[0] != 0) - (x_label[0] != 0);
    int n_y = rws__axis_ticks(&t->y, p->y, MAX(p->rows / 4, 2), ascii, y_ticks);
    for (int i = 0; i < n_y; i++) y_margin = MAX(y_margin, length_of(y_ticks[i].text));
    p->columns = width - y_margin - 1 - names_margin;

    rws_status status = RWS_OK;
    int        fewest = MAX(MIN_ROWS, n_names);
    if (p->rows < fewest || p->columns < MIN_COLUMNS) {
        status =
            rws_fail(err, RWS_BAD_INPUT, "A chart of %d by %d characters is too small: this one needs %d by %d.", width,
                     height, MAX(width, width - p->columns + MIN_COLUMNS), MAX(height, height - p->rows + fewest));
    } else {
        put_curves(p);
        place_names(p, names, n_names);

        if (title[0]) append_centred(out, title, y_margin + 1, p->columns);
        if (y_label[0]) {
            append_cut(out, y_label, width);
            g_string_append_c(out, '\n');
        }
        size_t start = out->len;
        append_rows(out, p, y_ticks, n_y, y_margin, names, n_names);
        if (n_names == 0) append_no_data(out, p, start);
        append_x_axis(out, p, ticks, x_ticks(p, ticks), y_margin, width);
        if (x_label[0]) append_centred(out, x_label, y_margin + 1, p->columns);
    }
    g_free(title);
    g_free(x_label);
    g_free(y_label);
    return status;
}

rws_status rws__terminal_draw(const rws_terminal *terminal, FILE *file, rws_error *err)
{
    plot p = {.t = terminal, .across = terminal->unicode ? 2 : 1, .down = terminal->unicode ? 4 : 1};
    for (int c = 0; c < terminal->n_curves; c++) {
        const rws_curve *curve = &terminal->curves[c];
        RWS_CHECK(curve->n >= 0 && (curve->n == 0 || (curve->x && curve->y)));
    }
    RWS_TRY(find_ranges(&p, err));

    name *names = g_new0(name, terminal->n_curves + 1);
    int   n_names = 0;
    for (int c = 0; c < terminal->n_curves; c++) {
        const rws_curve *curve = &terminal->curves[c];
        if (!has_points(curve)) continue;
        char *label = clean(curve->label ? curve->label : rws__style_name(curve->method), !terminal->unicode);
        names[n_names++] =
            (name){.curve = c,
                   .text = terminal->unicode ? g_strdup(label)
                                             : g_strdup_printf("%c %s", symbols[c % (sizeof symbols - 1)], label)};
        g_free(label);
    }
    GString   *out = g_string_new(NULL);
    rws_status status = draw(&p, out, names, n_names, err);
    if (status == RWS_OK && (fwrite(out->str, 1, out->len, file) != out->len || fflush(file) != 0))
        status = rws_fail(err, RWS_BAD_INPUT, "The chart cannot be written: %s.", strerror(errno));
    g_string_free(out, TRUE);
    for (int i = 0; i < n_names; i++) g_free(names[i].text);
    g_free(names);
    g_free(p.dots);
    g_free(p.owner);
    return status;
}
