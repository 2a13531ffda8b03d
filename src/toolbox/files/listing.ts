// Describes one file, or lists a directory.

import { jsonBytes } from '#src/kit/json-size.ts'
import type { Files } from '../agent/agent.ts'
import { absolute, below, fileInfo } from './file-info.ts'
import { answerBytes } from './records.ts'
import type { FileInfo } from './schemas.ts'

/** Maximum number of entries in a listing. If there are more, the answer has the header `X-Alcove-Truncated`. */
export const listingLength = 20_000
/** Maximum number of levels of directories in one listing by the agent. */
const deepest = 64

/** Describes a file. Follows links, as a download does. */
export const describe = async (files: Files, path: string): Promise<FileInfo> =>
  fileInfo(await files.stat(path, { followLink: true }), await absolute(files, path))

/** Lists a directory. Links below `path` are listed as links and not followed. */
export const list = async (files: Files, path: string, depth = 1): Promise<{ infos: FileInfo[]; isCut: boolean }> => {
  const directory = await absolute(files, path)
  const infos: FileInfo[] = []
  let isCut = false
  let bytes = 0
  for await (const entry of files.list(directory, Math.min(depth, deepest))) {
    isCut = infos.length === listingLength || bytes > answerBytes
    if (isCut) break
    const info = fileInfo(entry, below(directory, entry.path.toString('utf8')))
    infos.push(info)
    bytes += jsonBytes(info)
  }
  return { infos: infos.sort((a, b) => (a.path < b.path ? -1 : 1)), isCut }
}
