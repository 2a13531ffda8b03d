// Lines that hold a text, found by the image's own `grep`. The text is literal, as it is for `replace`.

import { jsonBytes } from '#src/kit/json-size.ts'
import type { Deadline } from '#src/toolbox/running/deadline.ts'
import type { ToolboxSandbox } from '../sandbox.ts'
import { aboutPath } from './failures.ts'
import { below } from './file-info.ts'
import { answerBytes, Records } from './records.ts'
import { operand, runTool } from './run-tool.ts'
import type { Match } from './schemas.ts'

/** More matches are left out, and said to be. */
export const findLength = 10_000
/** Longest name of a file, and longest line, in bytes. */
const recordBytes = 16 * 1024

/** `--no-messages`: what may not be read is passed over. A fifo, a device or a binary file is passed over too. */
const options = ['-F', '-n', '-H', '-I', '--null', '--no-messages', '--devices=skip', '--color=never']

/** A grep that knows all of these finds nothing here, with exit code 1; another refuses them. */
const isKnownBy = ['grep', ...options, '-e', 'x', '--', '/dev/null']

/**
 * Searches one file after the other, where `grep` is BusyBox's: its answer would not tell where the name of a file ends, and
 * it does not know binary files. After the text come the files, and the first `grep` asks whether it is in any of them.
 */
const slowly = `p=$1
shift
grep -qsF -e "$p" -- "$@" || exit 0
for f do
  grep -qsF -e "$p" -- "$f" || continue
  tr -d '\\000' <"$f" | cmp -s - "$f" || continue
  grep -nF -e "$p" -- "$f" | while IFS= read -r line; do printf '%s\\000%s\\n' "$f" "$line" || exit; done
done`

/** `number : line`. */
const readLine = (record: Buffer): Omit<Match, 'file'> => {
  const numberEnd = record.indexOf(':')
  const content = record.subarray(numberEnd + 1).toString('utf8')
  return { line: Number(record.toString('latin1', 0, numberEnd)), content: content.replace(/\r$/, '') }
}

/** Looks through a file, or through all files below a directory; links below it are not followed. */
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
  // The name of a file may hold anything but a NUL, so that ends it; what follows is one line.
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
  // grep says 2 also where a file could not be read.
  const mayBeOther = exitCode !== undefined && exitCode > 1 && matches.length === 0
  if (mayBeOther && (await runTool(sandbox, deadline, { argv: isKnownBy })) !== 1) {
    const script = ['sh', '-c', slowly, 'sh', pattern]
    const each = isDirectory ? ['find', '.', '-type', 'f', '-exec', ...script, '{}', '+'] : [...script, operand(path)]
    exitCode = await runTool(sandbox, deadline, { ...cwd, argv: each, take })
  }
  const order = (a: Match, b: Match) => (a.file === b.file ? a.line - b.line : a.file < b.file ? -1 : 1)
  return { matches: matches.sort(order), isCut: exitCode === undefined }
}
