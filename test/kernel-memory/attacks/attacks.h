// The attack functions, by the kind of kernel object. Each makes objects until its time is over, and returns how many
// it has made.
#ifndef ATTACKS_H
#define ATTACKS_H

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/seccomp.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

// Returns a socket that listens on 127.0.0.1 at this port.
int listen_on(int port, int backlog);

// Returns false when no more objects may be made because the time is over.
int has_time(void);

// files.c
long acl_shm(void);
long acl_disk(void);
long acl_memfd(void);
long acl_memfd_at(void);
long user_attributes(void);
long directory_lists(void);
long directory_lists_slowly(void);
long terminals(void);
long descriptors(void);
long watches(void);
long inotify_events(void);
long locks(void);
long leases(void);
long missing_names(void);
long file_extents(void);
long short_links(void);
long told_descriptors(void);
long told_directories(void);
long system_files(void);
long process_files(void);

// waiting.c
long aio_polls(void);
long aio_contexts(void);
long poll_tables(void);
long select_tables(void);
long blocked_readers(void);
long blocked_opens(void);
long futex_vectors(void);

// network.c
long tcp_unaccepted(void);
long tcp_unaccepted_data(void);
long tcp6_unaccepted_data(void);
long udp_unsent(void);
long ping_answers(void);
long tcp_keys(void);
long multicast_groups(void);
long reuseport_groups(void);
long time_waits(void);
long udp_queues(void);
long netlink_answers(void);
long netlink_questions(void);
long sticky_options(void);

// messages.c
long pipes(void);
long unix_queues(void);
long passed_descriptors(void);
long unix_names(void);
long system_v(void);
long message_queues(void);
long spliced_buffers(void);

// processes.c
long seccomp_filters(void);
long timers(void);
long queued_signals(void);
long page_tables(void);
long areas(void);
long landlock_rules(void);
long local_tables(void);
long groups(void);
long processes(void);
long secret_memory(void);
long set_processors(void);
long sessions(void);
long users(void);

// refused.c
long rings(void);
long keys(void);
long caught_faults(void);
long watched_files(void);
long counted_events(void);
long maps(void);
long packet_sockets(void);
long netfilter_rules(void);
long crypto_sockets(void);
long tunnels(void);
long namespaces(void);
long mounts(void);
long control_groups(void);
long huge_pages(void);
long devices(void);
long routes(void);
long neighbours(void);

#endif
