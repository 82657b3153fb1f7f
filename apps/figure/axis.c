#include "figure/axis.h"

#include "base/error.h"

#include <glib.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The widest logarithmic range chosen from data. */
static const double MAX_DECADES = 12;

/* Limits of a linear range: ends within LARGEST, so that high - low is finite; wider than SMALLEST, so that a step is a
 * normal number. */
static const double LARGEST = 1e300, SMALLEST = 1e-290;

rws_extent rws__extent_empty(void)
{
    return (rws_extent){INFINITY, -INFINITY, INFINITY};
}

void rws__extent_add(rws_extent *extent, double value)
{
    if (!isfinite(value)) return;
    if (value < extent->low) extent->low = value;
    if (value > extent->high) extent->high = value;
    if (value > 0 && value < extent->least_positive) extent->least_positive = value;
}

/* The smallest round number (1, 2, 2.5 or 5 times a power of ten) above the rough step. A step of 2.5 itself is left
 * out, because it would put decimals on a scale of small whole numbers. */
static double round_spacing(double rough)
{
    double power = pow(10, floor(log10(rough)));
    double lead = rough / power;
    double slack = 1 + 1e-9;
    if (lead <= 1 * slack) return power;
    if (lead <= 2 * slack) return 2 * power;
    if (lead <= 2.5 * slack && (power < 0.99 || power > 1.01)) return 2.5 * power;
    if (lead <= 5 * slack) return 5 * power;
    return 10 * power;
}

static rws_range linear_range(const rws_extent *core, const rws_extent *fringe, double padding)
{
    if (core->low > core->high) return (rws_range){RWS_AXIS_LINEAR, 0, 1};
    double low = fmax(core->low, -LARGEST), high = fmin(core->high, LARGEST);
    high = fmax(high, -LARGEST);
    low = fmin(low, LARGEST);
    if (fringe && fringe->low <= fringe->high) {
        double reach = high > low ? high - low : INFINITY;
        low = fmax(fmin(low, fringe->low), fmax(low - reach, -LARGEST));
        high = fmin(fmax(high, fringe->high), fmin(high + reach, LARGEST));
    }
    double size = fmax(fabs(low), fabs(high));
    if (high - low <= fmax(1e-9 * size, SMALLEST)) {
        /* The values are equal, or nearly so: take a range around them that is wide enough for different labels. */
        double half = size > 0 ? fmax(0.1 * size, SMALLEST * 10) : 1;
        return (rws_range){RWS_AXIS_LINEAR, low - half, high + half};
    }
    double width = high - low;
    bool   positive = low >= 0, negative = high <= 0;
    low -= padding * width;
    high += padding * width;
    /* Data on one side of zero that come near it are shown from zero. */
    if (padding > 0 && positive && low < 0.15 * width) low = 0;
    if (padding > 0 && negative && high > -0.15 * width) high = 0;
    width = high - low;
    double step = round_spacing(width / 5);
    double down = floor(low / step) * step, up = ceil(high / step) * step;
    if (low - down < 0.03 * width) low = down;
    if (up - high < 0.03 * width) high = up;
    return (rws_range){RWS_AXIS_LINEAR, low, high};
}

static rws_range log_range(const rws_extent *core, const rws_extent *fringe, double padding)
{
    if (!isfinite(core->least_positive)) return (rws_range){RWS_AXIS_LOG, 0.1, 1};
    double low = log10(core->least_positive), high = log10(core->high);
    if (fringe && isfinite(fringe->least_positive)) {
        low = fmax(fmin(low, log10(fringe->least_positive)), low - 1);
        high = fmin(fmax(high, log10(fringe->high)), high + 1);
    }
    low = fmax(low, high - MAX_DECADES);
    if (high - low < 1e-3) {
        low -= 0.3;
        high += 0.3;
    }
    double width = high - low, floor_decade = floor(low), ceil_decade = ceil(high);
    /* The range ends at a power of ten that lies within the padding or a little beyond; data on a power of ten are
     * padded. */
    bool on_floor = low - floor_decade < 0.01 * width, on_ceil = ceil_decade - high < 0.01 * width;
    low -= padding * width;
    high += padding * width;
    if (!(on_floor && padding > 0) && low - floor_decade < 0.06 * width) low = floor_decade;
    if (!(on_ceil && padding > 0) && ceil_decade - high < 0.06 * width) high = ceil_decade;
    /* Within the exponents of a normal double. */
    low = fmin(fmax(low, -307), 307);
    high = fmin(high, 308);
    if (high <= low) high = low + 0.5;
    return (rws_range){RWS_AXIS_LOG, pow(10, low), pow(10, high)};
}

