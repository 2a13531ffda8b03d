// What a failure inside means to the caller: the only place that turns an errno about a file into a Problem.
import { notStarted, Problem, type ProblemCode } from '#src/problems.ts'
import { AgentGone, AgentRefused, StartFailed } from '../agent/agent.ts'

const busy = 'This sandbox does as much with files as it can at one time.'

const meanings: Record<string, readonly [code: ProblemCode, sentence?: string]> = {
  ENOENT: ['file_not_found'],
  EACCES: ['file_access_denied'],
  EPERM: ['file_access_denied'],
  EROFS: ['file_access_denied', 'This file system can only be read.'],
  EEXIST: ['already_exists', 'There is something at the destination already.'],
  ENOTEMPTY: ['conflict', 'The directory is not empty.'],
  EBUSY: ['conflict', 'This is in use and cannot be changed.'],
  ETXTBSY: ['conflict', 'This program runs and cannot be changed.'],
  EISDIR: ['invalid_file_path', 'This is a directory.'],
  ENOTDIR: ['invalid_file_path', 'A part of this path is not a directory.'],
  ELOOP: ['invalid_file_path', 'This path has too many symbolic links.'],
  ENAMETOOLONG: ['invalid_file_path', 'This path is too long.'],
  EINVAL: ['invalid_file_path', 'This is neither a regular file nor a directory.'],
  EXDEV: ['invalid_file_path', 'This leads to another file system.'],
  EILSEQ: ['invalid_file_path', 'This file system does not take such a name.'],
  EIO: ['file_read_failed'],
  ENOSPC: ['unprocessable', 'The disk of the sandbox is full.'],
  EDQUOT: ['unprocessable', 'The disk of the sandbox is full.'],
  EAGAIN: ['rate_limited', busy],
  EMFILE: ['rate_limited', busy],
  ENFILE: ['rate_limited', busy],
  ENOMEM: ['rate_limited', busy],
  EFBIG: [
    'unprocessable',
    'This file is too large. One that does not know its size, as in /proc, is read up to 1 MiB.',
  ],
}

const byErrno = (errno: string, cause: unknown): Problem => {
  const [code, sentence] = meanings[errno] ?? ['unprocessable', `The sandbox could not do that: ${errno}.`]
  return new Problem(code, sentence, { cause })
}

export const isErrno = (error: unknown, errno: string): boolean =>
  error instanceof AgentRefused && error.stage === 'file' && error.errno === errno

/** `EINVAL` is what the kernel says to many things; whoever calls knows better which one it is. */
export const problemOf = (error: unknown, einval?: Problem): Problem => {
  if (error instanceof Problem) return error
  if (error instanceof StartFailed) {
    if (error.stage === 'cwd') return byErrno(error.errno, error)
    if (error.stage === 'user') return new Problem('bad_request', 'The sandbox user does not exist.', { cause: error })
    return new Problem('unprocessable', 'This sandbox lacks the program for that.', { cause: error })
  }
  if (error instanceof AgentGone) {
    return new Problem('conflict', 'The sandbox stopped, or the file changed, in the middle. Is the Sandbox started?', {
      cause: error,
    })
  }
  if (error instanceof RangeError) return new Problem('invalid_file_path', 'This path is too long.', { cause: error })
  if (!(error instanceof AgentRefused)) {
    return new Problem('sandbox_silent', undefined, { cause: error })
  }
  if (error.stage === 'file') {
    return error.errno === 'EINVAL' && einval !== undefined ? einval : byErrno(error.errno, error)
  }
  if (error.stage === 'user') return new Problem('bad_request', 'The sandbox user does not exist.', { cause: error })
  if (error.stage === 'ending') return notStarted('The sandbox is stopping.', { cause: error })
  if (error.stage === 'busy') {
    return new Problem('rate_limited', busy, { cause: error })
  }
  return byErrno(error.errno, error)
}

export const told = async <T>(work: () => Promise<T>, einval?: Problem): Promise<T> => {
  try {
    return await work()
  } catch (error) {
    throw problemOf(error, einval)
  }
}
