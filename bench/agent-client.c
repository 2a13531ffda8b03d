// The fastest possible client of an agent, for comparison. Runs a command over the agent's socket (agent/PROTOCOL.md), and prints
// the milliseconds of each round. Usage: agent-client SOCKET ROUNDS USER PROGRAM [ARGUMENT…]
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { EXEC = 0x01, FAILED = 0x81, EXIT = 0x84, MERGE_OUTPUT = 1, HEADER_BYTES = 5 };

static uint8_t request[64 * 1024];
static uint8_t answer[1024 * 1024];

static void fail(const char *why) {
    perror(why);
    exit(1);
}

static uint8_t *put_u32(uint8_t *at, uint32_t value) {
    for (int byte = 0; byte < 4; byte++) *at++ = (uint8_t)(value >> (8 * byte));
    return at;
}

static uint8_t *put_string(uint8_t *at, const char *text) {
    size_t size = strlen(text);
    at = put_u32(at, (uint32_t)size);
    memcpy(at, text, size + 1);
    return at + size + 1;
}

static size_t write_request(const char *user, char **argv, int argc) {
    uint8_t *at = request + HEADER_BYTES;
    *at++ = MERGE_OUTPUT;
    at = put_string(at, user);
    at = put_string(at, "");
    at = put_u32(at, (uint32_t)argc);
    for (int index = 0; index < argc; index++) at = put_string(at, argv[index]);
    at = put_u32(at, 0);
    put_u32(request, (uint32_t)(at - request - HEADER_BYTES));
    request[4] = EXEC;
    return (size_t)(at - request);
}

static void read_all(int agent, uint8_t *to, size_t size) {
    while (size > 0) {
        ssize_t got = read(agent, to, size);
        if (got <= 0) fail("the agent hung up");
        to += got;
        size -= (size_t)got;
    }
}

static void run_once(const struct sockaddr_un *address, size_t size) {
    int agent = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (agent < 0 || connect(agent, (const struct sockaddr *)address, sizeof *address) < 0) fail("connect");
    if (write(agent, request, size) != (ssize_t)size) fail("write");
    for (uint8_t kind = 0; kind != EXIT;) {
        uint8_t header[HEADER_BYTES];
        read_all(agent, header, sizeof header);
        uint32_t bytes = header[0] | header[1] << 8 | header[2] << 16 | (uint32_t)header[3] << 24;
        kind = header[4];
        if (bytes > sizeof answer) fail("the agent sends too much");
        read_all(agent, answer, bytes);
        if (kind == FAILED) fail("the agent refused");
    }
    close(agent);
}

int main(int argc, char **argv) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (argc < 5 || strlen(argv[1]) >= sizeof address.sun_path) return 2;
    size_t named = 0;
    for (int index = 3; index < argc; index++) named += strlen(argv[index]) + 16;
    if (named + 64 > sizeof request) return 2;
    strcpy(address.sun_path, argv[1]);
    size_t size = write_request(argv[3], argv + 4, argc - 4);
    for (int round = atoi(argv[2]); round > 0; round--) {
        struct timespec began, ended;
        clock_gettime(CLOCK_MONOTONIC, &began);
        run_once(&address, size);
        clock_gettime(CLOCK_MONOTONIC, &ended);
        printf("%.4f\n", (double)(ended.tv_sec - began.tv_sec) * 1e3 + (double)(ended.tv_nsec - began.tv_nsec) / 1e6);
    }
    return 0;
}
