// Gets the certificates of the gate on the server's own machine, for `up --hosts`. Control recognizes this machine by the key of
// the machine's runner.
import type { DataDirectory } from '../data-directory.ts'
import { HostFiles } from './host-files.ts'
import { Renewal } from './renewal.ts'
import { renewCertificates } from './trade.ts'

type Parts = {
  data: DataDirectory
  controlUrl: string
  runnerKey: string
  /** Resolves when control answers requests for the first time since the start of `up`. */
  controlServes: Promise<void>
  say: (line: string) => void
}

/** Requests the certificates of this machine as soon as control answers, and keeps renewing them. */
export const keepOwnCertificates = ({ data, controlUrl, runnerKey, controlServes, say }: Parts) => {
  const files = new HostFiles(data)
  const credential = { headers: { authorization: `Bearer ${runnerKey}` } }
  const renewal = new Renewal({
    renew: async () => {
      await controlServes
      const told = await renewCertificates(new URL(controlUrl), credential, files.publicKeys())
      files.write(told)
      return told.renewAfterSeconds
    },
    endsAt: () => files.endsAt,
    say,
    retryMs: { first: 1000, longest: 60_000 },
  })
  return { directory: files.directoryOf('gate'), renewal }
}
