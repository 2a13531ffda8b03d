// Makes folders; moves and deletes files; sets permissions.
import { Problem } from '#src/problems.ts'
import type { Deadline } from '#src/toolbox/running/deadline.ts'
import { BoundedOutput } from '#src/toolbox/running/output.ts'
import type { Files } from '../agent/agent.ts'
import type { ToolboxSandbox } from '../sandbox.ts'
import { aboutPath, errnoOf, isErrno, problemOf, told } from './failures.ts'
import { operand, runTool } from './run-tool.ts'
import { modeOf } from './schemas.ts'

const complaintBytes = 1024

/** Makes a folder and its missing parents. An existing folder is not an error. */
export const makeFolder = (files: Files, path: string, mode: string | undefined) =>
  told(() => files.mkdir(path, modeOf(mode).mode), { path })

const exists = async (files: Files, path: string): Promise<boolean> => {
  try {
    await files.stat(path)
    return true
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return false
    throw error
  }
}

/**
 * Moves a file or directory between two file systems, where the kernel cannot rename. Runs the image's `mv`, which copies and then
 * deletes. So the move can break off in the middle.
 */
const copyOver = async (sandbox: ToolboxSandbox, deadline: Deadline, from: string, to: string): Promise<void> => {
  const files = sandbox.agent.files(sandbox.assignment.user)
  await files.stat(from)
  const taken = () => aboutPath('already_exists', to, 'The destination already exists.')
  if (await exists(files, to)) throw taken()
  using complaint = new BoundedOutput(sandbox.assignment.organizationId, complaintBytes)
  const argv = ['mv', '-n', '-T', '--', operand(from), operand(to)]
  const exitCode = await runTool(sandbox, deadline, { argv, complain: (data) => complaint.add(data) })
  // If another process has made the destination, `mv -n` moves nothing and exits with 0. The source then still exists.
  if (exitCode === 0 && (await exists(files, from))) throw taken()
  if (exitCode !== 0)
    throw new Problem('unprocessable', `The move of ${from} to ${to} failed. ${complaint.text()}`.trim())
}

const failsWith = async (files: Files, path: string, errno: string | undefined): Promise<boolean> => {
  try {
    await files.stat(path)
    return false
  } catch (error) {
    return errnoOf(error) === errno
  }
}

/** Errnos of a failed move that do not show which path is the cause: source, destination, or a directory of one of them. */
const ofBoth: readonly string[] = ['EACCES', 'EPERM', 'EROFS', 'EBUSY', 'EINVAL']

/** Finds the path that made a move fail: `stat` of this path fails with the same errno. Names both paths in case of doubt. */
const failedAt = async (files: Files, error: unknown, from: string, to: string): Promise<string> => {
  const errno = errnoOf(error)
  if (errno === undefined) return `${from} to ${to}`
  if (errno === 'EEXIST' || errno === 'ENOTEMPTY') return to
  if (await failsWith(files, from, errno)) return from
  return ofBoth.includes(errno) && !(await failsWith(files, to, errno)) ? `${from} to ${to}` : to
}

/** Moves a file or directory. Never replaces an existing one. */
export const move = async (sandbox: ToolboxSandbox, deadline: Deadline, from: string, to: string): Promise<void> => {
  const files = sandbox.agent.files(sandbox.assignment.user)
  try {
    await files.move(from, to).catch(async (error) => {
      if (!isErrno(error, 'EXDEV')) throw error
      await copyOver(sandbox, deadline, from, to)
    })
  } catch (error) {
    throw problemOf(error, {
      path: await failedAt(files, error, from, to),
      einval: ['invalid_file_path', 'A directory cannot be moved into itself.'],
    })
  }
}

export const setPermissions = (
  files: Files,
  path: string,
  { mode, owner = '', group = '' }: { mode?: string; owner?: string; group?: string },
): Promise<void> =>
  told(() => files.setPermissions(path, { ...modeOf(mode), owner, group }), {
    path,
    einval: ['bad_request', 'There is no such owner or group in this sandbox.'],
  })

/** Deletes a file or directory. A link is deleted, but not its target. */
export const remove = (files: Files, path: string, recursive = false): Promise<void> =>
  told(() => files.remove(path, { recursive }), { path })