rws_status rws__axis_range(const rws_axis *axis, const rws_extent *core, const rws_extent *fringe, double padding,
                           rws_range *out, rws_error *err)
{
    const char *name = axis->label ? axis->label : "a chart";
    rws_range   range =
        axis->scale == RWS_AXIS_LOG ? log_range(core, fringe, padding) : linear_range(core, fringe, padding);
    if (axis->low != axis->high) {
        bool fix_low = !isnan(axis->low), fix_high = !isnan(axis->high);
        if ((fix_low && isinf(axis->low)) || (fix_high && isinf(axis->high)))
            return rws_fail(err, RWS_BAD_INPUT, "The axis of %s has an infinite end.", name);
        if (fix_low && fix_high && axis->low > axis->high)
            return rws_fail(err, RWS_BAD_INPUT, "The axis of %s would run from %g down to %g.", name, axis->low,
                            axis->high);
        if (axis->scale == RWS_AXIS_LOG && ((fix_low && axis->low <= 0) || (fix_high && axis->high <= 0)))
            return rws_fail(err, RWS_BAD_INPUT,
                            "The axis of %s is logarithmic: its ends must be above 0, and one is %g.", name,
                            fix_low && axis->low <= 0 ? axis->low : axis->high);
        if (fix_low) range.low = axis->low;
        if (fix_high) range.high = axis->high;
        /* If one end is fixed beyond all data, the other end is placed next to it. */
        if (range.low >= range.high) {
            double size = fix_low ? range.low : range.high;
            double step = size != 0 ? fabs(size) : 1;
            if (fix_low) range.high = range.scale == RWS_AXIS_LOG ? 10 * size : size + step;
            else range.low = range.scale == RWS_AXIS_LOG ? size / 10 : size - step;
        }
        if (range.scale == RWS_AXIS_LINEAR) {
            range.low = fmax(range.low, -LARGEST);
            range.high = fmin(range.high, LARGEST);
        }
    }
    double width = range.scale == RWS_AXIS_LOG ? log10(range.high) - log10(range.low) : range.high - range.low;
    double least = range.scale == RWS_AXIS_LOG ? 1e-9 : fmax(1e-12 * fmax(fabs(range.low), fabs(range.high)), SMALLEST);
    if (!(width >= least)) return rws_fail(err, RWS_BAD_INPUT, "The axis of %s has no width at %g.", name, range.low);
    *out = range;
    return RWS_OK;
}

double rws__range_place(rws_range range, double value)
{
    if (!isfinite(value)) return NAN;
    double place;
    if (range.scale == RWS_AXIS_LOG) {
        if (value <= 0) return -1;
        place = (log10(value) - log10(range.low)) / (log10(range.high) - log10(range.low));
    } else {
        value = fmin(fmax(value, -4 * LARGEST), 4 * LARGEST);
        place = (value - range.low) / (range.high - range.low);
    }
    return fmin(fmax(place, -1), 2);
}

/* Writes value with that many decimals; a decimal point in every locale. */
static char *put_fixed(char *text, size_t size, double value, int decimals)
{
    char format[16];
    snprintf(format, sizeof format, "%%.%df", decimals);
    return g_ascii_formatd(text, (int)size, format, value);
}

/* The fewest decimals that show the value to a part in a million, 12 at most. */
static int decimals_of(double value)
{
    for (int d = 0; d < 12; d++) {
        double scaled = fabs(value) * pow(10, d);
        if (fabs(scaled - round(scaled)) <= 1e-6 * fmax(scaled, 1e-9) && round(scaled) > 0) return d;
    }
    return 12;
}

