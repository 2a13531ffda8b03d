// The system call filter of programs without privileges. It forbids parts of the kernel that a server or a decompressor never
// needs, and that were often used to gain rights. For other calls the kernel's checks suffice, because the user has no
// capabilities.
//
//   SOCKETS    none: no socket at all. unix: unix sockets. internet: also IPv4, IPv6, and netlink to list interfaces.
//   PROCESSES  alone: may start threads but no process, and signal only itself. many: may start processes and signal them.
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "confine.h"

#if defined __x86_64__
static const unsigned architecture = AUDIT_ARCH_X86_64;
#elif defined __aarch64__
static const unsigned architecture = AUDIT_ARCH_AARCH64;
#else
#error "no system call filter for this architecture"
#endif

// Numbers of system calls that the headers of Debian 12 may lack. From 424 on, the numbers are equal on all architectures.
enum {
  call_pidfd_send_signal = 424, call_io_uring_setup, call_io_uring_enter, call_io_uring_register, call_open_tree,
  call_move_mount, call_fsopen, call_fsconfig, call_fsmount, call_fspick, call_pidfd_open, call_clone3,
  call_pidfd_getfd = 438, call_process_madvise = 440, call_mount_setattr = 442, call_quotactl_fd = 443,
  call_memfd_secret = 447, call_process_mrelease = 448, call_set_mempolicy_home_node = 450, call_open_tree_attr = 467,
};

static const int forbidden[] = {
    // Forbidden: mounts, and changes of the root directory.
    SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, call_open_tree, call_open_tree_attr, call_move_mount, call_fsopen,
    call_fsconfig, call_fsmount, call_fspick, call_mount_setattr,
    // Forbidden: new namespaces. The function `judge_clone` checks the flags of the call `clone`.
    SYS_unshare, SYS_setns,
    // Forbidden: access to the memory and descriptors of other processes.
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp, call_pidfd_getfd, call_process_madvise,
    call_process_mrelease,
    // Forbidden: loading code into the kernel.
    SYS_bpf, SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_kexec_load,
#ifdef SYS_kexec_file_load
    SYS_kexec_file_load,
#endif
    // Forbidden: watching the programs and files of the host, and reading the kernel's log.
    SYS_perf_event_open, SYS_fanotify_init, SYS_fanotify_mark, SYS_syslog, SYS_acct, SYS_lookup_dcookie,
    // Forbidden: key rings of the kernel.
    SYS_add_key, SYS_request_key, SYS_keyctl,
    // Forbidden: userfaultfd, because a program could make the kernel wait during an access to memory.
    // Forbidden: io_uring, because this filter does not see its calls.
    SYS_userfaultfd, call_io_uring_setup, call_io_uring_enter, call_io_uring_register,
    // Forbidden: opening files without passing the directories above them, which may deny access.
    SYS_open_by_handle_at, SYS_name_to_handle_at,
    // Forbidden: making memory that not even the kernel can read.
    call_memfd_secret,
    // Forbidden: changes of the machine's settings.
    SYS_reboot, SYS_swapon, SYS_swapoff, SYS_settimeofday, SYS_clock_settime, SYS_clock_adjtime, SYS_adjtimex,
    SYS_sethostname, SYS_setdomainname, SYS_vhangup, SYS_quotactl, call_quotactl_fd, SYS_nfsservctl,
    SYS_mbind, SYS_set_mempolicy, SYS_migrate_pages, SYS_move_pages, call_set_mempolicy_home_node,
#ifdef __x86_64__
    SYS_iopl, SYS_ioperm, SYS_modify_ldt, SYS_uselib, SYS_ustat, SYS_sysfs, SYS__sysctl, SYS_create_module,
    SYS_query_module, SYS_get_kernel_syms,
#endif
};

enum { most_instructions = 512 };
static struct sock_filter program[most_instructions];
static unsigned short length;

static void add(unsigned short code, unsigned char yes, unsigned char no, unsigned value) {
  if (length == most_instructions) refuse("the filter is too long");
  program[length++] = (struct sock_filter){code, yes, no, value};
}

static void load(size_t offset) { add(BPF_LD | BPF_W | BPF_ABS, 0, 0, (unsigned)offset); }
static void answer(unsigned what) { add(BPF_RET | BPF_K, 0, 0, what); }
static void unless_equal_skip(unsigned value, unsigned char skipped) { add(BPF_JMP | BPF_JEQ | BPF_K, 0, skipped, value); }
static void if_equal_skip(unsigned value, unsigned char skipped) { add(BPF_JMP | BPF_JEQ | BPF_K, skipped, 0, value); }
static unsigned error(int number) { return SECCOMP_RET_ERRNO | (unsigned)number; }

