// Stores an Alcove server's address range, and whether packet forwarding was off before. The file is in /run, because a reboot
// resets these two things.
import { mkdir, readdir, readFile, rename, rm, rmdir, writeFile } from 'node:fs/promises'
import type { Range } from './names.ts'

type Notes = { range?: Range; forwardingWasOff?: boolean }

const dirOf = (instance: string) => `/run/alcove-${instance}`
const fileOf = (instance: string) => `${dirOf(instance)}/network.json`

/** Path of the lock that processes hold while they make slots. */
export const lockFile = (instance: string) => `${dirOf(instance)}/network.lock`

/**
 * Reads the file `network.json`. Returns an empty object if this file is missing or damaged; the caller then has to examine the
 * host.
 */
export const readNotes = async (instance: string): Promise<Notes> => {
  try {
    return JSON.parse(await readFile(fileOf(instance), 'utf8')) as Notes
  } catch {
    return {}
  }
}

export const writeNotes = async (instance: string, notes: Notes) => {
  await mkdir(dirOf(instance), { recursive: true, mode: 0o755 })
  const temporary = `${fileOf(instance)}.${process.pid}`
  await writeFile(temporary, JSON.stringify(notes))
  await rename(temporary, fileOf(instance))
}

export const removeNotes = async (instance: string) => {
  await rm(fileOf(instance), { force: true })
  await rm(lockFile(instance), { force: true })
  // The directory stays if it still contains other files of the instance.
  await rmdir(dirOf(instance)).catch(() => {})
}

/** Reads `network.json` of all other Alcove servers on this host. */
export const notesOfOthers = async (instance: string): Promise<Notes[]> => {
  const names = await readdir('/run')
  const others = names
    .map((name) => /^alcove-([0-9a-f]{6})$/.exec(name)?.[1])
    .filter((other) => other !== undefined && other !== instance)
  return Promise.all(others.map((other) => readNotes(other as string)))
}
