/* request.c - libFuzzer harness for rws serve's requests: the bytes are sent to a server of one run over a socket. Whatever
 * they are, the server replies with a status or closes the connection, shows no file, lets nothing in without its token,
 * and answers a good request afterwards. RWS_FUZZ_RUN names the folder with the run. */
#include "serve/serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PORT_PLACE = 5 };
static const char token[] = "0123456789abcdef0123456789abcdef";
static int        port;

static void begin(void)
{
    static const char       *folder;
    static rws_serve_options options = {
        .n_folders = 1, .token = token, .threads = 1, .max_particles = 50, .max_seconds = 1};
    rws_server *server;
    rws_error   err;
    int         listening;
    folder = getenv("RWS_FUZZ_RUN");
    options.folders = &folder;
    if (!folder || rws__serve_listen("127.0.0.1", &port, &listening, &err) != RWS_OK) abort();
    if (rws__server_new(&options, listening, port, &server, &err) != RWS_OK) abort();
}

/* Connects. libFuzzer looks at its clock every few seconds, by a signal that interrupts calls; an interrupted connect goes
 * on by itself. */
static bool reach(int fd, const struct sockaddr_in *to)
{
    struct pollfd waiting = {.fd = fd, .events = POLLOUT};
    int           error = 0;
    socklen_t     size = sizeof error;
    if (connect(fd, (const void *)to, sizeof *to) == 0) return true;
    if (errno != EINTR) return false;
    while (poll(&waiting, 1, -1) < 0 && errno == EINTR) {}
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && (errno = error) == 0;
}

/* Ends the harness: the machine, not the server, is at fault. */
static void give_up(const char *call)
{
    perror(call);
    abort();
}

/* Sends the bytes, closes its side, and reads the reply. Returns its length. */
static size_t exchange(const uint8_t *data, size_t size, char *reply, size_t capacity)
{
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    /* Hundreds of thousands of connections would use up the ports of one address. */
    static uint32_t          n_connections;
    const struct sockaddr_in from = {.sin_family = AF_INET,
                                     .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + n_connections++ % 200)};
    const struct linger      at_once = {1, 0};
    const struct timeval     patience = {.tv_usec = 100000};
    const int                fd = socket(AF_INET, SOCK_STREAM, 0);
    size_t                   n = 0;
    ssize_t                  got;
    if (fd < 0) give_up("socket");
    if (bind(fd, (const void *)&from, sizeof from) != 0) give_up("bind");
    if (!reach(fd, &to)) give_up("connect");
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    while ((got = send(fd, data, size, MSG_NOSIGNAL)) < 0 && errno == EINTR) {}
    if (got >= 0) shutdown(fd, SHUT_WR);
    while (n + 1 < capacity) {
        got = recv(fd, reply + n, capacity - 1 - n, 0);
        if (got > 0) n += (size_t)got;
        else if (got == 0 || errno != EINTR) break;
    }
    reply[n] = '\0';
    close(fd);
    return n;
}

/* "PORT!" in the bytes stands for the port, which differs from run to run. */
static void put_port(uint8_t *data, size_t size)
{
    char digits[8];
    snprintf(digits, sizeof digits, "%05d", port);
    for (size_t i = 0; i + PORT_PLACE <= size; i++)
        if (memcmp(data + i, "PORT!", PORT_PLACE) == 0) memcpy(data + i, digits, PORT_PLACE);
}

/* Whether the reply has the first words of /etc/passwd. They are compared byte by byte: libFuzzer would learn them from
 * strstr, put them into a query, and find them in the reply, where a query may be repeated. */
static bool shows_file(const char *reply, size_t n)
{
    static const char hidden[] = "sppu;y;1;1;sppu;0sppu"; /* each letter is the next one */
    for (size_t i = 0; i + sizeof hidden <= n; i++) {
        size_t k = 0;
        while (k < sizeof hidden - 1 && reply[i + k] + 1 == hidden[k]) k++;
        if (k == sizeof hidden - 1) return true;
    }
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char reply[1 << 20];
    static int  n_done;
    if (!port) begin();
    uint8_t *copy = malloc(size + 1);
    if (!copy) return 0;
    memcpy(copy, data, size);
    put_port(copy, size);
    const size_t n = exchange(copy, size, reply, sizeof reply);
    if (n && strncmp(reply, "HTTP/1.", 7) != 0) abort();
    if (shows_file(reply, n)) abort();
    const bool carries = size >= 32 && memmem(copy, size, token, 32);
    if (!carries && strncmp(reply, "HTTP/1.1 200", 12) == 0) abort();
    free(copy);
    if (++n_done % 256 == 0) {
        char good[256];
        snprintf(good, sizeof good,
                 "GET /api HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\nConnection: close\r\n\r\n",
                 port, token);
        exchange((const uint8_t *)good, strlen(good), reply, sizeof reply);
        if (strncmp(reply, "HTTP/1.1 200", 12) != 0) abort();
    }
    return 0;
}
