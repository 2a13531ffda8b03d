// The system packages that Alcove needs, by their Debian names. If the program in the field `command` exists, the package is
// installed.
import { accessSync, constants, existsSync } from 'node:fs'
import { join, resolve } from 'node:path'

export type RequiredPackage = {
  name: string
  command: string
  why: string
  /** True if only the build of the C programs needs this package. A container image of Alcove already has these programs. */
  compiles?: true
}

const all: readonly RequiredPackage[] = [
  { name: 'crun', command: 'crun', why: 'starts sandboxes' },
  { name: 'iproute2', command: 'ip', why: 'makes the network of each sandbox' },
  { name: 'nftables', command: 'nft', why: 'keeps sandboxes away from the host, each other and private networks' },
  { name: 'util-linux', command: 'nsenter', why: 'enters namespaces and takes locks' },
  { name: 'mount', command: 'losetup', why: 'mounts the storage pool' },
  { name: 'btrfs-progs', command: 'mkfs.btrfs', why: 'gives each sandbox a hard disk limit' },
  { name: 'mmdebstrap', command: 'mmdebstrap', why: 'builds the default image' },
  { name: 'skopeo', command: 'skopeo', why: 'downloads images from registries' },
  { name: 'umoci', command: 'umoci', why: 'unpacks their layers' },
  { name: 'zstd', command: 'zstd', why: 'keeps images small' },
  { name: 'xz-utils', command: 'xz', why: 'unpacks archives that ADD names' },
  { name: 'bzip2', command: 'bzip2', why: 'unpacks archives that ADD names' },
  { name: 'curl', command: 'curl', why: 'fetches files that ADD names' },
  { name: 'git', command: 'git', why: 'fetches repositories that ADD names' },
  { name: 'gcc', command: 'gcc', why: 'builds the small program inside each sandbox', compiles: true },
  {
    name: 'libc6-dev',
    command: '/usr/include/stdio.h',
    why: 'builds the small program inside each sandbox',
    compiles: true,
  },
  { name: 'musl-tools', command: 'musl-gcc', why: 'keeps that program at a few kilobytes', compiles: true },
  { name: 'make', command: 'make', why: 'builds the small program inside each sandbox', compiles: true },
]

const isBuiltHere = existsSync(resolve(import.meta.dirname, '../../agent/Makefile'))

export const requiredPackages = all.filter(({ compiles }) => isBuiltHere || compiles !== true)

const searched = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin']

const isThere = (path: string, mode: number) => {
  try {
    accessSync(path, mode)
    return true
  } catch {
    return false
  }
}

/** Returns the full path of a system command. Only the system's own directories are searched, not PATH. */
export const findCommand = (command: string): string | undefined =>
  searched.map((directory) => join(directory, command)).find((path) => isThere(path, constants.X_OK))

/** Returns the packages that are not installed, because their `command` (a program's name, or a file's path) does not exist. */
export const missingCommands = (packages: readonly RequiredPackage[] = requiredPackages): RequiredPackage[] =>
  packages.filter(({ command }) =>
    command.startsWith('/') ? !isThere(command, constants.R_OK) : findCommand(command) === undefined,
  )
