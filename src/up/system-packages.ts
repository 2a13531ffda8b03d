// Debian packages that Alcove needs: installed where that is possible, named with the reason where it is not.
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { Complaint } from './complaint.ts'

export type SystemPackage = { name: string; why: string }

type Say = (line: string) => void

/** Runs a system command; tests hand in one that only notes what it was asked. */
export type Run = (command: string, args: readonly string[]) => { status: number | null; output: string }

const runShown: Run = (command, args) => {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const isQuery = command === 'dpkg-query'
  const done = spawnSync(command, args, {
    env,
    encoding: 'utf8',
    // What apt says is for the person who waits.
    stdio: isQuery ? ['ignore', 'pipe', 'ignore'] : ['ignore', 2, 2],
  })
  return { status: done.status, output: done.stdout ?? '' }
}

/** Those of the list that dpkg does not know as installed. */
export const missingPackages = (wanted: readonly SystemPackage[], run: Run = runShown): SystemPackage[] => {
  const { output } = run('dpkg-query', ['-W', '-f', '${Package} ${db:Status-Status}\n', ...wanted.map((p) => p.name)])
  const installed = new Set(
    output
      .split('\n')
      .filter((line) => line.endsWith(' installed'))
      .map((line) => line.split(' ')[0]),
  )
  return wanted.filter(({ name }) => !installed.has(name))
}

const hasPackageLists = () => {
  const lists = '/var/lib/apt/lists'
  return existsSync(lists) && readdirSync(lists).some((name) => name.includes('_Packages'))
}

const table = (packages: readonly SystemPackage[]) => {
  const width = Math.max(...packages.map(({ name }) => name.length))
  return packages.map(({ name, why }) => `  ${name.padEnd(width)}  ${why}`).join('\n')
}

type Host = { isDebian: boolean; hasLists: () => boolean; run: Run }

const thisHost = (): Host => ({
  isDebian: existsSync('/etc/debian_version') && existsSync('/usr/bin/apt-get'),
  hasLists: hasPackageLists,
  run: runShown,
})

/** Installs what is missing, or throws a Complaint that lists it. `commandExists` decides where there is no dpkg. */
export const ensurePackages = (
  wanted: readonly SystemPackage[],
  { say, commandsMissing }: { say: Say; commandsMissing: () => readonly SystemPackage[] },
  { isDebian, hasLists, run }: Host = thisHost(),
): void => {
  if (!isDebian) {
    const missing = commandsMissing()
    if (missing.length === 0) return
    throw new Complaint(`this system lacks what sandboxes are made of. Install (Debian names):\n${table(missing)}`)
  }
  const missing = missingPackages(wanted, run)
  if (missing.length === 0) return
  say(`Installing ${missing.length} Debian package${missing.length === 1 ? '' : 's'}:\n${table(missing)}`)
  const install = () =>
    run('apt-get', ['install', '-yq', '--no-install-recommends', ...missing.map(({ name }) => name)]).status === 0
  const update = () => run('apt-get', ['update', '-q']).status === 0
  // Lists may be missing, or so old that the files they name are gone from the mirror.
  if ((hasLists() || update()) && install()) return
  if (update() && install()) return
  throw new Complaint(`apt-get could not install these packages; its message stands above:\n${table(missing)}`)
}
