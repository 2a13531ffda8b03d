// `alcove purge`: removes a server from its host, with all of its sandboxes and data.
import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { tryLock } from '#src/kit/lock.ts'
import { removeNetwork } from '#src/runner/network/remove.ts'
import { commandFor } from '#src/up/command-for.ts'
import { Complaint } from '#src/up/complaint.ts'
import { type DataDirectory, findDataDirectory } from '#src/up/data-directory.ts'
import { endOrphans } from '#src/up/orphans.ts'
import { releaseIds } from '#src/up/reserved-ids.ts'
import { removeData, removeSecrets, removeTraces } from '#src/up/traces.ts'

const confirm = async (data: DataDirectory): Promise<boolean> => {
  if (!process.stdin.isTTY)
    throw new Complaint('there is no terminal to ask for confirmation; add --yes to remove everything')
  const asker = createInterface({ input: process.stdin, output: process.stderr })
  const answer = await asker.question(`Remove every sandbox and all data in ${data.path}? Type its path to confirm: `)
  asker.close()
  return answer.trim() === data.path
}

/**
 * Whether the host has the runtime directory of another server: another server has then run on this host since the last
 * boot.
 */
const servesOthers = ({ runtime }: DataDirectory): boolean =>
  readdirSync(dirname(runtime)).some((name) => name.startsWith('alcove-') && name !== basename(runtime))

/** Runs all steps, even if one fails. Returns a line for each thing that a step could not remove, and for each error. */
const allSteps = async (steps: readonly (() => Promise<unknown>)[]): Promise<string[]> => {
  const left: string[] = []
  for (const step of steps) {
    const lines = await step().catch((error: Error) => [error.message])
    if (Array.isArray(lines)) left.push(...lines)
  }
  return left
}

/**
 * Removes everything of a server from the host, and returns a line for each thing that could not be removed.
 * If a step fails, the later steps still run. The directory's mark file then stays, for a later purge.
 */
export const purge = async (data: DataDirectory, say: (step: string) => void = () => {}): Promise<string[]> => {
  say('Ending programs that still run …')
  const programs = await allSteps([() => endOrphans(data)])
  say('Removing keys, the database and logs …')
  const secrets = await allSteps([() => removeSecrets(data)])
  say('Ending sandboxes, and removing their networks and mounts …')
  // The function `removeNetwork` needs the runtime directory, which lists what the runner shares with other servers. The first call
  // of `removeTraces` therefore keeps this directory.
  const network = await allSteps([
    () => removeTraces(data, { keepsRuntime: true }).then(() => []),
    () => removeNetwork(data.instance),
  ])
  const traces = await allSteps([() => removeTraces(data)])
  say(`Removing the data in ${data.path} …`)
  const left = [...programs, ...secrets, ...network, ...traces]
  if (!servesOthers(data)) releaseIds()
  return [...left, ...(await allSteps([() => removeData(data, { keepsMark: left.length > 0 })]))]
}

export const purgeCommand = async (directory: string, { yes }: { yes: boolean }): Promise<void> => {
  if (process.getuid?.() !== 0) throw new Complaint('alcove purge needs root')
  const data = findDataDirectory(directory)
  if (!data) {
    console.log(`${directory} contains nothing of Alcove.`)
    return
  }
  // Create the directory of the lock file. This directory is missing if the first start was interrupted early.
  mkdirSync(dirname(data.lockFile), { recursive: true })
  using lock = tryLock(data.lockFile)
  if (lock === undefined)
    throw new Complaint(`${data.path} is in use by a server; stop the server first: ${commandFor('down', data.path)}`)
  if (!yes && !(await confirm(data))) throw new Complaint('nothing was removed')
  const left = await purge(data, (step) => console.error(step))
  if (left.length > 0) {
    const lines = [...new Set(left)].map((line) => `  ${line}`).join('\n')
    throw new Complaint(
      `these could not be removed; everything else was removed:\n${lines}\nRun the same command again to remove the rest.`,
    )
  }
  const others = existsSync(data.path) ? readdirSync(data.path) : []
  if (others.length === 0) return console.log(`Removed ${data.path} and everything it had on this host.`)
  console.log(`Removed everything of Alcove in ${data.path} and on this host. These files are not of Alcove, and stay:`)
  for (const name of others) console.log(`  ${name}`)
}
