// Finds the container runtime of the host and its age, by the date of the program file. An old program lacks later security fixes.
import { realpath, stat } from 'node:fs/promises'
import { runCommand } from '#src/kit/run-command.ts'
import type { Probe } from './finding.ts'
import { findCommand } from './packages.ts'

const oldAfterYears = 3
const yearMs = 365.25 * 24 * 3600 * 1000

const versionIn = (text: string) => /\d+(\.\d+)+\S*|release-\S+/.exec(text)?.[0] ?? 'unknown version'

/** Returns the age of a file as text, such as `2 years` or `5 months`. */
export const ageOf = (built: Date, now = new Date()): string => {
  const years = (now.getTime() - built.getTime()) / yearMs
  const [amount, unit] = years >= 1 ? [Math.floor(years), 'year'] : [Math.max(0, Math.floor(years * 12)), 'month']
  return `${amount} ${unit}${amount === 1 ? '' : 's'}`
}

/** Checks the container runtime `crun`. */
export const crun: Probe = {
  name: 'crun',
  run: async () => {
    const name = 'crun'
    const path = findCommand(name)
    if (path === undefined) {
      return {
        ...{ name, status: 'missing', found: 'not installed' },
        ...{ costs: 'sandboxes cannot start', remedy: 'apt-get install crun' },
      }
    }
    const version = versionIn(await runCommand([path, '--version']))
    const { mtime } = await stat(await realpath(path))
    const found = `${version}, built ${mtime.toISOString().slice(0, 10)} (${ageOf(mtime)} ago)`
    if (Date.now() - mtime.getTime() < oldAfterYears * yearMs) return { name, status: 'ok', found }
    return { name, status: 'warn', found, costs: 'may lack security fixes', remedy: `a newer ${name}` }
  },
}
