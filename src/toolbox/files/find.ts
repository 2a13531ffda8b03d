// Finds lines that contain a text, with the image's own `grep`. The text is literal, not a regular expression.

import { jsonBytes } from '#src/kit/json-size.ts'
import type { Deadline } from '#src/toolbox/running/deadline.ts'
import type { ToolboxSandbox } from '../sandbox.ts'
import { aboutPath } from './failures.ts'
import { below } from './file-info.ts'
import { answerBytes, Records } from './records.ts'
import { operand, runTool } from './run-tool.ts'
import type { Match } from './schemas.ts'

/** Maximum number of matches in an answer. If there are more, the answer has the header `X-Alcove-Truncated`. */
export const findLength = 10_000
/** Maximum length of each file name and each line in the output of `grep`, in bytes. */
const recordBytes = 16 * 1024

/** Options of `grep`. `--no-messages`: unreadable files are skipped. Fifos, devices and binary files are skipped too. */
const options = ['-F', '-n', '-H', '-I', '--null', '--no-messages', '--devices=skip', '--color=never']

/** A command that tests for GNU grep, which accepts all `options` and exits with 1, because /dev/null has no match. */
const isKnownBy = ['grep', ...options, '-e', 'x', '--', '/dev/null']

/**
 * A script for BusyBox's `grep`, which does not separate file names from lines, and does not skip binary files. The script searches
 * file by file. `$1`: the text; the other arguments: the files.
 */
const slowly = `p=$1
shift
grep -qsF -e "$p" -- "$@" || exit 0
for f do
  grep -qsF -e "$p" -- "$f" || continue
  tr -d '\\000' <"$f" | cmp -s - "$f" || continue
  grep -nF -e "$p" -- "$f" | while IFS= read -r line; do printf '%s\\000%s\\n' "$f" "$line" || exit; done
done`

/** Parses a line of `grep`'s output: `number:line`. */
const readLine = (record: Buffer): Omit<Match, 'file'> => {
  const numberEnd = record.indexOf(':')
  const content = record.subarray(numberEnd + 1).toString('utf8')
  return { line: Number(record.toString('latin1', 0, numberEnd)), content: content.replace(/\r$/, '') }
}

/** Searches a file, or all files below a directory. Does not follow links below the directory. */
export const find = async (
  sandbox: ToolboxSandbox,
  deadline: Deadline,
  path: string,
  pattern: string,
): Promise<{ matches: Match[]; isCut: boolean }> => {
  const files = sandbox.agent.files(sandbox.assignment.user)
  const { type } = await files.stat(path, { followLink: true })
  const isDirectory = type === 'directory'
  if (!isDirectory && type !== 'file') {
    throw aboutPath('invalid_file_path', path, 'This is neither a regular file nor a directory.')
  }
  const matches: Match[] = []
  // `grep` ends a file name with NUL, because the name may contain a line break. `grep` ends a matching line with a line break.
  const records = new Records([0, 0x0a], recordBytes)
  let file: string | undefined
  let bytes = 0
  const take = (data: Buffer): boolean => {
    for (const record of records.push(data)) {
      if (matches.length === findLength || bytes > answerBytes) return false
      if (file === undefined) {
        file = isDirectory ? below(path, record.toString('utf8').replace(/^\.\//, '')) : path
      } else {
        const match = { file, ...readLine(record) }
        matches.push(match)
        bytes += jsonBytes(match)
        file = undefined
      }
    }
    return true
  }
  const cwd = isDirectory ? { cwd: path } : {}
  const where = isDirectory ? ['-r', '--', '.'] : ['--', operand(path)]
  const argv = ['grep', ...options, '-e', pattern, ...where]
  let exitCode = await runTool(sandbox, deadline, { ...cwd, argv, take })
  // `grep` exits with 2 for unknown options, but also if it could not read a file. So test whether the image has GNU grep.
  const mayBeOther = exitCode !== undefined && exitCode > 1 && matches.length === 0
  if (mayBeOther && (await runTool(sandbox, deadline, { argv: isKnownBy })) !== 1) {
    const script = ['sh', '-c', slowly, 'sh', pattern]
    const each = isDirectory ? ['find', '.', '-type', 'f', '-exec', ...script, '{}', '+'] : [...script, operand(path)]
    exitCode = await runTool(sandbox, deadline, { ...cwd, argv: each, take })
  }
  const order = (a: Match, b: Match) => (a.file === b.file ? a.line - b.line : a.file < b.file ? -1 : 1)
  return { matches: matches.sort(order), isCut: exitCode === undefined }
}
