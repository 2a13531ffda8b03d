// System packages that Alcove needs. They are installed if possible; otherwise a complaint lists them with the reasons.
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { missingCommands, type RequiredPackage, requiredPackages } from '#src/doctor/packages.ts'
import { Complaint } from './complaint.ts'

type SystemPackage = { name: string; why: string }

/** The functions by which this file looks at the host and changes it. Tests pass functions of their own. */
export type PackageHost = {
  isDebian: boolean
  missing: () => readonly SystemPackage[]
  hasPackageLists: () => boolean
  /** Runs apt-get and returns whether it succeeded. */
  apt: (...args: string[]) => boolean
}

const lists = '/var/lib/apt/lists'

/** The functions for a real host that needs these packages. */
export const hostNeeding = (packages: readonly RequiredPackage[]): PackageHost => ({
  isDebian: existsSync('/etc/debian_version') && existsSync('/usr/bin/apt-get'),
  missing: () => missingCommands(packages),
  hasPackageLists: () => existsSync(lists) && readdirSync(lists).some((name) => name.includes('_Packages')),
  apt: (...args) => {
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
    // apt's output goes to standard error, so that the waiting person sees it. Standard output is for our own results.
    return spawnSync('apt-get', args, { env, stdio: ['ignore', 2, 2] }).status === 0
  },
})

const table = (packages: readonly SystemPackage[]) => {
  const width = Math.max(...packages.map(({ name }) => name.length))
  return packages.map(({ name, why }) => `  ${name.padEnd(width)}  ${why}`).join('\n')
}

/**
 * Installs the missing packages and prints their names. If this is not possible, throws a Complaint that lists them.
 */
export const ensurePackages = (
  say: (line: string) => void,
  host: PackageHost = hostNeeding(requiredPackages),
): void => {
  const missing = host.missing()
  if (missing.length === 0) return
  if (!host.isDebian) {
    throw new Complaint(
      `this system lacks what sandboxes are made of. Install these (Debian names):\n${table(missing)}`,
    )
  }
  say(`Installing ${missing.length} Debian package${missing.length === 1 ? '' : 's'}:\n${table(missing)}`)
  const names = missing.map(({ name }) => name)
  const install = () => host.apt('install', '-yq', '--no-install-recommends', ...names)
  const update = () => host.apt('update', '-q')
  // The lists are updated if they are missing, or if the install fails: old lists name files that the mirror no longer
  // has.
  const succeeded = ((host.hasPackageLists() || update()) && install()) || (update() && install())
  const still = host.missing()
  if (succeeded && still.length === 0) return
  throw new Complaint(`these packages could not be installed; what apt-get said stands above:\n${table(still)}`)
}
