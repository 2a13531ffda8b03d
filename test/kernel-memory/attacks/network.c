// Attacks with network sockets: connections, queues, keys, groups and routes.
#include "attacks.h"

static int listen_everywhere(int port, int backlog) {
  int listener = socket(AF_INET6, SOCK_STREAM, 0);
  struct sockaddr_in6 here = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
  if (listener < 0 || bind(listener, (struct sockaddr *)&here, sizeof here) < 0 || listen(listener, backlog) < 0) return -1;
  return listener;
}

int listen_on(int port, int backlog) {
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (listener < 0 || bind(listener, (struct sockaddr *)&here, sizeof here) < 0 || listen(listener, backlog) < 0) return -1;
  return listener;
}

static long leave_unaccepted(size_t bytes, long most, int (*listen_at)(int port, int backlog)) {
  static char data[65536];
  long made = 0;
  for (int port = 2000; made < most && has_time(); port++) {
    if (listen_at(port, 4096) < 0) return made;
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (int n = 0; n < 4000 && made < most && has_time(); n++, made++) {
      int one = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
      if (one < 0 || (connect(one, (struct sockaddr *)&there, sizeof there) < 0 && errno != EINPROGRESS)) return made;
      for (size_t sent = 0; sent < bytes; sent += sizeof data)
        if (send(one, data, sizeof data, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) break;
      close(one);
    }
  }
  return made;
}

long tcp_unaccepted(void) { return leave_unaccepted(0, 60000, listen_on); }
long tcp_unaccepted_data(void) { return leave_unaccepted(131072, 2500, listen_on); }

// A socket that listens on IPv6 accepts connections over IPv4 too.
long tcp6_unaccepted_data(void) { return leave_unaccepted(131072, 2500, listen_everywhere); }

static ssize_t send_to_itself(int one, const void *data, size_t size, int flags) {
  struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  return sendto(one, data, size, flags | MSG_DONTWAIT, (struct sockaddr *)&there, sizeof there);
}

long udp_unsent(void) {
  static char data[60000];
  for (long made = 0;; made++) {
    int one = socket(AF_INET, SOCK_DGRAM, 0);
    if (made == 4500 || !has_time() || one < 0) return made;
    if (send_to_itself(one, data, sizeof data, MSG_MORE) < 0) return made;
  }
}

long ping_answers(void) {
  static char echo[60000] = {8};
  for (long made = 0;; made++) {
    int one = socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP);
    if (made == 1500 || !has_time() || one < 0) return made;
    for (int n = 0; n < 3; n++)
      if (send_to_itself(one, echo, sizeof echo, 0) < 0) return made;
  }
}

long tcp_keys(void) {
  struct tcp_md5sig key = {.tcpm_keylen = TCP_MD5SIG_MAXKEYLEN};
  struct sockaddr_in *peer = (struct sockaddr_in *)&key.tcpm_addr;
  peer->sin_family = AF_INET;
  for (long made = 0; made < 2000 && has_time();) {
    int one = socket(AF_INET, SOCK_STREAM, 0);
    if (one < 0) return made;
    for (uint32_t n = 1; n < 600; n++) {
      peer->sin_addr.s_addr = htonl(n);
      if (setsockopt(one, IPPROTO_TCP, TCP_MD5SIG, &key, sizeof key) < 0) {
        if (n == 1) return made;
        break;
      }
    }
    made++;
  }
  return 2000;
}

long multicast_groups(void) {
  uint32_t group = 0xe0010000;
  for (long made = 0;; made++) {
    int one = socket(AF_INET, SOCK_DGRAM, 0);
    if (made == 20000 || !has_time() || one < 0) return made;
    for (int n = 0; n < 20; n++) {
      struct ip_mreqn wanted = {.imr_multiaddr.s_addr = htonl(group++), .imr_address.s_addr = htonl(INADDR_LOOPBACK)};
      if (setsockopt(one, IPPROTO_IP, IP_ADD_MEMBERSHIP, &wanted, sizeof wanted) < 0) return made;
    }
  }
}

long reuseport_groups(void) {
  int on = 1;
  for (long made = 0;; made++) {
    int one = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons((uint16_t)(2000 + made)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (made == 60000 || !has_time() || one < 0) return made;
    setsockopt(one, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    if (bind(one, (struct sockaddr *)&here, sizeof here) < 0) return made;
  }
}

long time_waits(void) {
  int listener = listen_on(2000, 128);
  struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(2000), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  for (long made = 0;; made++) {
    int one = socket(AF_INET, SOCK_STREAM, 0);
    if (made == 60000 || !has_time() || one < 0 || connect(one, (struct sockaddr *)&there, sizeof there) < 0) return made;
    int other = accept(listener, NULL, NULL);
    close(one);
    close(other);
  }
}

long udp_queues(void) {
  static char data[60000];
  for (long made = 0;; made++) {
    int one = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof here;
    if (made == 1500 || !has_time() || one < 0 || bind(one, (struct sockaddr *)&here, size) < 0) return made;
    getsockname(one, (struct sockaddr *)&here, &size);
    for (int n = 0; n < 4; n++) sendto(one, data, sizeof data, MSG_DONTWAIT, (struct sockaddr *)&here, size);
  }
}

static long ask_routes(size_t padding, int is_read_on) {
  static char message[1 << 20];
  struct {
    struct nlmsghdr head;
    struct rtgenmsg body;
  } *ask = (void *)message;
  ask->head = (struct nlmsghdr){.nlmsg_len = (uint32_t)(sizeof *ask + padding), .nlmsg_type = RTM_GETLINK, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP};
  for (long made = 0;; made++) {
    int one = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), least = 1;
    if (made == 1000 || !has_time() || one < 0) return made;
    if (is_read_on) setsockopt(one, SOL_SOCKET, SO_RCVBUF, &least, sizeof least);
    for (int n = 0; n < (is_read_on ? 1 : 200); n++)
      if (send(one, message, ask->head.nlmsg_len, MSG_DONTWAIT) < 0) break;
  }
}

long netlink_answers(void) { return ask_routes(0, 0); }
long netlink_questions(void) { return ask_routes(190000, 1); }

long sticky_options(void) {
  static char header[2048];
  header[1] = 255;
  for (long made = 0;; made++) {
    int one = socket(AF_INET6, SOCK_DGRAM, 0);
    if (made == 30000 || !has_time() || one < 0) return made;
    for (int option = 54; option < 60; option += 5) setsockopt(one, IPPROTO_IPV6, option, header, sizeof header);
    for (int option = 54; option < 60; option++) setsockopt(one, IPPROTO_IPV6, option, header, 2048);
  }
}