static void append_exponent(char *text, size_t size, int exponent, bool ascii)
{
    static const char *const superscripts[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
    char                     digits[16];
    snprintf(digits, sizeof digits, "%d", exponent);
    if (ascii) {
        g_strlcat(text, digits, size);
        return;
    }
    for (const char *d = digits; *d; d++) g_strlcat(text, *d == '-' ? "⁻" : superscripts[*d - '0'], size);
}

/* "10⁻³", "2×10⁻⁵", "1e-3": lead times a power of ten. A lead of 1 is left out unless it must match its neighbours. */
static void put_power(char *text, size_t size, double lead, int decimals, int exponent, bool ascii, bool always_lead)
{
    text[0] = 0;
    if (ascii || always_lead || decimals > 0 || round(lead) != 1) {
        put_fixed(text, size, lead, decimals);
        g_strlcat(text, ascii ? "e" : "×10", size);
    } else {
        g_strlcat(text, "10", size);
    }
    append_exponent(text, size, exponent, ascii);
}

static void put_minus(char *text, size_t size, bool ascii)
{
    if (ascii || text[0] != '-') return;
    char *rest = g_strdup(text + 1);
    snprintf(text, size, "−%s", rest);
    g_free(rest);
}

/* The labels of a set of major ticks on one axis agree in unit and decimals; step is the distance they must show. */
static void label_linear(rws_tick *ticks, int n, double step, bool ascii)
{
    double largest = 0;
    for (int i = 0; i < n; i++) largest = fmax(largest, fabs(ticks[i].value));
    double      unit = largest >= 1e6 ? 1e6 : largest >= 1e4 ? 1e3 : 1;
    const char *suffix = unit == 1e6 ? "M" : unit == 1e3 ? "k" : "";
    int         exponent = 0;
    if (largest > 0 && (largest >= 1e9 || largest < 1e-3)) {
        exponent = (int)floor(log10(largest));
        unit = pow(10, exponent);
        suffix = "";
    } else if (decimals_of(step / unit) > 2 && unit > 1) {
        unit = 1;
        suffix = "";
    }
    int decimals = decimals_of(step / unit);
    for (int i = 0; i < n; i++) {
        char  *text = ticks[i].text;
        size_t size = sizeof ticks[i].text;
        if (fabs(ticks[i].value) < 1e-6 * step) {
            snprintf(text, size, "0");
            continue;
        }
        if (exponent) {
            put_power(text, size, ticks[i].value / unit, decimals, exponent, ascii, n > 1);
        } else {
            put_fixed(text, size, ticks[i].value / unit, decimals);
            g_strlcat(text, suffix, size);
        }
        put_minus(text, size, ascii);
    }
}

static int linear_ticks(rws_range range, int wanted, bool ascii, rws_tick *ticks)
{
    double width = range.high - range.low;
    double step = 0, first = 0, last = -1, best = INFINITY;
    /* The round step that comes nearest to the number wanted, the coarser of two that do. */
    for (double rough = width / wanted / 5; rough < 3 * width; rough = 1.2 * round_spacing(rough)) {
        double candidate = round_spacing(rough);
        double from = ceil(range.low / candidate - 1e-6), to = floor(range.high / candidate + 1e-6);
        double miss = fabs(to - from + 1 - wanted);
        if (miss > best) continue;
        best = miss;
        step = candidate;
        first = from;
        last = to;
    }
    int n = 0;
    for (double i = first; i <= last && n < RWS_MAX_TICKS; i++) ticks[n++] = (rws_tick){.value = i * step};
    label_linear(ticks, n, step, ascii);
    return n;
}

/* A label of its own for a value on a scale where neighbours differ by a factor: "0.05", "20", "20k", "2×10⁻⁵". */
static void label_alone(rws_tick *tick, bool ascii)
{
    double size = fabs(tick->value);
    if (size > 0 && size < 1e-3) {
        int    exponent = (int)floor(log10(size) + 1e-9);
        double lead = tick->value / pow(10, exponent);
        put_power(tick->text, sizeof tick->text, lead, MIN(decimals_of(lead), 3), exponent, ascii, false);
        put_minus(tick->text, sizeof tick->text, ascii);
    } else {
        /* Three significant digits. */
        double unit = size > 0 ? pow(10, floor(log10(size)) - 2) : 1;
        label_linear(tick, 1, fmax(round(size / unit), 1) * unit, ascii);
    }
}

/* Labels one decade in `stride`, so that about `wanted` remain; the decades between are minor. */
static int decade_ticks(rws_range range, int first, int last, int wanted, bool ascii, rws_tick *ticks)
{
    int stride = 1;
    while ((last - first) / stride + 1 > MAX(wanted, 2)) stride++;
    /* Labels are at multiples of the stride, so that 10⁰ always has a label; from the first decade on if only one
     * multiple is in the range. */
    int origin = 0, n_multiples = 0, n = 0;
    for (int e = first; e <= last; e++) n_multiples += e % stride == 0;
    if (n_multiples < 2) origin = first;
    for (int e = first; e <= last && n < RWS_MAX_TICKS; e++) {
        if ((e - origin) % stride) continue;
        rws_tick *tick = &ticks[n++];
        *tick = (rws_tick){.value = pow(10, e)};
        put_power(tick->text, sizeof tick->text, 1, 0, e, ascii, false);
    }
    for (int e = first - 1; e <= last && n < RWS_MAX_TICKS; e++) {
        if ((e - origin) % stride && e >= first) ticks[n++] = (rws_tick){.value = pow(10, e), .minor = true};
        if (stride > 1 || last - first > 8) continue;
        for (int lead = 2; lead <= 9 && n < RWS_MAX_TICKS; lead++) {
            double value = lead * pow(10, e);
            if (value > range.low && value < range.high) ticks[n++] = (rws_tick){.value = value, .minor = true};
        }
    }
    return n;
}

/* For a range of less than two decades: label 1, 2 and 5 times a power of ten, or every digit if that gives fewer than
 * two. */
static int digit_ticks(rws_range range, bool every, bool ascii, rws_tick *ticks, int *n_major)
{
    int first = (int)floor(log10(range.low)), last = (int)ceil(log10(range.high));
    int n = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int e = first; e <= last; e++) {
            for (int lead = 1; lead <= 9 && n < RWS_MAX_TICKS; lead++) {
                bool major = every || lead == 1 || lead == 2 || lead == 5;
                if (major == pass) continue;
                double value = lead * pow(10, e);
                if (value < range.low * (1 - 1e-9) || value > range.high * (1 + 1e-9)) continue;
                rws_tick *tick = &ticks[n++];
                *tick = (rws_tick){.value = value, .minor = !major};
                if (major) label_alone(tick, ascii);
            }
        }
        if (pass == 0) *n_major = n;
    }
    return n;
}

