import type { FileInfo, ToolboxOwner } from '../../../api/toolbox-client.ts'
import { describe, readBytes } from './file-calls.ts'
import { type FileText, longestText, readText } from './file-text.ts'

export type OpenedFile =
  | { kind: 'text'; info: FileInfo; text: FileText }
  /** A file that is too large or that is not text. The user can only download it. */
  | { kind: 'large' | 'binary'; info: FileInfo }
  | { kind: 'directory'; info: FileInfo }

/** Reads a file for the editor. It never reads more than the size limit for texts (`longestText`). */
export const openFile = async (owner: ToolboxOwner, path: string, signal: AbortSignal): Promise<OpenedFile> => {
  const info = await describe(owner, path)
  if (info.isDir) return { kind: 'directory', info }
  if (info.size > longestText) return { kind: 'large', info }
  const bytes = await readBytes(owner, path, signal)
  if (bytes === undefined) return { kind: 'large', info }
  const text = readText(bytes)
  return text === undefined ? { kind: 'binary', info } : { kind: 'text', info, text }
}

/** Whether a file is unchanged: it has the same size and time of change as `before`. */
export const isSame = (before: FileInfo, now: FileInfo): boolean =>
  before.modifiedAt === now.modifiedAt && before.size === now.size
