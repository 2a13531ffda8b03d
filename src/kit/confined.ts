// Builds command lines that start programs without privileges. `native/confine.c` defines the meaning of each word.
import { constants } from 'node:os'
import { resolve } from 'node:path'

const confine = resolve(import.meta.dirname, '../../native/build/confine')

/**
 * Uids of the host without a user name. Each uid belongs to one program, so that no program can signal or trace
 * another. Nothing else on the host runs under these uids.
 */
export const users = {
  postgres: 61001,
  control: 61002,
  gate: 61003,
  /** The program that resolves names for sandboxes with a list of domains. */
  resolver: 61004,
  /** The program that pulls images from registries. */
  fetcher: 61005,
  /** The program that compiles TypeScript to JavaScript by removing types. */
  compiler: 61006,
  /** The program that decompresses untrusted data. */
  unpacker: 61007,
  /** The SSH gateway. */
  'ssh-gateway': 61008,
  /** The program that puts secrets into requests of sandboxes. */
  egress: 61009,
} as const

/** A file or directory of the host that a confined program sees. `at` is its path inside; default: the same path. */
export type Shown = { from: string; at?: string; isWritable?: boolean }

export type Confined = {
  command: readonly string[]
  uid: number
  /**
   * The files that the program sees besides the host's /usr, some devices and its own entry in /proc. Mounted in this
   * order.
   */
  shown?: readonly Shown[]
  /** Directories that are hidden, because they may lie below a directory that is shown. */
  hidden?: readonly string[]
  /**
   * `internet`: the host's network, and the files in the host's /etc for names and certificates. `unix`: no network
   * interface, only unix sockets in directories that the program sees. `none`: no socket at all.
   */
  sockets: 'internet' | 'unix' | 'none'
  /** True if the program may start processes and signal them. False: it may only start threads. */
  hasProcesses?: boolean
  mayBindLowPorts?: boolean
  /** `memory` is the address space and `data` its private part, in bytes. `cpu` is in seconds. */
  limits?: Partial<Record<'memory' | 'data' | 'cpu' | 'files' | 'filesize', number>>
  /** The signal that the program gets when its parent ends. Default: SIGKILL. */
  endsWith?: 'SIGTERM' | 'SIGINT' | 'SIGKILL'
}

const show = ({ from, at = from, isWritable = false }: Shown): string[] => [isWritable ? 'write' : 'see', from, at]

/**
 * The command that starts a program without root's rights: its own uid, no groups, no capabilities and no way to gain any, a
 * system call filter, and its own root directory that holds only what is shown. It keeps no mount of the host busy. Only
 * root can start it.
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
 * The command that starts a program under the system call filter only, because something else confines the program.
 * `at` is the path of `filterProgram` in its root.
 */
export const filtered = (at: string, sockets: Confined['sockets'], command: readonly string[]): string[] => [
  ...[at, 'filter', sockets, 'many'],
  ...['exec', ...command],
]

export const filterProgram = confine
