// Turns an error of a full or read-only disk into a sentence, because the operator must fix the disk and the error is not our
// bug.
import { resolve } from 'node:path'
import { Complaint } from './complaint.ts'

const reasons: Readonly<Record<string, string>> = {
  ENOSPC: 'no space is left, or no inodes',
  EDQUOT: 'its quota is used up',
  EROFS: 'its file system is read-only',
}

/**
 * Runs `work` and turns a disk error into a Complaint. The Complaint names the path in the error, or `directory` if
 * the error has no path.
 */
export const orDiskComplaint = async <T>(directory: string, work: () => Promise<T>): Promise<T> => {
  try {
    return await work()
  } catch (error) {
    const { code, path } = error as NodeJS.ErrnoException
    const reason = reasons[code ?? '']
    if (reason === undefined) throw error
    throw new Complaint(
      `cannot write to ${path ?? resolve(directory)}: ${reason} (${code}). Mend that, then start again`,
      {
        cause: error,
      },
    )
  }
}
