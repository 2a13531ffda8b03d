// Runs inside a sandbox: makes kernel objects of one kind and holds them until it is killed.
//
//   attacks NAME SECONDS
//
// It stops making objects after SECONDS, or when the kernel refuses, or at a number that keeps every attack below about
// 300 MiB. Then it prints one line, `NAME MADE ERRNO`, and sleeps. Its output is not trusted: attacks.ts measures from
// outside.
#include "attacks.h"

static struct timespec deadline;

int has_time(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec < deadline.tv_sec || (now.tv_sec == deadline.tv_sec && now.tv_nsec < deadline.tv_nsec);
}

static const struct {
  const char *name;
  long (*run)(void);
} attacks[] = {
    {"acl-shm", acl_shm},
    {"acl-disk", acl_disk},
    {"acl-memfd", acl_memfd},
    {"acl-memfd-at", acl_memfd_at},
    {"user-attributes", user_attributes},
    {"aio-polls", aio_polls},
    {"aio-contexts", aio_contexts},
    {"poll-tables", poll_tables},
    {"select-tables", select_tables},
    {"blocked-readers", blocked_readers},
    {"blocked-opens", blocked_opens},
    {"directory-lists", directory_lists},
    {"directory-lists-slowly", directory_lists_slowly},
    {"tcp-unaccepted", tcp_unaccepted},
    {"tcp-unaccepted-data", tcp_unaccepted_data},
    {"tcp6-unaccepted-data", tcp6_unaccepted_data},
    {"udp-unsent", udp_unsent},
    {"ping-answers", ping_answers},
    {"tcp-keys", tcp_keys},
    {"multicast-groups", multicast_groups},
    {"reuseport-groups", reuseport_groups},
    {"time-waits", time_waits},
    {"udp-queues", udp_queues},
    {"netlink-answers", netlink_answers},
    {"netlink-questions", netlink_questions},
    {"terminals", terminals},
    {"seccomp-filters", seccomp_filters},
    {"descriptors", descriptors},
    {"watches", watches},
    {"inotify-events", inotify_events},
    {"locks", locks},
    {"leases", leases},
    {"pipes", pipes},
    {"unix-queues", unix_queues},
    {"passed-descriptors", passed_descriptors},
    {"unix-names", unix_names},
    {"system-v", system_v},
    {"message-queues", message_queues},
    {"timers", timers},
    {"queued-signals", queued_signals},
    {"page-tables", page_tables},
    {"areas", areas},
    {"missing-names", missing_names},
    {"landlock-rules", landlock_rules},
    {"local-tables", local_tables},
    {"groups", groups},
    {"file-extents", file_extents},
    {"processes", processes},
    {"futex-vectors", futex_vectors},
    {"spliced-buffers", spliced_buffers},
    {"short-links", short_links},
    {"told-descriptors", told_descriptors},
    {"told-directories", told_directories},
    {"system-files", system_files},
    {"process-files", process_files},
    {"secret-memory", secret_memory},
    {"set-processors", set_processors},
    {"sessions", sessions},
    {"users", users},
    {"sticky-options", sticky_options},
    {"rings", rings},
    {"keys", keys},
    {"caught-faults", caught_faults},
    {"watched-files", watched_files},
    {"counted-events", counted_events},
    {"maps", maps},
    {"packet-sockets", packet_sockets},
    {"netfilter-rules", netfilter_rules},
    {"crypto-sockets", crypto_sockets},
    {"tunnels", tunnels},
    {"namespaces", namespaces},
    {"mounts", mounts},
    {"control-groups", control_groups},
    {"huge-pages", huge_pages},
    {"devices", devices},
    {"routes", routes},
    {"neighbours", neighbours},
};

int main(int count, char **arg) {
  if (count != 3) return 2;
  clock_gettime(CLOCK_MONOTONIC, &deadline);
  long milliseconds = (long)(atof(arg[2]) * 1000) + deadline.tv_nsec / 1000000;
  deadline.tv_sec += milliseconds / 1000;
  deadline.tv_nsec = milliseconds % 1000 * 1000000;
  for (size_t n = 0; n < sizeof attacks / sizeof *attacks; n++) {
    if (strcmp(attacks[n].name, arg[1]) != 0) continue;
    errno = 0;
    long made = attacks[n].run();
    printf("%s %ld %d\n", arg[1], made, errno);
    fflush(stdout);
    for (;;) pause();
  }
  fprintf(stderr, "no attack is called %s\n", arg[1]);
  return 2;
}
