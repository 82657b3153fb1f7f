/* style.h - how each method looks: one colour, one dash and one mark, the same in every figure.
 *
 * The colours are Okabe and Ito's where the paper's methods need them and Tol's beyond, chosen so that with a
 * deficiency of colour vision methods that share a figure stay apart; the dashes tell them apart in grey print. Solid:
 * the wake-sleep family. Dashed: the estimators of the IWAE bound. It does not draw.
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

/* Every method that has a look of its own, in the order a legend lists them; the last entry has method NULL. */
extern const rws_style rws_styles[];

/* The style of a method: an entry of the table, or for a method that is not in it a neutral grey one whose method and
 * name are NULL. Never returns NULL; nothing to free. */
const rws_style *rws_style_find(const char *method);

/* The name to show for a method: the table's, or the method as typed if it is not there. Not owned by the caller. */
const char *rws_style_name(const char *method);

/* The colour mixed with white: 0 leaves it, 1 is white. */
rws_colour rws_colour_tint(rws_colour colour, double share);

/* The colour mixed with black as far as it takes to be read as small text on white. */
rws_colour rws_colour_ink(rws_colour colour);

#endif
