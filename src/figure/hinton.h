/* hinton.h - distributions as rows of squares whose area is the probability.
 *
 * A grid of panels (say iterations by conditions), each with one strip per method and one square per outcome: which
 * outcomes a method has lost is seen at a glance. It does not normalise, and draws no value of 0.001 or less.
 *
 *     [hinton] -> PNG, SVG or PDF
 *
 * All squares of a panel have one scale, the largest at which none touch. It needs no key: a strip's squares have the
 * same area together as any other strip's in the panel, that of probability 1. Everything passed in belongs to the
 * caller and is only read.
 */
#ifndef RWS_FIGURE_HINTON_H
#define RWS_FIGURE_HINTON_H

#include "rws.h"

typedef struct {
    const char *method; /* whose colour it has: "true", "ws" */
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
rws_status rws_hinton_draw(const rws_hinton *hinton, const char *path, rws_error *err);

#endif
