#include "cli/jobs.h"

#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_JOBS = 1024 };

/* In the child, between fork and exec: nothing but system calls. */
static _Noreturn void become(char *const *argv, pid_t parent, int out, int err)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(127); /* it died in between */
    const int null = open("/dev/null", O_RDONLY);
    if (null >= 0) dup2(null, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    execv("/proc/self/exe", argv);
    _exit(127);
}

rws_status rws_job_start(char *const *argv, rws_job *job, rws_error *err)
{
    int out[2], errors[2];
    *job = (rws_job){.out = -1, .err = -1};
    if (pipe2(out, O_CLOEXEC) != 0)
        return rws_fail(err, RWS_BAD_INPUT, "A run cannot be started: %s.", strerror(errno));
    if (pipe2(errors, O_CLOEXEC) != 0) {
        rws_fail(err, RWS_BAD_INPUT, "A run cannot be started: %s.", strerror(errno));
        close(out[0]);
        close(out[1]);
        return RWS_BAD_INPUT;
    }
    const pid_t parent = getpid();
    job->pid = fork();
    if (job->pid == 0) become(argv, parent, out[1], errors[1]);
    const int why = errno;
    close(out[1]);
    close(errors[1]);
    if (job->pid > 0) {
        setpgid(job->pid, job->pid); /* here too: whoever comes first */
        job->out = out[0];
        job->err = errors[0];
        return RWS_OK;
    }
    close(out[0]);
    close(errors[0]);
    job->pid = 0;
    return rws_fail(err, RWS_BAD_INPUT, "A run cannot be started: %s.", strerror(why));
}

/* Takes over the lines that are complete; of one that has no end in sight the beginning is dropped. */
static void take(char *buffer, size_t room, size_t *length, const char *bytes, size_t n,
                 void (*line)(void *context, int job, const char *text), void *context, int job)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] != '\n') {
            if (*length + 1 == room) *length = 0;
            buffer[(*length)++] = bytes[i];
            continue;
        }
        buffer[*length] = '\0';
        *length = 0;
        line(context, job, buffer);
    }
}

static void take_complaint(void *context, int job, const char *text)
{
    (void)job;
    rws_job *j = context;
    if (strncmp(text, "rws: ", 5) == 0) text += 5;
    snprintf(j->complaint, sizeof j->complaint, "%s", text);
}

/* Reads what is there; closes the pipe at its end. */
static void drain(rws_job *j, int index, int *fd, void (*line)(void *context, int job, const char *text), void *context)
{
    char          bytes[4096];
    const ssize_t n = TEMP_FAILURE_RETRY(read(*fd, bytes, sizeof bytes));
    if (n <= 0) {
        close(*fd);
        *fd = -1;
    } else if (fd == &j->out) {
        take(j->line, sizeof j->line, &j->length, bytes, (size_t)n, line, context, index);
    } else {
        take(j->errors, sizeof j->errors, &j->errors_length, bytes, (size_t)n, take_complaint, j, index);
    }
}

int rws_jobs_read(rws_job *jobs, int n, int milliseconds, void (*line)(void *context, int job, const char *text),
                  void *context)
{
    struct pollfd polls[2 * MOST_JOBS];
    RWS_CHECK(n <= MOST_JOBS);
    for (int i = 0; i < n; i++) {
        polls[2 * i] = (struct pollfd){.fd = jobs[i].pid ? jobs[i].out : -1, .events = POLLIN};
        polls[2 * i + 1] = (struct pollfd){.fd = jobs[i].pid ? jobs[i].err : -1, .events = POLLIN};
    }
    if (poll(polls, (nfds_t)(2 * n), milliseconds) > 0) {
        for (int i = 0; i < n; i++) {
            if (polls[2 * i].revents) drain(&jobs[i], i, &jobs[i].out, line, context);
            if (polls[2 * i + 1].revents) drain(&jobs[i], i, &jobs[i].err, line, context);
        }
    }
    for (int i = 0; i < n; i++)
        if (jobs[i].pid && jobs[i].out < 0 && jobs[i].err < 0) return i;
    return -1;
}

int rws_job_end(rws_job *job)
{
    int status = 0;
    if (TEMP_FAILURE_RETRY(waitpid(job->pid, &status, 0)) != job->pid) status = 0;
    job->pid = 0;
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

void rws_job_stop(const rws_job *job)
{
    if (job->pid) kill(job->pid, SIGTERM);
}
