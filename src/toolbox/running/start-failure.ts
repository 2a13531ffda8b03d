// Explains why a command could not start, and whether the caller caused it.
import { Problem } from '#src/problems.ts'
import type { CommandSpec, StartFailed } from '../agent/agent.ts'

const words: Record<string, string> = {
  ENOENT: 'it does not exist',
  ENOTDIR: 'it is not a directory',
  EACCES: 'the sandbox user may not enter it',
  EPERM: 'the sandbox user may not enter it',
  ENAMETOOLONG: 'its name is too long',
  ELOOP: 'it has too many symbolic links',
}

/**
 * Returns a 400 if the caller's directory, user, arguments or variables prevented the start; `undefined` if the program is missing
 * or cannot run.
 */
export const callersFault = (failure: StartFailed, spec: CommandSpec): Problem | undefined => {
  if (failure.stage === 'cwd') {
    const why = words[failure.errno] ?? failure.errno
    const cwd = JSON.stringify((spec.cwd ?? '').slice(0, 200))
    return new Problem('bad_request', `The working directory ${cwd} cannot be used: ${why}.`, { cause: failure })
  }
  if (failure.stage === 'user') {
    return new Problem('bad_request', `The user ${JSON.stringify(spec.user)} does not exist in this sandbox.`, {
      cause: failure,
    })
  }
  if (failure.errno === 'E2BIG') {
    const sentence = 'The arguments and environment variables together are larger than the kernel accepts.'
    return new Problem('bad_request', sentence, { cause: failure })
  }
  return undefined
}
