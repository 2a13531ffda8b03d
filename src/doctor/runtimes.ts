// Finds the container runtimes of the host and their ages, by the dates of the program files. An old program lacks later
// security fixes.
import { realpath, stat } from 'node:fs/promises'
import { runCommand } from '#src/kit/run-command.ts'
import { asRoot, type Finding, type Probe, reasonOf } from './finding.ts'
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

const runtime = (name: string, absent: Omit<Finding, 'name'>): Probe => ({
  name,
  run: async () => {
    const path = findCommand(name)
    if (path === undefined) return { name, ...absent }
    const version = versionIn(await runCommand([path, '--version']))
    const { mtime } = await stat(await realpath(path))
    const found = `${version}, built ${mtime.toISOString().slice(0, 10)} (${ageOf(mtime)} ago)`
    if (Date.now() - mtime.getTime() < oldAfterYears * yearMs) return { name, status: 'ok', found }
    return { name, status: 'warn', found, costs: 'may lack security fixes', remedy: `a newer ${name}` }
  },
})

const crun = runtime('crun', {
  status: 'missing',
  found: 'not installed',
  costs: 'sandboxes cannot start',
  remedy: 'apt-get install crun',
})

const runc = runtime('runc', {
  status: 'warn',
  found: 'not installed',
  costs: 'nothing: Alcove starts sandboxes with crun',
})

const runsc = runtime('runsc', {
  status: 'warn',
  found: 'not installed',
  costs: 'nothing: Alcove starts sandboxes with crun, so they share the host’s kernel',
})

const criu = asRoot('CRIU', async () => {
  const name = 'CRIU'
  const lost = {
    costs: 'nothing: Alcove does not use it. A paused sandbox stays in memory, and a fork copies only the disk',
  }
  if (findCommand('criu') === undefined) {
    return { name, status: 'warn', found: 'not installed', ...lost }
  }
  const version = versionIn(await runCommand(['criu', '--version']))
  try {
    await runCommand(['criu', 'check'])
    return {
      name,
      status: 'ok',
      found: `${version}; its own check passes, but this does not prove that every program works`,
    }
  } catch (error) {
    return { name, status: 'warn', found: `${version}; its check fails: ${reasonOf(error)}`, ...lost }
  }
})

export const runtimeProbes: readonly Probe[] = [crun, runc, runsc, criu]
