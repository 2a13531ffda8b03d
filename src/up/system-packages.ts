// Installs the system packages that Alcove needs and the host lacks. If the install fails, throws an error for the operator that
// lists the packages and what needs them.
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { missingCommands, type RequiredPackage, requiredPackages } from '#src/doctor/packages.ts'
import { Complaint } from './complaint.ts'

type SystemPackage = { name: string; why: string }

/** The functions with which this file reads and changes the host. Tests pass their own functions, which change nothing. */
export type PackageHost = {
  isDebian: boolean
  missing: () => readonly SystemPackage[]
  hasPackageLists: () => boolean
  /** Runs apt-get and returns whether it succeeded. */
  apt: (...args: string[]) => boolean
}

const lists = '/var/lib/apt/lists'

/**
 * Returns the functions that look at this host and install packages on it. `packages`: the packages that the host must
 * have.
 */
export const hostNeeding = (packages: readonly RequiredPackage[]): PackageHost => ({
  isDebian: existsSync('/etc/debian_version') && existsSync('/usr/bin/apt-get'),
  missing: () => missingCommands(packages),
  hasPackageLists: () => existsSync(lists) && readdirSync(lists).some((name) => name.includes('_Packages')),
  apt: (...args) => {
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
    // The output of apt-get goes to standard error, where a waiting person sees it. Standard output has only the results of
    // Alcove's commands.
    return spawnSync('apt-get', args, { env, stdio: ['ignore', 2, 2] }).status === 0
  },
})

const table = (packages: readonly SystemPackage[]) => {
  const width = Math.max(...packages.map(({ name }) => name.length))
  return packages.map(({ name, why }) => `  ${name.padEnd(width)}  ${why}`).join('\n')
}

/**
 * Installs the missing packages and prints their names. If an install is impossible, throws an error for the operator (a Complaint)
 * that lists the packages.
 */
export const ensurePackages = (
  say: (line: string) => void,
  host: PackageHost = hostNeeding(requiredPackages),
): void => {
  const missing = host.missing()
  if (missing.length === 0) return
  if (!host.isDebian) {
    throw new Complaint(
      `this system lacks packages that sandboxes need. Install these (Debian names):\n${table(missing)}`,
    )
  }
  say(`Installing ${missing.length} Debian package${missing.length === 1 ? '' : 's'}:\n${table(missing)}`)
  const names = missing.map(({ name }) => name)
  const install = () => host.apt('install', '-yq', '--no-install-recommends', ...names)
  const update = () => host.apt('update', '-q')
  // Fetch apt's package lists if they are missing, or after a failed install: old lists may name files that the mirror has removed.
  const succeeded = ((host.hasPackageLists() || update()) && install()) || (update() && install())
  const still = host.missing()
  if (succeeded && still.length === 0) return
  throw new Complaint(`these packages could not be installed; see the output of apt-get above:\n${table(still)}`)
}
