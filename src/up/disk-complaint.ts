// What a disk that takes nothing more answers, as a sentence: it is the operator's to mend, and no mistake of ours.
import { resolve } from 'node:path'
import { Complaint } from './complaint.ts'

const reasons: Readonly<Record<string, string>> = {
  ENOSPC: 'no space is left, or no inodes',
  EDQUOT: 'its quota is used up',
  EROFS: 'its file system is read-only',
}

/** Does the work; throws a Complaint where a disk did not let it. What was meant by an error without a path is in `directory`. */
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
