import type { Api } from './api.ts'
import { cleanLine } from './clean.ts'
import { Failure } from './failure.ts'
import { note, printJson } from './print/print.ts'

/** Deletes all objects in `names`, such as snapshots or keys. Continues after an error, and throws the first error at the end. */
export const deleteAll = async (
  api: Api,
  names: readonly string[],
  { json, pathOf }: { json?: boolean | undefined; pathOf: (name: string) => string },
): Promise<void> => {
  const deleted: string[] = []
  let firstError: Error | undefined
  for (const name of names) {
    try {
      await api.ask('DELETE', pathOf(name))
      deleted.push(name)
      if (!json) note(`${cleanLine(name)} is deleted.`)
    } catch (error) {
      if (api.signal?.aborted) throw error
      if (names.length === 1 || !(error instanceof Failure)) throw error
      note(`${cleanLine(name)}: ${error.message}`)
      firstError ??= new Failure('Not everything was deleted.', error.exitCode)
    }
  }
  if (json) await printJson(deleted)
  if (firstError !== undefined) throw firstError
}
