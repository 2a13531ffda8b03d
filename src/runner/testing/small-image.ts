// For tests: an image of a few programs of this machine, so that tests need not download or build an image.
import { execFileSync } from 'node:child_process'
import { copyFileSync, cpSync, existsSync, lchownSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { uidBase } from '../oci/ids.ts'

const programs = [
  'bash',
  'cat',
  'dd',
  'df',
  'hostname',
  'id',
  'kill',
  'ls',
  'mkdir',
  'mv',
  'rm',
  'sleep',
  'stat',
  'tail',
  'true',
]

const pathOf = (program: string) =>
  ['/usr/bin', '/bin', '/usr/sbin'].map((directory) => join(directory, program)).find((path) => existsSync(path))

const librariesOf = (paths: readonly string[]) => {
  const listed = execFileSync('ldd', paths, { encoding: 'utf8' })
  return new Set([...listed.matchAll(/(\/\S+) \(0x/g)].map((match) => match[1] as string))
}

/** Copies the shared libraries that `programs` need from this machine to `rootfs`. */
export const copyLibraries = (rootfs: string, programs: readonly string[]): void => {
  for (const library of librariesOf(programs)) {
    const inside = join(rootfs, library)
    mkdirSync(dirname(inside), { recursive: true })
    if (!existsSync(inside)) copyFileSync(library, inside)
  }
}

/** Makes the files of the image. `more`: paths of further programs of this machine. */
export const makeSmallImage = (rootfs: string, more: readonly string[] = []): void => {
  for (const directory of ['bin', 'dev', 'etc', 'home/daytona', 'proc', 'root', 'run', 'sys', 'tmp', 'usr', 'var'])
    mkdirSync(join(rootfs, directory), { recursive: true })
  const paths = [...programs, ...more].map((program) => {
    const path = pathOf(program)
    if (path === undefined) throw new Error(`This machine has no ${program}.`)
    copyFileSync(path, join(rootfs, 'bin', program))
    return path
  })
  copyLibraries(rootfs, paths)
  cpSync(join(rootfs, 'bin/bash'), join(rootfs, 'bin/sh'))
  writeFileSync(join(rootfs, 'etc/passwd'), passwd)
  writeFileSync(join(rootfs, 'etc/group'), 'root:x:0:\ndaytona:x:1000:\n')
  execFileSync('cc', ['-static', '-O1', '-o', join(rootfs, 'bin/probe'), join(import.meta.dirname, 'probe.c')])
  if (process.arch === 'x64') compile32(join(rootfs, 'bin/probe-32'), join(import.meta.dirname, 'probe-32.c'))
  giveToSandboxes(rootfs)
}

const compile32 = (to: string, from: string) =>
  execFileSync('cc', [
    '-m32',
    '-nostdlib',
    '-static',
    '-fno-pie',
    '-no-pie',
    '-fno-stack-protector',
    '-O1',
    '-o',
    to,
    from,
  ])

const passwd = 'root:x:0:0:root:/root:/bin/sh\ndaytona:x:1000:1000::/home/daytona:/bin/sh\n'

/** Makes the root user of sandboxes the owner of all files and directories below `path`. */
export const giveToSandboxes = (path: string): void => {
  lchownSync(path, uidBase, uidBase)
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    const below = join(path, entry.name)
    if (entry.isDirectory()) giveToSandboxes(below)
    else lchownSync(below, uidBase, uidBase)
  }
}
