#include "rws/crash.h"

#include <dlfcn.h>
#include <glib.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

/* The message is composed without stdio and malloc, which the crash may have left in the middle of something. */
typedef struct {
    char   text[1024];
    size_t n;
} message;

static void put(message *s, const char *text)
{
    for (; *text && s->n < sizeof s->text - 1; text++) s->text[s->n++] = *text < ' ' ? '?' : *text;
}

static void put_hex(message *s, uintptr_t number)
{
    char  digits[2 * sizeof number + 1];
    char *at = digits + sizeof digits - 1;
    *at = '\0';
    do *--at = "0123456789abcdef"[number % 16];
    while ((number /= 16) != 0);
    put(s, "0x");
    put(s, at);
}

/* Address of the instruction that crashed; 0 if it is not known on this kind of processor. */
static uintptr_t instruction(const ucontext_t *context)
{
#if defined(__x86_64__) && defined(__linux__)
    return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__) && defined(__linux__)
    return (uintptr_t)context->uc_mcontext.pc;
#else
    (void)context;
    return 0;
#endif
}

/* The file that holds the instruction, its place in the file, and the function's name if that is public. */
static void put_place(message *s, uintptr_t at)
{
    Dl_info where, here;
    if (!dladdr((void *)at, &where) || !dladdr((void *)put_place, &here)) return;
    const bool own = where.dli_fbase == here.dli_fbase;
    put(s, own ? " in its own code" : " in ");
    if (!own) put(s, where.dli_fname);
    put(s, ", at ");
    put_hex(s, at - (uintptr_t)where.dli_fbase);
    if (!where.dli_sname) return;
    put(s, " (");
    put(s, where.dli_sname);
    put(s, ")");
}

static const char *name_of(int number)
{
    switch (number) {
    case SIGBUS: return "bus error";
    case SIGFPE: return "integer division by zero or overflow";
    case SIGILL: return "illegal instruction";
    default: return "segmentation fault";
    }
}

/* The handler is removed before it returns, so that the crash happens again and ends the process in the usual way. A
 * signal that another process has sent is raised again. */
static void on_crash(int number, siginfo_t *info, void *context)
{
    const uintptr_t at = instruction(context);
    message         s = {.n = 0};
    put(&s, "rws: The program crashed (");
    put(&s, name_of(number));
    put(&s, ")");
    if (at) put_place(&s, at);
    put(&s, ". If a model of your own runs in it, compile the model with -g and start the same command under "
            "`gdb --args`, which shows the line; otherwise please report this message.");
    s.text[s.n++] = '\n';
    signal(number, SIG_DFL);
    const ssize_t written = write(STDERR_FILENO, s.text, s.n);
    (void)written;
    if (info->si_code <= 0) raise(number);
}

/* Without memory GLib aborts, or waits for ever if it was in g_once_init_enter, which its own message needs too. */
static void on_glib(const char *domain, GLogLevelFlags level, const char *text, void *context)
{
    static const char message[] = "rws: There is no memory for a library.\n";
    if (level & G_LOG_LEVEL_ERROR && text && strstr(text, "failed to allocate")) {
        const ssize_t written = write(STDERR_FILENO, message, sizeof message - 1);
        (void)written;
        _exit(1);
    }
    g_log_default_handler(domain, level, text, context);
}

void rws__crash_explain(void)
{
    g_log_set_default_handler(on_glib, NULL);
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    struct sigaction action = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK}, now;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (sigaction(numbers[i], NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL)
            sigaction(numbers[i], &action, NULL);
}
