// Prints the answers of commands to standard output.
import { asJson } from '../clean.ts'
import { asTable } from './table.ts'

/**
 * Writes text, and waits while the reader is slow. If nobody reads any more, the error of the stream tells it, and this
 * returns.
 */
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

/** Says something to the user that is no answer, on standard error. */
export const note = (line: string): void => void process.stderr.write(`alcove: ${line}\n`)
