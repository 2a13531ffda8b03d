// Command lines for programs without privileges. `native/confine.c` says what each word of them does.
import { constants } from 'node:os'
import { resolve } from 'node:path'

const confine = resolve(import.meta.dirname, '../../native/build/confine')

/**
 * Users of the host that exist only as numbers. Each belongs to one program, so that none can signal or trace another. Nothing
 * else on the host runs as them.
 */
export const users = {
  postgres: 61001,
  control: 61002,
  gate: 61003,
  /** Answers names for sandboxes with a list of domains. */
  resolver: 61004,
  /** Brings images from registries. */
  fetcher: 61005,
  /** Takes types out of TypeScript. */
  compiler: 61006,
  /** Decompresses what strangers made. */
  unpacker: 61007,
} as const

/** A file or directory of the host that a confined program sees. Default place: the same path. */
export type Shown = { from: string; at?: string; isWritable?: boolean }

export type Confined = {
  command: readonly string[]
  uid: number
  /** What it sees besides the host's /usr, some devices and its own entry of /proc. Shown in this order. */
  shown?: readonly Shown[]
  /** Directories that are covered before anything is shown, as they may lie below one that it sees. */
  hidden?: readonly string[]
  /**
   * `internet`: the host's network, and the host's /etc to find names and certificates.
   * `unix`: no interface; unix sockets in directories that it sees. `none`: no socket at all.
   */
  sockets: 'internet' | 'unix' | 'none'
  /** It starts processes and signals them. Otherwise it has threads only. */
  hasProcesses?: boolean
  mayBindLowPorts?: boolean
  /** `memory` is address space, `data` what of it is private; both in bytes. `cpu` is in seconds. */
  limits?: Partial<Record<'memory' | 'data' | 'cpu' | 'files' | 'filesize', number>>
  /** The signal that ends it when its parent ends. Default: SIGKILL. */
  endsWith?: 'SIGTERM' | 'SIGINT' | 'SIGKILL'
}

const show = ({ from, at = from, isWritable = false }: Shown): string[] => [isWritable ? 'write' : 'see', from, at]

/**
 * The command of a program that is root no more: its own user, no groups, no capabilities and no way to gain any, a system call
 * filter, and a root directory of its own that holds only what is shown. It keeps no mount of the host busy. Only root can
 * start it.
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
 * Only the filter, for a program that something else confines. It runs where `filterProgram` is shown at `at`.
 */
export const filtered = (at: string, sockets: Confined['sockets'], command: readonly string[]): string[] => [
  ...[at, 'filter', sockets, 'many'],
  ...['exec', ...command],
]

export const filterProgram = confine
