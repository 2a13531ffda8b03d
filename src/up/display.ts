// What `up` prints for people: a progress bar on a terminal, and otherwise a few lines of text.
import { SingleBar } from 'cli-progress'
import type { Progress } from '#src/wire/runner-link.ts'

export type Display = {
  say: (line: string) => void
  progress: (progress: Progress) => void
  /** Removes the progress bar, if there is one. */
  endProgress: () => void
}

/** Without a terminal, `up` prints the current step and its progress again after this many milliseconds. */
const tellAgainMs = 30_000

type Output = { write: (text: string) => unknown; isTTY?: boolean }

/**
 * Creates the output of `up`. Only the final result goes to standard output, which scripts may read. Everything else
 * goes to standard error.
 */
export const createDisplay = (output: Output & NodeJS.WritableStream = process.stderr): Display => {
  // Writing output fails if the disk is full or the pipe is closed. Such a failure must not end `up`.
  for (const stream of new Set<NodeJS.WritableStream>([output, process.stdout])) stream.on('error', () => {})
  let bar: SingleBar | undefined
  let told: { step: string; percent: number } | undefined
  let again: NodeJS.Timeout | undefined
  const endProgress = () => {
    bar?.stop()
    clearInterval(again)
    bar = undefined
    told = undefined
    again = undefined
  }
  let last: { step: string; percent: number } | undefined
  const tell = () => {
    if (last === undefined) return
    output.write(`${last.step}: ${last.percent} %\n`)
    told = last
    clearInterval(again)
    again = setInterval(tell, tellAgainMs).unref()
  }
  return {
    endProgress,
    say: (line) => {
      endProgress()
      output.write(`${line}\n`)
    },
    progress: ({ step, percent }) => {
      const whole = Math.max(0, Math.min(100, Math.floor(percent) || 0))
      if (output.isTTY) {
        bar ??= startBar(output)
        bar.update(whole, { step })
      } else {
        last = { step, percent: whole }
        if (told?.step !== step || whole >= told.percent + 25) tell()
      }
      if (whole === 100) endProgress()
    },
  }
}

const startBar = (stream: NodeJS.WritableStream) => {
  const bar = new SingleBar({
    format: '{bar} {percentage} %  {step}',
    stream,
    hideCursor: true,
    clearOnComplete: false,
  })
  bar.start(100, 0, { step: '' })
  return bar
}

type Welcome = {
  url: string
  proxyUrl: string
  key: string
  keyIsNew: boolean
  /** The command that prints the admin key of this server, such as `./alcove key --data /x`. */
  keyCommand: string
  /** The link with which the first administrator can sign in once. Undefined if this is not the first `up`. */
  link: string | undefined
  /**
   * The command that prints a sign-in link. Undefined if users sign in at an identity provider that the operator has
   * configured.
   */
  linkCommand: string | undefined
  seconds: number
}

const howToOpen = ({ url, link, linkCommand }: Welcome): string => {
  if (link !== undefined) return `${link}   (signs you in once; later: ${linkCommand})`
  return linkCommand === undefined ? `${url}/dashboard/` : `${url}/dashboard/   (sign in: ${linkCommand})`
}

/** Returns the text that `up` prints when all programs serve. The text contains the admin key only at the first `up`. */
export const welcome = (given: Welcome): string => {
  const { url, proxyUrl, key, keyIsNew, keyCommand, seconds } = given
  return `
Alcove is ready after ${seconds.toFixed(1)} s.

  Dashboard  ${howToOpen(given)}
  API        ${url}/api
  Toolboxes  ${proxyUrl}/toolbox
  Key        ${keyIsNew ? `${key}   (shown once; later: ${keyCommand})` : keyCommand}

With curl:

  curl -X POST ${url}/api/sandbox -H "Authorization: Bearer $(${keyCommand})"

With the SDK (npm install @daytona/sdk@0):

  import { Daytona } from '@daytona/sdk'
  const daytona = new Daytona({ apiUrl: '${url}/api', apiKey: '${keyIsNew ? key : '…'}' })
  const sandbox = await daytona.create()
  console.log((await sandbox.process.executeCommand('uname -a')).result)
  await sandbox.delete()

Ctrl-C stops Alcove; sandboxes keep running and are found again by the next start.
`
}
