/*
 * Receives a request of a client. Nothing in it is trusted: the number of descriptors, the number of bytes, their content.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fields.h"
#include "sudo.h"
#include "sudo_request.h"

#define DESCRIPTORS_MAX 5

static bool read_all(int peer, uint8_t *into, size_t size) {
  while (size > 0) {
    ssize_t got = recv(peer, into, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    into += got;
    size -= (size_t)got;
  }
  return true;
}

static int take_descriptors(struct msghdr *message, int descriptors[DESCRIPTORS_MAX]) {
  struct cmsghdr *control = CMSG_FIRSTHDR(message);
  if (!control || (message->msg_flags & MSG_CTRUNC)) return -1;
  if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) return -1;
  size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  if (count > DESCRIPTORS_MAX) return -1;
  memcpy(descriptors, CMSG_DATA(control), count * sizeof(int));
  return (int)count;
}

static bool receive_header(int peer, uint8_t header[SUDO_HEADER], int descriptors[DESCRIPTORS_MAX], int *count) {
  union {
    char bytes[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))];
    struct cmsghdr aligned;
  } control;
  struct iovec part = {.iov_base = header, .iov_len = SUDO_HEADER};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  ssize_t got;
  do got = recvmsg(peer, &message, MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  if (got <= 0) return false;
  *count = take_descriptors(&message, descriptors);
  return *count >= 0 && read_all(peer, header + got, SUDO_HEADER - (size_t)got);
}

static bool take_request(struct sudo_request *request, struct fields *fields) {
  request->flags = take_u8(fields);
  request->mask = take_u16(fields);
  request->ignored = take_u64(fields);
  request->user = take_string(fields);
  request->group = take_string(fields);
  request->directory = take_string(fields);
  request->keep = take_strings(fields, &request->keep_count);
  request->variables = take_strings(fields, &request->variable_count);
  request->argv = take_strings(fields, &request->argc);
  request->env = take_strings(fields, &request->env_count);
  return fields_complete(fields) && request->flags <= SUDO_FLAGS;
}

bool sudo_receive(int peer, struct sudo_request *request) {
  uint8_t header[SUDO_HEADER];
  int descriptors[DESCRIPTORS_MAX], count = 0;
  if (!receive_header(peer, header, descriptors, &count) || header[0] > SUDO_DESCRIPTORS) return false;
  int wanted = 3 + !!(header[0] & SUDO_HAS_DIRECTORY) + !!(header[0] & SUDO_HAS_TERMINAL);
  uint32_t size = get_u32(header + 1);
  if (count != wanted || size > SUDO_REQUEST_MAX) return false;
  memcpy(request->streams, descriptors, sizeof request->streams);
  request->cwd = header[0] & SUDO_HAS_DIRECTORY ? descriptors[3] : -1;
  request->terminal = header[0] & SUDO_HAS_TERMINAL ? descriptors[count - 1] : -1;
  if (request->terminal >= 0 && !isatty(request->terminal)) return false;
  uint8_t *body = malloc(size + 1u); /* not freed, because this process ends with its command */
  if (!body || !read_all(peer, body, size)) return false;
  return take_request(request, &(struct fields){.at = body, .end = body + size});
}
