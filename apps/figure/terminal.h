/* terminal.h - curves on a terminal, in braille dots or plain ASCII.
 *
 * The curves, ranges and ticks of a chart's panel as lines of text, for machines without a graphical screen.
 * Size, character set and colour are arguments; the terminal itself is not asked. Bands are not drawn.
 *
 *     stats -> curve -> [terminal] -> FILE
 */
#ifndef RWS_FIGURE_TERMINAL_H
#define RWS_FIGURE_TERMINAL_H

#include "figure/axis.h"
#include "figure/curve.h"
#include "rws.h"

#include <stdio.h>

typedef struct {
    const char      *title;  /* NULL for none */
    const rws_curve *curves; /* later curves lie on top */
    int              n_curves;
    rws_axis         x, y;
    int              width, height; /* of everything, in characters; 0 for 80 by 24 */
    bool             unicode; /* braille, eight dots a character; else ASCII, where each curve has its own character */
    bool             colour;  /* ANSI escape codes, 256 colours */
} rws_terminal;

/* Writes the chart, each line ended by a newline and none longer than the width. Curves are named at the right, beside
 * their ends. Fails with RWS_BAD_INPUT, nothing written, if the size leaves no room for the curves or an axis's fixed
 * range is impossible; with RWS_BAD_INPUT also if writing to the file fails. The file stays open. */
rws_status rws__terminal_draw(const rws_terminal *terminal, FILE *file, rws_error *err);

#endif
