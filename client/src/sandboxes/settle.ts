// Waits until a sandbox is in the state that a command has asked for.
import { setTimeout as delay } from 'node:timers/promises'
import type { Api } from '../api.ts'
import { cleanLine, cleanLines } from '../clean.ts'
import { exitCodes, Failure } from '../failure.ts'
import type { Activity } from '../print/progress.ts'
import { asSandbox, getSandbox, type Sandbox } from './sandbox.ts'

/** How long a sandbox may take to reach the wanted state, in ms. The first use of an image must download and unpack it. */
const longestMs = 60 * 60_000
const [firstLookMs, mostLookMs] = [200, 2000]

/** States in which a sandbox stays until somebody asks for a change. */
const resting = new Set(['started', 'stopped', 'paused', 'archived', 'error', 'build_failed', 'destroyed'])

const failureOf = ({ name, state, errorReason }: Sandbox, wanted: readonly string[]): Failure => {
  const reason = errorReason ? `: ${cleanLines(errorReason).trim()}` : '.'
  if (state === 'error' || state === 'build_failed')
    return new Failure(`The sandbox ${cleanLine(name)} has failed${reason}`, exitCodes.serverError)
  const sentence = `The sandbox ${cleanLine(name)} is ${cleanLine(state)}, not ${wanted.join(' or ')}${reason}`
  return new Failure(sentence, exitCodes.refused)
}

/** Fetches the sandbox until it is in one of the wanted states. Throws a Failure if it has failed, or stays in another state. */
export const settle = async (
  api: Api,
  sandbox: Sandbox,
  wanted: readonly string[],
  activity?: Activity | undefined,
): Promise<Sandbox> => {
  const end = Date.now() + longestMs
  let now = asSandbox(sandbox)
  for (let lookMs = firstLookMs; !wanted.includes(now.state); lookMs = Math.min(lookMs * 1.5, mostLookMs)) {
    if (resting.has(now.state)) throw failureOf(now, wanted)
    if (Date.now() > end) {
      throw new Failure(`The sandbox ${cleanLine(now.name)} is still ${cleanLine(now.state)}.`, exitCodes.tryAgain)
    }
    activity?.say(cleanLine(now.state).replaceAll('_', ' '))
    await delay(lookMs, undefined, api.signal ? { signal: api.signal } : {})
    now = await getSandbox(api, sandbox.id)
  }
  return now
}
