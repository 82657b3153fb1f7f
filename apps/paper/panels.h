/* panels.h - the two layouts that the paper's figures of curves share.
 *
 *     query -> [panels] -> chart -> PNG, SVG, PDF
 */
#ifndef RWS_PAPER_PANELS_H
#define RWS_PAPER_PANELS_H

#include "figure/axis.h"
#include "paper/query.h"

/* A row of panels: a metric. */
typedef struct {
    const char *metric;
    rws_axis    axis;
    const char *alone; /* over particles: the one method that is drawn, since all have the same; NULL: all */
} rws_panels_row;

/* A row for each metric and a column for each K; a curve for each method (NULL-terminated) over the iterations. */
rws_status rws__panels_grid(const rws_query *q, const char *title, const char *const *methods,
                            const rws_panels_row *rows, int n_rows, const char *path, rws_error *err);

/* A panel for each metric, at most RWS_PANELS: its last value over the number of particles, a curve for each method. */
enum { RWS_PANELS = 4 };
rws_status rws__panels_over_particles(const rws_query *q, const char *title, const char *const *methods,
                                      const rws_panels_row *metrics, int n, const char *path, rws_error *err);

/* Three panels: the log evidence over the iterations, for several K; the final one, and the final KL(q || p), over
 * K. */
rws_status rws__panels_three(const rws_query *q, const char *title, const char *const *methods, const char *path,
                             rws_error *err);

#endif
