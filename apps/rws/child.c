#include "rws/child.h"

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

enum { MAX_CHILDREN = 1024 };

/* In the child, between fork and exec: nothing but system calls. */
static _Noreturn void become(char *const *argv, pid_t parent, int out, int err)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(127); /* the parent died before prctl */
    const int null = open("/dev/null", O_RDONLY);
    if (null >= 0) dup2(null, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    execv("/proc/self/exe", argv);
    _exit(127);
}

rws_status rws__child_start(char *const *argv, rws_child *child, rws_error *err)
{
    int out[2], errors[2];
    *child = (rws_child){.out = -1, .err = -1};
    if (pipe2(out, O_CLOEXEC) != 0)
        return rws_fail(err, RWS_BAD_INPUT, "A run cannot be started: %s.", strerror(errno));
    if (pipe2(errors, O_CLOEXEC) != 0) {
        rws_fail(err, RWS_BAD_INPUT, "A run cannot be started: %s.", strerror(errno));
        close(out[0]);
        close(out[1]);
        return RWS_BAD_INPUT;
    }
    const pid_t parent = getpid();
    child->pid = fork();
    if (child->pid == 0) become(argv, parent, out[1], errors[1]);
    const int why = errno;
    close(out[1]);
    close(errors[1]);
    if (child->pid > 0) {
        setpgid(child->pid, child->pid); /* in both processes: either may come first */
        child->out = out[0];
        child->err = errors[0];
        return RWS_OK;
    }
    close(out[0]);
    close(errors[0]);
    child->pid = 0;
    return rws_fail(err, RWS_BAD_INPUT, "A run cannot be started: %s.", strerror(why));
}

/* Appends bytes to the buffer and hands out every line that is complete. The beginning of a line that does not fit the
 * buffer is dropped. */
static void take(char *buffer, size_t size, size_t *length, const char *bytes, size_t n,
                 void (*line)(void *context, int child, const char *text), void *context, int child)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] != '\n') {
            if (*length + 1 == size) *length = 0;
            buffer[(*length)++] = bytes[i];
            continue;
        }
        buffer[*length] = '\0';
        *length = 0;
        line(context, child, buffer);
    }
}

static void take_complaint(void *context, int child, const char *text)
{
    (void)child;
    rws_child *j = context;
    if (strncmp(text, "rws: ", 5) == 0) text += 5;
    snprintf(j->complaint, sizeof j->complaint, "%s", text);
}

/* Reads what the pipe holds; closes it at its end. */
static void drain(rws_child *j, int index, int *fd, void (*line)(void *context, int child, const char *text),
                  void *context)
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

int rws__children_read(rws_child *children, int n, int milliseconds,
                       void (*line)(void *context, int child, const char *text), void *context)
{
    struct pollfd polls[2 * MAX_CHILDREN];
    RWS_CHECK(n <= MAX_CHILDREN);
    for (int i = 0; i < n; i++) {
        polls[2 * i] = (struct pollfd){.fd = children[i].pid ? children[i].out : -1, .events = POLLIN};
        polls[2 * i + 1] = (struct pollfd){.fd = children[i].pid ? children[i].err : -1, .events = POLLIN};
    }
    if (poll(polls, (nfds_t)(2 * n), milliseconds) > 0) {
        for (int i = 0; i < n; i++) {
            if (polls[2 * i].revents) drain(&children[i], i, &children[i].out, line, context);
            if (polls[2 * i + 1].revents) drain(&children[i], i, &children[i].err, line, context);
        }
    }
    for (int i = 0; i < n; i++)
        if (children[i].pid && children[i].out < 0 && children[i].err < 0) return i;
    return -1;
}

int rws__child_end(rws_child *child)
{
    int status;
    if (TEMP_FAILURE_RETRY(waitpid(child->pid, &status, 0)) != child->pid) status = W_EXITCODE(127, 0);
    child->pid = 0;
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

void rws__child_stop(const rws_child *child)
{
    if (child->pid) kill(child->pid, SIGTERM);
}
