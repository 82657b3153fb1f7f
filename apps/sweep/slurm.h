/* slurm.h - a sweep as an array of Slurm jobs, and what is known of tasks that work on a sweep elsewhere.
 *
 *     rws sweep FILE --slurm  ->  sbatch --array  ->  rws sweep FILE --task I/N   on any machine, N times
 *
 * Task I of N has the runs I, I + N, I + 2 N, … of the sweep, so that no two tasks ever work on the same run, and needs
 * no lock. While it works it writes down what it does in DIR/.tasks/I, for `rws sweep --status`.
 */
#ifndef RWS_SWEEP_SLURM_H
#define RWS_SWEEP_SLURM_H

#include "sweep/campaign.h"

#define RWS_TASKS_FOLDER ".tasks" /* in the folder of the runs */
#define RWS_MAX_TASKS 1000        /* longest array of Slurm, unless its MaxArraySize was raised */

/* Submits tasks for the runs that are not finished; sbatch gets the further options. Prints the number of the job.
 * RWS_BAD_INPUT if there is no Slurm, if tasks of this sweep are in its queue already, or if sbatch refuses. */
rws_status rws__slurm_submit(const rws_sweep *sweep, const char *file, const rws_campaign_options *o, int n_tasks,
                             char *const *options, int n_options, rws_error *err) __attribute__((warn_unused_result));

/* After a task was stopped by a signal: asks Slurm to queue it again, unless the user has cancelled it. Does nothing
 * outside of Slurm. */
void rws__slurm_requeue(void);

/* Prints what is known of every run, and which task does it. */
rws_status rws__slurm_status(const rws_sweep *sweep, const char *folder, bool json, rws_error *err)
    __attribute__((warn_unused_result));

/* Writes down what a task does. A failure is ignored. */
typedef struct {
    const char *run;
    uint64_t    iteration;
} rws_task_run;
void rws__task_write(const char *folder, int task, int n_tasks, const rws_task_run *runs, int n, bool ended);

#endif
