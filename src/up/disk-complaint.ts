// Turns an error caused by a full or read-only disk into one sentence without a stack trace, for the operator.
import { resolve } from 'node:path'
import { Complaint } from './complaint.ts'

const reasons: Readonly<Record<string, string>> = {
  ENOSPC: 'no space is left, or no inodes',
  EDQUOT: 'its quota is used up',
  EROFS: 'its file system is read-only',
}

/**
 * Runs `work`. If a disk is full, over its quota or read-only, throws an error for the operator. The error names the path that
 * could not be written, or `directory` if the path is unknown.
 */
export const orDiskComplaint = async <T>(directory: string, work: () => Promise<T>): Promise<T> => {
  try {
    return await work()
  } catch (error) {
    const { code, path } = error as NodeJS.ErrnoException
    const reason = reasons[code ?? '']
    if (reason === undefined) throw error
    throw new Complaint(
      `cannot write to ${path ?? resolve(directory)}: ${reason} (${code}). Fix this, then start again`,
      {
        cause: error,
      },
    )
  }
}
