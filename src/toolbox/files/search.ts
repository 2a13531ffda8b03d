// Finds files and directories whose name matches a pattern, with the image's own `find`.

import { jsonBytes } from '#src/kit/json-size.ts'
import { Problem } from '#src/problems.ts'
import type { Deadline } from '#src/toolbox/running/deadline.ts'
import type { ToolboxSandbox } from '../sandbox.ts'
import { below } from './file-info.ts'
import { answerBytes, Records } from './records.ts'
import { runTool } from './run-tool.ts'

/** Maximum number of names in an answer. If there are more, the answer has the header `X-Alcove-Truncated`. */
export const searchLength = 10_000
const nameBytes = 16 * 1024

/** Matches `**` with a slash after it, which means any number of directories, or none. */
const anyDirectories = /(?<=^|\/)(?:\*\*\/)+/
/**
 * Maximum number of `**` per pattern. `find` needs one pattern for `**` with directories, and another for `**` without any. So each
 * `**` doubles the number of patterns.
 */
const anyDirectoriesMax = 6

/** A pattern without `/` matches names at any depth. A pattern with `/` matches the whole path below the directory. */
const criterion = (pattern: string): string[] => {
  const name = pattern.replace(/^(?:\*\*\/)+/, '')
  if (!name.includes('/')) return ['-name', name]
  const [first = '', ...others] = pattern.replace(/^\.?\/+/, '').split(anyDirectories)
  if (others.length > anyDirectoriesMax) {
    throw new Problem('bad_request', `query.pattern must not have **/ in more than ${anyDirectoriesMax} places`)
  }
  const paths = others.reduce((begun, part) => begun.flatMap((path) => [path + part, `${path}*/${part}`]), [first])
  return ['(', ...paths.flatMap((path) => ['-o', '-path', `./${path}`]).slice(1), ')']
}

/** Searches below `path`. Links are found but not followed. */
export const search = async (
  sandbox: ToolboxSandbox,
  deadline: Deadline,
  path: string,
  pattern: string,
): Promise<{ files: string[]; isCut: boolean }> => {
  const files: string[] = []
  const names = new Records([0], nameBytes)
  let bytes = 0
  const take = (data: Buffer): boolean => {
    for (const name of names.push(data)) {
      if (files.length === searchLength || bytes > answerBytes) return false
      const file = below(path, name.subarray(2).toString('utf8'))
      files.push(file)
      bytes += jsonBytes(file)
    }
    return true
  }
  const argv = ['find', '.', '-mindepth', '1', ...criterion(pattern), '-print0']
  const exitCode = await runTool(sandbox, deadline, { argv, cwd: path, take })
  return { files: files.sort(), isCut: exitCode === undefined }
}