static int log_ticks(rws_range range, int wanted, bool ascii, rws_tick *ticks)
{
    int first = (int)ceil(log10(range.low) - 1e-9), last = (int)floor(log10(range.high) + 1e-9);
    if (last > first) return decade_ticks(range, first, last, wanted, ascii, ticks);
    int n_major = 0;
    int n = digit_ticks(range, false, ascii, ticks, &n_major);
    if (n_major < 2) n = digit_ticks(range, true, ascii, ticks, &n_major);
    if (n_major < 2) n = linear_ticks(range, wanted, ascii, ticks);
    return n;
}

int rws__axis_ticks(const rws_axis *axis, rws_range range, int wanted, bool ascii, rws_tick *ticks)
{
    wanted = MIN(MAX(wanted, 1), 20);
    if (!axis->ticks)
        return range.scale == RWS_AXIS_LOG ? log_ticks(range, wanted, ascii, ticks)
                                           : linear_ticks(range, wanted, ascii, ticks);
    int n = 0;
    for (int i = 0; i < axis->n_ticks && n < RWS_MAX_TICKS; i++) {
        double place = rws__range_place(range, axis->ticks[i]);
        if (!(place > -1e-9 && place < 1 + 1e-9)) continue;
        ticks[n] = (rws_tick){.value = axis->ticks[i]};
        label_alone(&ticks[n++], ascii);
    }
    return n;
}

char *rws__axis_caption(const rws_axis *axis, char *text, size_t size)
{
    if (axis->label && axis->unit) snprintf(text, size, "%s (%s)", axis->label, axis->unit);
    else snprintf(text, size, "%s", axis->label ? axis->label : axis->unit ? axis->unit : "");
    return text;
}
