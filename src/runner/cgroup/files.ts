// Reads, writes and parses the small files of cgroups.
import { readFileSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'

export const hasCode = (error: unknown, ...codes: string[]) =>
  error instanceof Error && 'code' in error && codes.includes(String(error.code))

/** Reads a file of a cgroup. Undefined if the cgroup or the file does not exist. */
export const readIfThere = async (path: string): Promise<string | undefined> => {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENODEV')) return undefined
    throw error
  }
}

/** Reads a file of a cgroup synchronously, because handing the read to a thread would take longer than the read. */
export const readNowIfThere = (path: string): string | undefined => {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENODEV')) return undefined
    throw error
  }
}

/** Writes to an existing file. Throws if the cgroup is gone, and creates no plain file in its place. */
export const write = (path: string, value: string | number) => writeFile(path, String(value), { flag: 'r+' })

/** Parses the lines `key value` of files such as `memory.events` and `cpu.stat`. */
export const parseCounters = (text: string): ReadonlyMap<string, number> =>
  new Map(
    text
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .flatMap(([key, value]) => (key && value ? [[key, Number(value)] as const] : [])),
  )

export const parsePids = (text: string): number[] => text.split('\n').filter(Boolean).map(Number)
