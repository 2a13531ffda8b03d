// Prints the log of a build. The log contains output of untrusted programs, so unsafe characters are shown as escapes.
import { type Api, path } from '../api.ts'
import { unreachable } from '../call.ts'
import { cleanLines } from '../clean.ts'
import { write } from '../print/print.ts'

/** Maximum time for which the log of a build is followed, in ms. */
const longestMs = 2 * 60 * 60_000

/** Prints the present log of a build. With `follow`, also prints what is added, until the build ends. */
export const printBuildLog = async (
  api: Api,
  kind: 'sandbox' | 'snapshots',
  id: string,
  { follow, to = process.stdout }: { follow: boolean; to?: NodeJS.WritableStream },
): Promise<void> => {
  const where = kind === 'sandbox' ? path`/sandbox/${id}/build-logs` : path`/snapshots/${id}/build-logs`
  const query = follow ? { follow: 'true' } : {}
  const reply = await api.open(where, { query, patience: longestMs })
  const decoder = new TextDecoder()
  try {
    for await (const piece of (reply.body ?? []) as AsyncIterable<Uint8Array>) {
      await write(to, cleanLines(decoder.decode(piece, { stream: true })))
    }
  } catch (error) {
    throw unreachable(new URL(reply.url).origin, error as Error)
  }
}
