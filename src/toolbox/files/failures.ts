// Translates errors of the agent's file operations into Problems. No other module maps the errnos of file operations.
import { Problem, type ProblemCode, problems } from '#src/problems.ts'
import { AgentGone, AgentRefused, StartFailed } from '../agent/agent.ts'

const busy = 'This sandbox has too many file operations in progress. Try again.'

const meanings: Record<string, readonly [code: ProblemCode, sentence?: string]> = {
  ENOENT: ['file_not_found'],
  EACCES: ['file_access_denied'],
  EPERM: ['file_access_denied'],
  EROFS: ['file_access_denied', 'This file system is read-only.'],
  EEXIST: ['already_exists', 'The destination already exists.'],
  ENOTEMPTY: ['conflict', 'The directory is not empty.'],
  EBUSY: ['conflict', 'This file or directory is in use and cannot be changed.'],
  ETXTBSY: ['conflict', 'This file is a running program and cannot be changed.'],
  EISDIR: ['invalid_file_path', 'This is a directory.'],
  ENOTDIR: ['invalid_file_path', 'A part of this path is not a directory.'],
  ELOOP: ['invalid_file_path', 'This path has too many symbolic links.'],
  ENAMETOOLONG: ['invalid_file_path', 'This path is too long.'],
  EINVAL: ['invalid_file_path', 'This is neither a regular file nor a directory.'],
  EXDEV: ['invalid_file_path', 'This path leads to another file system.'],
  EILSEQ: ['invalid_file_path', 'This file system does not accept this name.'],
  EIO: ['file_read_failed'],
  ENOSPC: ['unprocessable', 'The disk of the sandbox is full.'],
  EDQUOT: ['unprocessable', 'The disk of the sandbox is full.'],
  EAGAIN: ['rate_limited', busy],
  EMFILE: ['rate_limited', busy],
  ENFILE: ['rate_limited', busy],
  ENOMEM: ['rate_limited', busy],
  EFBIG: ['unprocessable', 'This file is too large. A file without a known size, as in /proc, is read up to 1 MiB.'],
}

/** First words of an error's sentence, which clients search for. The path follows: `file not found: /a/b`. */
const openings: Partial<Record<ProblemCode, readonly [words: string, sentence: string]>> = {
  file_not_found: ['file not found', 'There is no such file or directory.'],
  file_access_denied: ['permission denied', problems.file_access_denied[2]],
}

/** Maximum length of a path in the sentence of an error, in characters. */
const mostLetters = 1024

const shown = (path: string) => (path.length > mostLetters ? `${path.slice(0, mostLetters)}…` : path)

/** Makes a Problem about a path. `path` is as the caller wrote it, or empty if the caller named no path. */
export const aboutPath = (code: ProblemCode, path: string, sentence?: string, cause?: unknown): Problem => {
  const [words, standard] = openings[code] ?? []
  const said = sentence ?? standard ?? problems[code][2]
  if (path === '') return new Problem(code, said, { cause })
  return new Problem(code, words === undefined ? `${shown(path)}: ${said}` : `${words}: ${shown(path)}. ${said}`, {
    cause,
  })
}

const meaningOf = (errno: string): readonly [code: ProblemCode, sentence?: string] =>
  meanings[errno] ?? ['unprocessable', `The sandbox could not do that: ${errno}.`]

/** Finds the errno of a failure about a file, or about the start directory of a program. */
export const errnoOf = (error: unknown): string | undefined => {
  if (error instanceof AgentRefused && error.stage === 'file') return error.errno
  return error instanceof StartFailed && error.stage === 'cwd' ? error.errno : undefined
}

export const isErrno = (error: unknown, errno: string): boolean =>
  error instanceof AgentRefused && errnoOf(error) === errno

const noUser = ['bad_request', 'The sandbox user does not exist.'] as const

const meaning = (error: unknown): readonly [code: ProblemCode, sentence?: string] => {
  const errno = errnoOf(error)
  if (errno !== undefined) return meaningOf(errno)
  if (error instanceof StartFailed) {
    return error.stage === 'user'
      ? noUser
      : ['unprocessable', 'This sandbox does not have the program that this call needs.']
  }
  if (error instanceof AgentGone) {
    return [
      'conflict',
      'During the call the sandbox was stopped or deleted, or the file changed. Is the Sandbox started?',
    ]
  }
  if (error instanceof RangeError) return ['invalid_file_path', 'This path is too long.']
  if (!(error instanceof AgentRefused)) return ['sandbox_silent']
  if (error.stage === 'user') return noUser
  if (error.stage === 'ending') return ['not_started', 'The sandbox is stopping.']
  if (error.stage === 'busy') return ['rate_limited', busy]
  return meaningOf(error.errno)
}

type About = {
  /** The path in the caller's request. */
  path?: string | undefined
  /** The problem for EINVAL. Each call has its own, because the kernel uses EINVAL for many failures. */
  einval?: readonly [code: ProblemCode, sentence: string]
}

export const problemOf = (error: unknown, { path = '', einval }: About = {}): Problem => {
  if (error instanceof Problem) return error
  const [code, sentence] = einval !== undefined && isErrno(error, 'EINVAL') ? einval : meaning(error)
  return aboutPath(code, path, sentence, error)
}

export const told = async <T>(work: () => Promise<T>, about?: About): Promise<T> => {
  try {
    return await work()
  } catch (error) {
    throw problemOf(error, about)
  }
}
