// Making, moving, deleting, and rights.
import { Problem } from '#src/problems.ts'
import type { Files } from '../agent/agent.ts'
import type { Deadline } from '../exec/deadline.ts'
import { BoundedOutput } from '../exec/output.ts'
import type { ToolboxSandbox } from '../sandbox.ts'
import { isErrno, told } from './failures.ts'
import { operand, runTool } from './run-tool.ts'
import { modeOf } from './schemas.ts'

const complaintBytes = 1024

/** With all that is missing on the way; one that is there already is as good. */
export const makeFolder = (files: Files, path: string, mode: string | undefined) =>
  told(() => files.mkdir(path, modeOf(mode).mode))

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
 * Where the kernel cannot rename: between two file systems, and a directory of the image in the sandbox's overlay. The
 * image's own `mv` copies and then removes; unlike a rename, it can be cut short in the middle.
 */
const copyOver = async (sandbox: ToolboxSandbox, deadline: Deadline, from: string, to: string): Promise<void> => {
  const files = sandbox.agent.files(sandbox.assignment.user)
  await files.stat(from)
  const taken = () => new Problem('already_exists', 'There is something at the destination already.')
  if (await exists(files, to)) throw taken()
  using complaint = new BoundedOutput(sandbox.assignment.organizationId, complaintBytes)
  const argv = ['mv', '-n', '-T', '--', operand(from), operand(to)]
  const exitCode = await runTool(sandbox, deadline, { argv, complain: (data) => complaint.add(data) })
  // With `-n`, one that came second is told by the source only.
  if (exitCode === 0 && (await exists(files, from))) throw taken()
  if (exitCode !== 0) throw new Problem('unprocessable', `The move failed. ${complaint.text()}`.trim())
}

/** Never replaces anything. */
export const move = (sandbox: ToolboxSandbox, deadline: Deadline, from: string, to: string): Promise<void> =>
  told(async () => {
    try {
      await sandbox.agent.files(sandbox.assignment.user).move(from, to)
    } catch (error) {
      if (!isErrno(error, 'EXDEV')) throw error
      await copyOver(sandbox, deadline, from, to)
    }
  }, new Problem('invalid_file_path', 'A directory cannot be moved into itself.'))

export const setPermissions = (
  files: Files,
  path: string,
  { mode, owner = '', group = '' }: { mode?: string; owner?: string; group?: string },
): Promise<void> =>
  told(
    () => files.setPermissions(path, { ...modeOf(mode), owner, group }),
    new Problem('bad_request', 'There is no such owner or group in this sandbox.'),
  )

/** A link is deleted itself, not what it points at. */
export const remove = (files: Files, path: string, recursive = false): Promise<void> =>
  told(() => files.remove(path, { recursive }))
