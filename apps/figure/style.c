#include "figure/style.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define CHANNEL(hex, shift) (((hex) >> (shift)&255) / 255.0)
#define RGB(hex) .colour = {CHANNEL(hex, 16), CHANNEL(hex, 8), CHANNEL(hex, 0)}

/* The four solid styles also differ in lightness, since no dash tells them apart in print without colour:
 * wws 22, ww 46, ws 58, dww 71 (CIE L*). */
const rws_style rws_styles[] = {
    {"true", "True", RGB(0x000000), {0}, 0, RWS_MARK_CIRCLE},
    {"em", "EM", RGB(0x777777), {1.2, 2.8}, 2, RWS_MARK_CROSS},
    {"concrete", "Concrete", RGB(0x882255), {1.4, 1.4}, 2, RWS_MARK_PLUS},
    {"relax", "RELAX", RGB(0x56B4E9), {6, 2}, 2, RWS_MARK_UP},
    {"rebar", "REBAR", RGB(0x225522), {6, 1.6, 1.4, 1.6, 1.4, 1.6}, 6, RWS_MARK_DOWN},
    {"reinforce", "REINFORCE", RGB(0xCC79A7), {2.6, 1.8}, 2, RWS_MARK_CROSS},
    {"rloo", "RLOO", RGB(0x999933), {2.6, 1.4, 1.2, 1.4}, 4, RWS_MARK_PLUS},
    {"nvil", "NVIL", RGB(0x994F00), {9, 3}, 2, RWS_MARK_UP},
    {"vimco", "VIMCO", RGB(0xD55E00), {5, 1.6, 1.4, 1.6}, 4, RWS_MARK_SQUARE},
    {"ws", "WS", RGB(0x009E73), {0}, 0, RWS_MARK_UP},
    {"ww", "WW", RGB(0x0072B2), {0}, 0, RWS_MARK_CIRCLE},
    {"dvae", "DVAE", RGB(0xAA4499), {1.5, 2}, 2, RWS_MARK_DOWN},
    {"muprop", "MuProp", RGB(0x666633), {7, 2, 2, 2}, 4, RWS_MARK_DIAMOND},
    {"wws", "WWS", RGB(0x332288), {0}, 0, RWS_MARK_DOWN},
    {"dww", "δ-WW", RGB(0xE69F00), {0}, 0, RWS_MARK_DIAMOND},
    {0},
};

static const rws_style other = {NULL, NULL, RGB(0x888888), {3, 1, 1, 1}, 4, RWS_MARK_CIRCLE};

const rws_style *rws__style_find(const char *method)
{
    for (const rws_style *style = rws_styles; method && style->method; style++) {
        if (strcmp(style->method, method) == 0) return style;
    }
    return &other;
}

const char *rws__style_name(const char *method)
{
    const char *name = rws__style_find(method)->name;
    return name ? name : method ? method : "";
}

rws_colour rws__colour_tint(rws_colour colour, double share)
{
    return (rws_colour){colour.red + (1 - colour.red) * share, colour.green + (1 - colour.green) * share,
                        colour.blue + (1 - colour.blue) * share};
}

static double linear(double channel)
{
    return channel <= 0.04045 ? channel / 12.92 : pow((channel + 0.055) / 1.055, 2.4);
}

/* WCAG: with white. Lines want 3, small text wants 4.5. */
static double contrast(rws_colour c)
{
    return 1.05 / (0.2126 * linear(c.red) + 0.7152 * linear(c.green) + 0.0722 * linear(c.blue) + 0.05);
}

static rws_colour darker(rws_colour colour, double share)
{
    return (rws_colour){colour.red * share, colour.green * share, colour.blue * share};
}

rws_colour rws__colour_shade(rws_colour colour, double share)
{
    double most = 1;
    if (contrast(colour) < 3.6) return darker(colour, 1 - 0.7 * share);
    while (contrast(rws__colour_tint(colour, most)) < 3) most -= 0.01;
    return rws__colour_tint(colour, share * most);
}

rws_colour rws__colour_ink(rws_colour colour)
{
    for (int i = 0; i < 64 && contrast(colour) < 4.5; i++) colour = darker(colour, 0.96);
    return colour;
}
