// Turns the cause that a runner reports into a sentence, and removes characters that the database cannot store.
import type { Cause } from '#src/wire/runner-link.ts'

const longestReason = 2000

/**
 * Cleans text that a sandbox's own processes may have influenced: limits its length, and keeps only characters that the
 * database can store.
 */
export const asText = (text: string): string =>
  text.replaceAll('\0', '').toWellFormed().slice(0, longestReason).toWellFormed()

export const cleanCause = ({ detail, signal, ...rest }: Cause): Cause => ({
  ...rest,
  ...(detail === undefined ? {} : { detail: asText(detail) }),
  ...(signal === undefined ? {} : { signal: asText(signal) }),
})

export const describe = (cause: Cause | undefined): string | undefined => {
  if (cause === undefined) return undefined
  if (cause.detail) return cause.detail
  if (cause.oomKilled) return 'It ran out of memory and was killed.'
  if (cause.signal) return `It was ended by ${cause.signal}.`
  if (cause.exitCode !== undefined) return `Its first process ended with exit code ${cause.exitCode}.`
  return undefined
}
