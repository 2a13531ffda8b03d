// Holds the built dashboard in memory from the first request on. The path of a request never opens a file.
// So a request cannot read other files of the server.
import { hash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { extname, join, relative } from 'node:path'
import { contentTypes, encodings, reasonBeside } from '#src/wire/dashboard-files.ts'

export type DashboardFile = {
  type: string
  /** True for a file whose name contains a hash of its content, so that browsers may keep the file forever. */
  isImmutable: boolean
  tag: string
  body: Buffer
  /** Compressed copies of `body`. The key is the name of the encoding. */
  encoded: ReadonlyMap<string, Buffer>
}

export type Dashboard = { index: string; files: ReadonlyMap<string, DashboardFile> }

/** Path of a directory in the build. The name of each file in this directory contains a hash of the file's content. */
export const immutablePrefix = 'assets/'

const readFiles = async (directory: string): Promise<Map<string, Buffer>> => {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true })
  // Symbolic links are left out, because a link could lead out of the build.
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  const contents = await Promise.all(
    paths.map(async (path) => [relative(directory, path), await readFile(path)] as const),
  )
  return new Map(contents)
}

const copiesOf = (contents: ReadonlyMap<string, Buffer>, name: string): Map<string, Buffer> =>
  new Map(
    encodings.flatMap(([encoding, end]) => {
      const copy = contents.get(`${name}${end}`)
      return copy === undefined ? [] : [[encoding, copy] as const]
    }),
  )

/** Reads all files of a build. Throws if there is no build. */
const readDashboard = async (directory: string): Promise<Dashboard> => {
  const index = await readFile(join(directory, 'index.html'), 'utf8')
  const contents = await readFiles(directory)
  const files = new Map<string, DashboardFile>()
  for (const [name, body] of contents) {
    const type = contentTypes[extname(name)]
    if (type === undefined || name === 'index.html') continue
    const tag = hash('sha256', body, 'base64url').slice(0, 22)
    const isImmutable = name.startsWith(immutablePrefix)
    files.set(name, { type, isImmutable, tag, body, encoded: copiesOf(contents, name) })
  }
  return { index, files }
}

/**
 * Why there is no dashboard. `why`: a sentence for the user who opens the page. `isComing`: whether the dashboard is
 * being built now.
 */
export type NoDashboard = { why: string; isComing: boolean }

export type DashboardFiles = () => Promise<Dashboard | NoDashboard>

const findReason = async (directory: string): Promise<NoDashboard> => {
  const why = await readFile(reasonBeside(directory), 'utf8').catch(() => undefined)
  if (why === undefined) return { why: 'The dashboard is being built. This takes a few seconds.', isComing: true }
  return { why: `The dashboard could not be built: ${why.trim()}`, isComing: false }
}

/**
 * Returns a function that reads the build of the dashboard once. If there is no build, a call returns the reason.
 * The next call then tries again, because `up` may have made the build meanwhile.
 */
export const openFiles = (directory: string | undefined): DashboardFiles => {
  let reading: Promise<Dashboard> | undefined
  return async () => {
    if (directory === undefined) return { why: 'This server was started without the dashboard.', isComing: false }
    reading ??= readDashboard(directory)
    return await reading.catch(async (error: NodeJS.ErrnoException) => {
      reading = undefined
      if (error.code !== 'ENOENT') throw error
      return await findReason(directory)
    })
  }
}
