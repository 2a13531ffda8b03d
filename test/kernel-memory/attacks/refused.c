// Attacks with objects that no sandbox may make. The kernel or the seccomp filter must refuse each of these calls.
#include "attacks.h"

// Tries again and again to make an object that a sandbox must not get. `ask` returns a number below 0 if the call is
// refused.
static long ask_for(long (*ask)(long made)) {
  for (long made = 0;; made++)
    if (made == 1000 || !has_time() || ask(made) < 0) return made;
}

static char ring_parameters[256], attributes[128];
static long make_ring(long n) { (void)n; return syscall(425, 1, ring_parameters); } // io_uring_setup

static long make_key(long n) {
  char name[32];
  snprintf(name, sizeof name, "key-%ld", n);
  return syscall(SYS_add_key, "user", name, "x", 1, -3);
}

static long catch_faults(long n) { (void)n; return syscall(SYS_userfaultfd, 1); }
static long watch_files(long n) { (void)n; return syscall(SYS_fanotify_init, 0, O_RDONLY); }
static long count_events(long n) { (void)n; ((uint32_t *)attributes)[0] = 1, ((uint32_t *)attributes)[1] = 112; return syscall(SYS_perf_event_open, attributes, 0, -1, -1, 0); }

static long make_map(long n) {
  (void)n;
  uint32_t map[18] = {2, 4, 4096, 1024}; // an array
  return syscall(SYS_bpf, 0, map, sizeof map);
}

static long open_packets(long n) { (void)n; return socket(17, SOCK_RAW, 0); }
static long open_netfilter(long n) { (void)n; return socket(AF_NETLINK, SOCK_RAW, 12); }
static long open_crypto(long n) { (void)n; return socket(38, SOCK_SEQPACKET, 0); }
static long open_tunnel(long n) { (void)n; return open("/dev/net/tun", O_RDWR); }

static long make_namespace(long n) {
  static const int kinds[] = {CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWCGROUP};
  (void)n;
  for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++)
    if (unshare(kinds[kind]) == 0) return 1;
  return -1;
}

static long make_mount(long n) { (void)n; return syscall(SYS_mount, "none", "/tmp", "tmpfs", 0, NULL); }

static long make_group(long n) {
  char path[64];
  snprintf(path, sizeof path, "/sys/fs/cgroup/%s%ld", n & 1 ? "memory/" : "", n);
  return mkdir(path, 0700);
}

static long take_huge_page(long n) {
  (void)n;
  return mmap(NULL, 2 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0) == MAP_FAILED ? -1 : 1;
}

static long make_route(long n, uint16_t type, size_t body) {
  struct {
    struct nlmsghdr head;
    char body[64];
  } ask = {.head = {.nlmsg_len = (uint32_t)(sizeof ask.head + body), .nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK}};
  struct {
    struct nlmsghdr head;
    struct nlmsgerr answer;
    char rest[256];
  } told = {0};
  int one = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
  ask.body[0] = type == RTM_NEWLINK ? 0 : AF_INET;
  (void)n;
  if (one < 0 || send(one, &ask, ask.head.nlmsg_len, 0) < 0 || recv(one, &told, sizeof told, 0) < 0) return -1;
  close(one);
  return told.answer.error == -EPERM ? -1 : 1; // the kernel checks the permission before anything else
}

static long make_device(long n) { return make_route(n, RTM_NEWLINK, sizeof(struct ifinfomsg)); }
static long add_route(long n) { return make_route(n, RTM_NEWROUTE, sizeof(struct rtmsg)); }
static long add_neighbour(long n) { return make_route(n, RTM_NEWNEIGH, 12); }
long rings(void) { return ask_for(make_ring); }
long keys(void) { return ask_for(make_key); }
long caught_faults(void) { return ask_for(catch_faults); }
long watched_files(void) { return ask_for(watch_files); }
long counted_events(void) { return ask_for(count_events); }
long maps(void) { return ask_for(make_map); }
long packet_sockets(void) { return ask_for(open_packets); }
long netfilter_rules(void) { return ask_for(open_netfilter); }
long crypto_sockets(void) { return ask_for(open_crypto); }
long tunnels(void) { return ask_for(open_tunnel); }
long namespaces(void) { return ask_for(make_namespace); }
long mounts(void) { return ask_for(make_mount); }
long control_groups(void) { return ask_for(make_group); }
long huge_pages(void) { return ask_for(take_huge_page); }
long devices(void) { return ask_for(make_device); }
long routes(void) { return ask_for(add_route); }
long neighbours(void) { return ask_for(add_neighbour); }
