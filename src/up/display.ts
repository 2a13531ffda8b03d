// What a person sees of `up`. On a terminal a bar; elsewhere plain lines, few enough for a log.
import { SingleBar } from 'cli-progress'
import type { Progress } from '#src/wire/runner-link.ts'

export type Display = {
  say: (line: string) => void
  progress: (progress: Progress) => void
  /** Ends the bar, if there is one. */
  endProgress: () => void
}

type Output = { write: (text: string) => unknown; isTTY?: boolean }

/** Everything goes to standard error but what scripts may want to read, which `up` prints at the end. */
export const createDisplay = (output: Output & NodeJS.WritableStream = process.stderr): Display => {
  // A full disk that it goes to, or a reader who is gone, must not end the supervisor.
  for (const stream of new Set<NodeJS.WritableStream>([output, process.stdout])) stream.on('error', () => {})
  let bar: SingleBar | undefined
  let told: { step: string; percent: number } | undefined
  const endProgress = () => {
    bar?.stop()
    bar = undefined
    told = undefined
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
      } else if (told?.step !== step || whole >= told.percent + 25) {
        output.write(`${step}: ${whole} %\n`)
        told = { step, percent: whole }
      }
      if (whole === 100 && bar) endProgress()
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
  /** How this person calls the CLI for this server, such as `./alcove key --data /x`. */
  keyCommand: string
  /** How they give the first administrator a password, which is made and printed then. */
  passwordCommand: string
  seconds: number
}

/** Printed when everything serves. The key itself stands in it once, at the first `up`. */
export const welcome = ({ url, proxyUrl, key, keyIsNew, keyCommand, passwordCommand, seconds }: Welcome): string => `
Alcove is ready after ${seconds.toFixed(1)} s.

  API        ${url}/api
  Toolboxes  ${proxyUrl}/toolbox
  Key        ${keyIsNew ? `${key}   (shown once; later: ${keyCommand})` : keyCommand}
  Password   ${passwordCommand}   (to sign in as admin@localhost)

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
