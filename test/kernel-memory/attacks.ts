// Lists the attacks in attacks/: the kernel objects that each attack makes, the limit on these objects, and the expected result.
// Each attack is a program in a sandbox. The memory that it takes is read from the host's kernel and from the sandbox's cgroup.
import { execFileSync } from 'node:child_process'
import { globSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Cgroup } from '#src/runner/cgroup/cgroup.ts'
import { readKernelMemory } from '#src/runner/kernel-memory/host-memory.ts'

const MiB = 1024 ** 2

export type Attack = {
  name: string
  object: string
  bound: string
  /**
   * The expected result of making many kernel objects of the kind `object`. `refused`: the sandbox cannot make them. `charged`: the
   * objects count as the sandbox's memory. `boundedMiB`: the objects do not count, but together use less than this many MiB.
   */
  verdict: 'refused' | 'charged' | { boundedMiB: number }
}

const attack = (name: string, object: string, bound: string, verdict: Attack['verdict']): Attack => ({
  name,
  object,
  bound,
  verdict,
})

const [filter, charge] = ['system call filter', 'memory limit']

export const attacks: readonly Attack[] = [
  attack('acl-shm', 'access lists (POSIX ACL) in /dev/shm', '1 KiB each (filter), 16,384 files', { boundedMiB: 40 }),
  attack('acl-disk', 'access lists of open directories on the disk', '1 KiB each (filter)', { boundedMiB: 60 }),
  attack('acl-memfd', 'access lists of memfds', '1 KiB each (filter)', { boundedMiB: 40 }),
  attack('acl-memfd-at', 'attributes by setxattrat(2)', filter, 'refused'),
  attack('user-attributes', 'user attributes of memfds', charge, 'charged'),
  attack('aio-polls', 'requests of asynchronous I/O', filter, 'refused'),
  attack('aio-contexts', 'contexts of asynchronous I/O', filter, 'refused'),
  attack('poll-tables', 'tables of poll(2)', '2048 descriptors a call (filter), processes', { boundedMiB: 70 }),
  attack('select-tables', 'tables of select(2)', '2048 descriptors a call (filter), processes', { boundedMiB: 70 }),
  attack('blocked-readers', 'vectors of blocked readv(2)', '16 KiB a thread, processes', { boundedMiB: 40 }),
  attack('blocked-opens', 'names in blocked open(2)', '4 KiB a thread, processes', { boundedMiB: 40 }),
  attack('tcp-keys', 'keys of TCP segments (TCP_MD5SIG)', filter, 'refused'),
  attack('multicast-groups', 'multicast memberships', '8 KiB a socket (optmem_max), the watch', { boundedMiB: 60 }),
  attack('reuseport-groups', 'groups of SO_REUSEPORT', '1 KiB a socket, which is charged', { boundedMiB: 60 }),
  attack('time-waits', 'connections in TIME_WAIT', 'tcp_max_tw_buckets of the namespace', { boundedMiB: 60 }),
  attack('udp-queues', 'unread UDP datagrams', 'socket limit (v1), memory limit (v2)', { boundedMiB: 60 }),
  attack('ping-answers', 'unread answers to pings', '8 MB (rules of the namespace)', { boundedMiB: 40 }),
  attack('terminals', 'buffers of terminals', '256 terminals', { boundedMiB: 60 }),
  attack('seccomp-filters', 'filters of system calls', 'bpf_jit_limit of the machine', { boundedMiB: 60 }),
  attack('descriptors', 'timerfd, eventfd, epoll, pidfd, inotify', charge, 'charged'),
  attack('watches', 'watches of inotify and epoll', charge, 'charged'),
  attack('inotify-events', 'unread inotify events', charge, 'charged'),
  attack('locks', 'POSIX and BSD file locks', charge, 'charged'),
  attack('leases', 'file leases', charge, 'charged'),
  attack('pipes', 'pages of pipes', charge, 'charged'),
  attack('unix-queues', 'unread messages of unix sockets', charge, 'charged'),
  attack('passed-descriptors', 'descriptors on their way', charge, 'charged'),
  attack('unix-names', 'names of unix sockets', charge, 'charged'),
  attack('system-v', 'System V memory, semaphores and messages', charge, 'charged'),
  attack('message-queues', 'POSIX message queues', charge, 'charged'),
  attack('timers', 'POSIX timers', charge, 'charged'),
  attack('queued-signals', 'queued signals', charge, 'charged'),
  attack('page-tables', 'page tables of sparse mappings', charge, 'charged'),
  attack('areas', 'mappings', charge, 'charged'),
  attack('missing-names', 'names that were looked for and are not there', charge, 'charged'),
  attack('landlock-rules', 'Landlock rules', charge, 'charged'),
  attack('local-tables', 'segments (modify_ldt)', filter, { boundedMiB: 60 }),
  attack('groups', 'supplementary groups', charge, 'charged'),
  attack('file-extents', 'extents of a file', charge, 'charged'),
  attack('processes', 'processes', 'process limit, memory limit', 'charged'),
  attack('set-processors', 'processors that a process may use', charge, 'charged'),
  attack('sessions', 'sessions, each with a group for the scheduler', charge, 'charged'),
  attack('users', 'accounts of users', '204,800 users of 330 bytes', { boundedMiB: 64 }),
  attack('futex-vectors', 'vectors of futex_waitv(2)', '32 KiB a thread, processes', { boundedMiB: 40 }),
  attack('secret-memory', 'secret memory', 'RLIMIT_MEMLOCK', { boundedMiB: 8 }),
  attack('short-links', 'symbolic links in /dev/shm', charge, 'charged'),
  attack('told-descriptors', 'descriptors that tell by signals (O_ASYNC)', charge, 'charged'),
  attack('told-directories', 'directories that tell by signals (dnotify)', charge, 'charged'),
  attack('process-files', 'open files of /proc', charge, 'charged'),
  attack('system-files', 'open files of /sys', charge, 'charged'),
  attack('sticky-options', 'options of IPv6 sockets', charge, 'charged'),
  attack('rings', 'io_uring', filter, 'refused'),
  attack('keys', 'keys and key rings', filter, 'refused'),
  attack('caught-faults', 'userfaultfd', filter, 'refused'),
  attack('watched-files', 'fanotify', filter, 'refused'),
  attack('counted-events', 'perf events', filter, 'refused'),
  attack('maps', 'maps and programs of BPF', filter, 'refused'),
  attack('packet-sockets', 'packet sockets and their rings', filter, 'refused'),
  attack('netfilter-rules', 'rules and connection tracking of netfilter', filter, 'refused'),
  attack('crypto-sockets', 'kernel crypto', filter, 'refused'),
  attack('tunnels', 'tun and tap devices', 'no such device', 'refused'),
  attack('namespaces', 'namespaces', filter, 'refused'),
  attack('mounts', 'mounts', filter, 'refused'),
  attack('control-groups', 'control groups', 'read-only', 'refused'),
  attack('huge-pages', 'huge pages', filter, 'refused'),
  attack('devices', 'network devices (veth, bridge, vlan)', 'no capability', 'refused'),
  attack('routes', 'routes', 'no capability', 'refused'),
  attack('neighbours', 'entries of the neighbour table', 'no capability', 'refused'),
]

