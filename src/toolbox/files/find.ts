// Lines that hold a text, found by the image's own `grep`. The text is literal, as it is for `replace`.
import { Problem } from '#src/problems.ts'
import type { Deadline } from '../exec/deadline.ts'
import { jsonBytes } from '../json-size.ts'
import type { ToolboxSandbox } from '../sandbox.ts'
import { below } from './file-info.ts'
import { answerBytes, Records } from './records.ts'
import { operand, runTool } from './run-tool.ts'
import type { Match } from './schemas.ts'

/** More matches are left out, and said to be. */
export const findLength = 10_000
/** Of the name of a file, and of one line. */
const recordBytes = 16 * 1024

/** `--no-messages`: what may not be read is passed over. A fifo, a device or a binary file is passed over too. */
const options = ['-F', '-n', '-H', '-I', '--null', '--no-messages', '--devices=skip', '--color=never']

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
    throw new Problem('invalid_file_path', 'This is neither a regular file nor a directory.')
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
  const where = isDirectory ? { argv: ['-r', '--', '.'], cwd: path } : { argv: ['--', operand(path)] }
  const argv = ['grep', ...options, '-e', pattern, ...where.argv]
  const exitCode = await runTool(sandbox, deadline, { ...where, argv, take })
  const order = (a: Match, b: Match) => (a.file === b.file ? a.line - b.line : a.file < b.file ? -1 : 1)
  return { matches: matches.sort(order), isCut: exitCode === undefined }
}
