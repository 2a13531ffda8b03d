// The command `alcove logs`: shows the output of a sandbox's entrypoint, or the log of the build of its image.
import { callServer } from '../call.ts'
import { cleanLines } from '../clean.ts'
import type { Work } from '../commands.ts'
import { exitCodes, Failure } from '../failure.ts'
import { printJson, write } from '../print/print.ts'
import { getSandbox, toolboxOf } from '../sandboxes/sandbox.ts'
import { printBuildLog } from '../snapshots/build-log.ts'
import { keepAlive, openSocket } from './open-socket.ts'
import { lastingHeaders } from './preview-token.ts'

/** In a followed log, three equal bytes begin each message: 1 for standard output, 2 for standard error. */
const errorMark = 2
const markLength = 3

type Logs = { stdout: string; stderr: string }

/** Shows the log until the entrypoint ends or the user interrupts the program. */
const follow = async (work: Work, url: string, headers: Record<string, string>): Promise<void> => {
  const { signal } = work.interruption
  const socket = await openSocket(`${url}?follow=true`, { headers, signal })
  keepAlive(socket)
  const onAbort = () => socket.terminate()
  signal.addEventListener('abort', onAbort, { once: true })
  let writing = Promise.resolve()
  const [code, reason] = await new Promise<[number, string]>((resolve) => {
    socket.on('message', (data: Buffer) => {
      const stream = data[0] === errorMark ? process.stderr : process.stdout
      socket.pause()
      writing = writing.then(() => write(stream, data.subarray(markLength))).then(() => socket.resume())
    })
    socket.once('close', (code, reason) => resolve([code, reason.toString()]))
    socket.resume()
  })
  await writing
  signal.removeEventListener('abort', onAbort)
  if (signal.aborted) throw signal.reason
  if (code !== 1000)
    throw new Failure(cleanLines(reason) || 'The connection to the log was lost.', exitCodes.unreachable)
}

export const logs = async (
  work: Work,
  idOrName: string,
  options: { follow?: boolean; build?: boolean; json?: boolean },
): Promise<void> => {
  const sandbox = await getSandbox(work.api, idOrName)
  if (options.build) return await printBuildLog(work.api, 'sandbox', sandbox.id, { follow: options.follow === true })
  const url = `${toolboxOf(sandbox)}/process/session/entrypoint/logs`
  const headers = await lastingHeaders(work.api, sandbox)
  if (options.follow) return await follow(work, url, headers)
  const found = await callServer<Logs>(url, { headers, signal: work.api.signal })
  if (options.json) return await printJson({ stdout: found.stdout, stderr: found.stderr })
  await write(process.stdout, found.stdout)
  await write(process.stderr, found.stderr)
}
