// Prints the answers of commands to standard output.
import { asJson } from '../clean.ts'
import { asTable } from './table.ts'

/** Writes text, and waits until the stream has written it. Never fails: the stream reports an error by its event `error`. */
export const write = (stream: NodeJS.WritableStream, data: string | Uint8Array): Promise<void> =>
  new Promise((resolve) => stream.write(data, () => resolve()))

export const print = (text: string): Promise<void> => write(process.stdout, `${text}\n`)

export const printJson = (value: unknown): Promise<void> => print(asJson(value))

/** Prints rows as a table, or `value` as JSON. */
export const printRows = async (
  { json }: { json?: boolean | undefined },
  value: unknown,
  headings: readonly string[],
  rows: readonly (readonly string[])[],
): Promise<void> => {
  if (json) await printJson(value)
  else await write(process.stdout, asTable(headings, rows))
}

/** Writes a message for the user to standard error. Results of commands go to standard output instead. */
export const note = (line: string): void => void process.stderr.write(`alcove: ${line}\n`)
