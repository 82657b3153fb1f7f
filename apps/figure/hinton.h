/* hinton.h - distributions as rows of squares whose area is the probability.
 *
 * A grid of panels (such as iterations by conditions), each with one strip per method and one square per outcome. A
 * missing square shows an outcome that a method has lost. Values are not normalised; a value of 0.001 or less is not
 * drawn.
 *
 *     [hinton] -> PNG, SVG or PDF
 *
 * All squares of a panel have one scale, the largest at which none touch. It needs no key, because the squares of each
 * strip together have the area of probability 1. All arguments belong to the caller and are only read.
 */
#ifndef RWS_FIGURE_HINTON_H
#define RWS_FIGURE_HINTON_H

#include "rws.h"

typedef struct {
    const char *method; /* its style: "true", "ws" */
    const char *label;  /* NULL for the method's name */
} rws_strip;

/* A heading over some neighbouring columns: "K = 2". */
typedef struct {
    const char *label;
    int         first, n_columns;
} rws_heading;

typedef struct {
    const char        *title; /* NULL for none */
    int                n_rows, n_columns, n_strips, n_values;
    const char *const *rows;     /* the name of each row, at its left; NULL for none */
    const char *const *columns;  /* the name of each column, above it, broken to its width; NULL for none */
    const rws_heading *headings; /* over the columns' names */
    int                n_headings;
    const rws_strip   *strips;     /* the methods, from the top */
    const double      *values;     /* [n_rows][n_columns][n_strips][n_values]; NaN is not drawn */
    const char        *x_label;    /* what the outcomes are: "z"; NULL for none */
    double             width, dpi; /* as in chart.h */
} rws_hinton;

/* Writes the panels to the path, which ends in .png, .svg or .pdf. Fails with RWS_BAD_INPUT if the ending is
 * another, the page has no room for its columns, or the file cannot be written; a file that was there is then
 * untouched. */
rws_status rws__hinton_draw(const rws_hinton *hinton, const char *path, rws_error *err);

#endif
