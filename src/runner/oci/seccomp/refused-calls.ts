// System calls that are refused in every sandbox, with the reasons. Some of these calls act on parts of the kernel that all
// sandboxes share. Others have often been used to break out of containers. All remaining known calls (syscalls.ts) are allowed,
// some only with certain arguments. The user namespace and the eleven capabilities of a sandbox limit what allowed calls can do.
// Unknown calls fail with ENOSYS.

export type Refusal = { reason: string; calls: readonly string[]; answer: 'EPERM' | 'ENOSYS' }

export const refusals: readonly Refusal[] = [
  {
    reason: 'Mounts of its own would let a sandbox take apart the masks over /proc and /sys.',
    calls:
      'mount umount2 pivot_root fsopen fsconfig fsmount fspick move_mount open_tree open_tree_attr mount_setattr'.split(
        ' ',
      ),
    answer: 'EPERM',
  },
  {
    reason: 'Entering or making namespaces opens kernel code that otherwise only root reaches.',
    calls: ['setns'],
    answer: 'EPERM',
  },
  {
    reason: 'Its flags lie in memory where a filter cannot read them; libraries fall back to clone, which is filtered.',
    calls: ['clone3'],
    answer: 'ENOSYS',
  },
  {
    reason: 'They load code into the kernel or replace it.',
    calls: (
      'init_module finit_module delete_module create_module query_module get_kernel_syms kexec_load kexec_file_load bpf' +
      ' uselib'
    ).split(' '),
    answer: 'EPERM',
  },
  {
    reason: 'They watch the machine rather than the sandbox.',
    calls: 'perf_event_open fanotify_init lookup_dcookie syslog acct'.split(' '),
    answer: 'EPERM',
  },
  {
    reason: 'Key rings are not fully namespaced: sandboxes of one uid range would share them.',
    calls: 'add_key request_key keyctl'.split(' '),
    answer: 'EPERM',
  },
  {
    reason:
      'Letting user code decide when the kernel’s own memory access goes on turns small kernel races into large ones.',
    calls: ['userfaultfd'],
    answer: 'EPERM',
  },
  {
    reason: 'It does system calls that no filter sees. Programs fall back when it is missing.',
    calls: 'io_uring_setup io_uring_enter io_uring_register'.split(' '),
    answer: 'ENOSYS',
  },
  {
    reason:
      'What waits in an asynchronous context counts as nobody’s memory, and the bound (fs.aio-max-nr) is one for the machine.' +
      ' Programs fall back when it is missing.',
    calls: 'io_setup io_submit io_getevents io_pgetevents io_cancel io_destroy'.split(' '),
    answer: 'ENOSYS',
  },
  {
    reason: 'Tables of segments count as nobody’s memory in part. Programs of 16 bits use them, and few others.',
    calls: ['modify_ldt'],
    answer: 'ENOSYS',
  },
  {
    reason:
      'They take the size of an attribute from memory, where a filter cannot read it. Libraries fall back to the older call.',
    calls: ['setxattrat'],
    answer: 'ENOSYS',
  },
  {
    reason: 'A file handle names a file past every directory and mount that would forbid it.',
    calls: ['open_by_handle_at'],
    answer: 'EPERM',
  },
  {
    reason: 'They change the machine for everybody on it.',
    calls: (
      'reboot swapon swapoff settimeofday clock_settime clock_adjtime sethostname setdomainname vhangup quotactl' +
      ' quotactl_fd nfsservctl _sysctl sysfs'
    ).split(' '),
    answer: 'EPERM',
  },
  {
    reason: 'They give direct access to hardware ports.',
    calls: 'iopl ioperm'.split(' '),
    answer: 'EPERM',
  },
  {
    reason: 'Where memory lies is the machine’s affair: one sandbox could crowd a node that others live on.',
    calls: 'mbind set_mempolicy set_mempolicy_home_node migrate_pages move_pages'.split(' '),
    answer: 'EPERM',
  },
  {
    reason: 'Nothing has implemented them for years; an answer of "not implemented" is the true one.',
    calls: 'afs_syscall getpmsg putpmsg security tuxcall vserver epoll_ctl_old epoll_wait_old ustat'.split(' '),
    answer: 'ENOSYS',
  },
]

/** Calls that are allowed only for some arguments. `profile.ts` has the conditions. */
export const conditional: readonly string[] = ['clone', 'unshare', 'personality', 'socket']