/** Attacks that no limit stops. Only the runner's `KernelMemoryWatch` stops them: it ends the sandbox. */
export const watchedAttacks: readonly Pick<Attack, 'name' | 'object'>[] = [
  { name: 'directory-lists', object: 'lists of names that open overlay directories keep' },
  { name: 'spliced-buffers', object: 'buffers of TCP that a pipe has taken over' },
  { name: 'netlink-answers', object: 'unread netlink answers' },
  { name: 'netlink-questions', object: 'netlink questions whose answers nobody reads' },
  { name: 'tcp-unaccepted', object: 'connections that nobody accepts' },
  { name: 'tcp-unaccepted-data', object: 'data on connections that nobody accepts' },
  { name: 'tcp6-unaccepted-data', object: 'data on connections to a socket of IPv6 that nobody accepts' },
  { name: 'udp-unsent', object: 'datagrams that are begun and not sent' },
]

/** Attacks that take only about 1 MiB of kernel memory per second, so that they are hard to notice. */
export const slowAttacks: readonly Pick<Attack, 'name' | 'object'>[] = [
  { name: 'directory-lists-slowly', object: 'lists of names that open overlay directories keep' },
]

export const buildAttacks = (path: string): void => {
  const sources = globSync(join(import.meta.dirname, 'attacks/*.c'))
  execFileSync('cc', ['-static', '-O1', '-o', path, ...sources, '-lpthread'], { stdio: 'pipe' })
}

export type Measured = {
  /** Number of objects that the attack has made. */
  made: number
  /** By how many MiB the host's unreclaimable kernel memory has grown, without the part that counts as memory of the sandbox. */
  unchargedMiB: number
  chargedMiB: number
}

/** Allowed error of a measurement in MiB. Other programs of the host also change the kernel memory during the measurement. */
export const noiseMiB = 48

export const holds = ({ verdict }: Attack, { made, unchargedMiB }: Measured): boolean => {
  if (verdict === 'refused') return made === 0
  return unchargedMiB <= (verdict === 'charged' ? noiseMiB : verdict.boundedMiB + noiseMiB)
}

type Inside = {
  cgroup: Pick<Cgroup, 'kernelMemory'>
  /** Runs a shell command inside the sandbox as root, and returns its output. */
  run: (line: string) => Promise<string>
}

/**
 * Runs an attack for at most `seconds`, measures the memory that it uses, and ends it. The sandbox's PATH must have the program
 * `attacks`.
 */
export const measureAttack = async (name: string, seconds: number, { cgroup, run }: Inside): Promise<Measured> => {
  const out = '/tmp/attack-out'
  const before = { host: readKernelMemory().unreclaimable, own: cgroup.kernelMemory() ?? 0 }
  try {
    const waits = `n=0; while [ ! -s ${out} ] && [ $n -lt ${(seconds + 6) * 10} ]; do sleep 0.1; n=$((n+1)); done; cat ${out}`
    const said = await run(`rm -f ${out}; (attacks ${name} ${seconds} > ${out} 2>&1 &); ${waits}`)
    const host = (readKernelMemory().unreclaimable - before.host) / MiB
    const chargedMiB = ((cgroup.kernelMemory() ?? 0) - before.own) / MiB
    const made = /^\S+ (\d+) \d+$/m.exec(said)?.[1]
    if (made === undefined) throw new Error(`The attack ${name} said: ${said}`)
    return { made: Number(made), unchargedMiB: host - Math.max(0, chargedMiB), chargedMiB }
  } finally {
    const each = 'for p in /proc/[0-9]*; do read c < $p/comm && [ "$c" = attacks ] && kill -9 "$' + '{p#/proc/}"; done'
    await run(`{ ${each}; sleep 0.2; rm -rf /tmp/* /dev/shm/*; } 2> /dev/null; true`)
    await delay(100)
  }
}