static void load_call(void) { load(offsetof(struct seccomp_data, nr)); }
// Loads only the lower half of an argument, because an `int` and the flags of `clone` have at most 32 bits.
static void load_argument(unsigned index) { load(offsetof(struct seccomp_data, args) + 8 * index); }

static void forbid(int call, int number) {
  unless_equal_skip((unsigned)call, 1);
  answer(error(number));
}

// Allows a call only if the argument has one of these values. Otherwise the call fails with the errno `otherwise`. At the end, the
// filter loads the number of the call into its register again, for the next rule.
static void allow_only(int call, unsigned argument, const unsigned *values, unsigned char count, int otherwise) {
  unless_equal_skip((unsigned)call, (unsigned char)(count + 3));
  load_argument(argument);
  for (unsigned char index = 0; index < count; index++) if_equal_skip(values[index], (unsigned char)(count - index));
  answer(error(otherwise));
  load_call();
}

// Restricts the flags of `clone`. `refused_if_set`: 1 refuses a call with one of `bits`, 0 a call with none of them.
static void judge_clone(unsigned bits, int refused_if_set) {
  unless_equal_skip(SYS_clone, 4);
  load_argument(0);
  add(BPF_JMP | BPF_JSET | BPF_K, refused_if_set ? 0 : 1, refused_if_set ? 1 : 0, bits);
  answer(error(EPERM));
  load_call();
}

static const unsigned namespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
                                   CLONE_NEWPID | CLONE_NEWNET;

static void judge_sockets(const char *sockets) {
  if (strcmp(sockets, "none") == 0) {
    forbid(SYS_socket, EPERM);
    forbid(SYS_socketpair, EPERM);
  } else if (strcmp(sockets, "unix") == 0) {
    allow_only(SYS_socket, 0, (unsigned[]){AF_UNIX}, 1, EAFNOSUPPORT);
    allow_only(SYS_socketpair, 0, (unsigned[]){AF_UNIX}, 1, EAFNOSUPPORT);
  } else if (strcmp(sockets, "internet") == 0) {
    allow_only(SYS_socket, 0, (unsigned[]){AF_UNIX, AF_INET, AF_INET6, AF_NETLINK}, 4, EAFNOSUPPORT);
    allow_only(SYS_socketpair, 0, (unsigned[]){AF_UNIX}, 1, EAFNOSUPPORT);
  } else {
    refuse("sockets are none, unix or internet");
  }
}

static void judge_processes(const char *processes) {
  if (strcmp(processes, "many") == 0) return;
  if (strcmp(processes, "alone") != 0) refuse("processes are alone or many");
  judge_clone(CLONE_THREAD, 0);
#ifdef __x86_64__
  forbid(SYS_fork, EPERM);
  forbid(SYS_vfork, EPERM);
#endif
  const unsigned self = (unsigned)getpid();
  allow_only(SYS_kill, 0, &self, 1, EPERM);
  allow_only(SYS_tgkill, 0, &self, 1, EPERM);
  allow_only(SYS_rt_sigqueueinfo, 0, &self, 1, EPERM);
  allow_only(SYS_rt_tgsigqueueinfo, 0, &self, 1, EPERM);
  allow_only(SYS_prlimit64, 0, (unsigned[]){0, self}, 2, EPERM);
  forbid(SYS_tkill, EPERM);
  forbid(call_pidfd_open, EPERM);
  forbid(call_pidfd_send_signal, EPERM);
}

void filter_system_calls(const char *sockets, const char *processes) {
  load(offsetof(struct seccomp_data, arch));
  if_equal_skip(architecture, 1);
  answer(SECCOMP_RET_KILL_PROCESS);
  load_call();
#ifdef __x86_64__
  // Forbid the call numbers of x32 programs. Each system call has a second number for x32, which the rules below do not check.
  add(BPF_JMP | BPF_JGE | BPF_K, 0, 1, 0x40000000);
  answer(error(ENOSYS));
#endif
  for (size_t index = 0; index < sizeof forbidden / sizeof *forbidden; index++) forbid(forbidden[index], EPERM);
  // Forbid clone3: its flags are in memory, where a filter cannot read them. Libraries fall back to `clone`.
  forbid(call_clone3, ENOSYS);
  judge_clone(namespaces, 1);
  allow_only(SYS_personality, 0, (unsigned[]){0, 0xffffffff}, 2, EPERM);
  // Forbid typing input for other users of the terminal (TIOCSTI and similar).
  unless_equal_skip(SYS_ioctl, 4);
  load_argument(1);
  unless_equal_skip(TIOCSTI, 1);
  answer(error(EPERM));
  load_call();
  judge_sockets(sockets);
  judge_processes(processes);
  answer(SECCOMP_RET_ALLOW);
  const struct sock_fprog whole = {length, program};
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole, 0, 0) < 0) fail("the filter");
}
