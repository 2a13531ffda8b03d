// Builds command lines that start programs without privileges. `native/confine.c` carries the command lines out, and
// explains each word in them.
import { constants } from 'node:os'
import { resolve } from 'node:path'

const confine = resolve(import.meta.dirname, '../../native/build/confine')

/**
 * Uids of the host that nothing else uses. Each program has a uid of its own, so that no program can send signals to another
 * program or trace it.
 */
export const users = {
  postgres: 61001,
  control: 61002,
  gate: 61003,
  /** Uid of the program that resolves host names for sandboxes with a list of allowed domains. */
  resolver: 61004,
  /** Uid of the program that pulls images from registries. */
  fetcher: 61005,
  /** Uid of the program that compiles TypeScript to JavaScript by removing types. */
  compiler: 61006,
  /** Uid of the program that decompresses untrusted data. */
  unpacker: 61007,
  'ssh-gateway': 61008,
  /** Uid of the program that puts secrets into requests of sandboxes. */
  egress: 61009,
  /** Uid of the program that bundles the pages of the dashboard. */
  builder: 61010,
} as const

/** A file or directory of the host that a confined program sees. `at`: its path for the program. Default: its path on the host. */
export type Shown = { from: string; at?: string; isWritable?: boolean }

export type Confined = {
  command: readonly string[]
  uid: number
  /**
   * The files that the program sees, mounted in this order. It sees the host's /usr, some devices and its own entry in /proc in any
   * case.
   */
  shown?: readonly Shown[]
  /** Directories that the program sees as empty. Needed if such a directory is inside a directory in `shown`. */
  hidden?: readonly string[]
  /**
   * `internet`: the host's network, and the host's files in /etc for DNS names and certificates. `unix`: only unix sockets in
   * directories that the program sees. `none`: no socket at all.
   */
  sockets: 'internet' | 'unix' | 'none'
  /** True if the program may start processes and signal them. False: it may only start threads. */
  hasProcesses?: boolean
  mayBindLowPorts?: boolean
  /** `memory`: address space in bytes. `data`: private part of the address space in bytes. `cpu`: CPU time in seconds. */
  limits?: Partial<Record<'memory' | 'data' | 'cpu' | 'files' | 'filesize', number>>
  /** The signal that the program gets when the process that started it ends. Default: SIGKILL. */
  endsWith?: 'SIGTERM' | 'SIGINT' | 'SIGKILL'
}

const show = ({ from, at = from, isWritable = false }: Shown): string[] => [isWritable ? 'write' : 'see', from, at]

/**
 * Returns the command that starts a program with its own uid, system call filter and root directory, and without capabilities.
 * Only root can run the command. The host can still unmount a file system that the program sees.
 */
export const confined = (program: Confined): string[] => [
  ...[confine, 'view'],
  ...(program.sockets === 'internet' ? ['etc'] : []),
  ...(program.hidden ?? []).flatMap((path) => ['hide', path]),
  ...(program.shown ?? []).flatMap(show),
  ...(program.sockets === 'unix' ? ['no-network'] : []),
  ...['enter', String(program.uid), program.mayBindLowPorts === true ? 'any' : 'high'],
  ...Object.entries(program.limits ?? {}).flatMap(([name, value]) => ['limit', name, String(value)]),
  ...['tie', String(constants.signals[program.endsWith ?? 'SIGKILL'])],
  ...['filter', program.sockets, program.hasProcesses === true ? 'many' : 'alone'],
  ...['exec', ...program.command],
]

/**
 * Returns the command that starts a program with the system call filter only. Use it only for programs that are confined in
 * another way. `at`: path of `filterProgram` in the root directory of the started program.
 */
export const filtered = (at: string, sockets: Confined['sockets'], command: readonly string[]): string[] => [
  ...[at, 'filter', sockets, 'many'],
  ...['exec', ...command],
]

export const filterProgram = confine
