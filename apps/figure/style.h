/* style.h - the style of each method: one colour, one dash and one mark, the same in every figure.
 *
 * The colours are Okabe and Ito's for the paper's methods and Tol's for the others, chosen so that readers with a
 * deficiency of colour vision can tell the methods of a figure apart; in print without colour the dashes do. Solid: the
 * wake-sleep family. Dashed: the estimators of the IWAE bound. This file does not draw.
 *
 *     [style] -> chart, bars, hinton, terminal
 */
#ifndef RWS_FIGURE_STYLE_H
#define RWS_FIGURE_STYLE_H

#include <stdbool.h>

typedef struct {
    double red, green, blue; /* 0 to 1 */
} rws_colour;

typedef enum {
    RWS_MARK_CIRCLE,
    RWS_MARK_SQUARE,
    RWS_MARK_DIAMOND,
    RWS_MARK_UP,
    RWS_MARK_DOWN,
    RWS_MARK_PLUS,
    RWS_MARK_CROSS,
} rws_style_mark;

typedef struct {
    const char    *method; /* as typed on the command line */
    const char    *name;   /* as shown in a figure */
    rws_colour     colour;
    double         dash[6]; /* on, off, … in points */
    int            n_dash;  /* 0 for a solid line */
    rws_style_mark mark;
} rws_style;

/* Every method with a style of its own, in the order of a legend; the last entry has method NULL. */
extern const rws_style rws_styles[];

/* The style of a method: its entry in the table, or a grey style with method and name NULL for a method that is not in
 * the table. Never NULL; static. */
const rws_style *rws__style_find(const char *method);

/* The name of a method in figures: from the table, or `method` itself if it is not in the table. */
const char *rws__style_name(const char *method);

/* The colour mixed with white: 0 leaves it, 1 is white. */
rws_colour rws__colour_tint(rws_colour colour, double share);

/* The colour of a line, paler by the share: 1 is the palest that stands out from white (a contrast of 3, WCAG). A colour
 * that is about as pale already becomes darker instead. */
rws_colour rws__colour_shade(rws_colour colour, double share);

/* The colour mixed with black until it is readable as small text on white. */
rws_colour rws__colour_ink(rws_colour colour);

#endif
