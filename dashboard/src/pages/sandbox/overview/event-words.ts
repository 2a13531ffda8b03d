// Turns an event of a sandbox's timeline into a heading and sentences.
import type { AnswerTo } from '../../../api/client.ts'

export type SandboxEvent = AnswerTo<'/sandbox/{sandboxIdOrName}/events', 'get'>['items'][number]

const begun: Partial<Record<string, string>> = {
  creating: 'Creation began',
  restoring: 'Return from the archive began',
  starting: 'Start began',
  stopping: 'Stop began',
  pausing: 'Pause began',
  resuming: 'Resume began',
  archiving: 'Archiving began',
  resizing: 'Resize began',
  snapshotting: 'Snapshot began',
  forking: 'Fork began',
  destroying: 'Deletion began',
  pending_build: 'Waits for its image to be built',
  building_snapshot: 'Its image is being built',
  stopped: 'Stopped',
  paused: 'Paused',
  archived: 'Archived',
  destroyed: 'Deleted',
  error: 'Failed',
  build_failed: 'The build of its image failed',
}

const started: Partial<Record<string, string>> = {
  started: 'Created',
  resuming: 'Resumed',
  resizing: 'Resize ended',
  snapshotting: 'Snapshot ended',
  archiving: 'Archiving ended: it runs on',
  pausing: 'Pause ended: it runs on',
}

const ended: Partial<Record<string, string>> = { resizing: 'Resize ended', snapshotting: 'Snapshot ended' }

const isMishap = ({ from, to, cause }: SandboxEvent) => from === to && cause !== undefined

/** Returns a short heading that says what happened. */
export const titleOf = (event: SandboxEvent): string => {
  const { from, to } = event
  if (isMishap(event)) return event.cause?.oomKilled === true ? 'A process inside was killed' : 'Trouble inside'
  if (to === 'started') return started[from ?? ''] ?? 'Started'
  if ((to === 'stopped' || to === 'paused') && ended[from ?? ''] !== undefined) return ended[from!]!
  return begun[to] ?? to.replaceAll('_', ' ')
}

export type Tone = 'ok' | 'info' | 'warn' | 'danger' | ''

export const toneOf = (event: SandboxEvent): Tone => {
  const { to, cause } = event
  if (to === 'error' || to === 'build_failed') return 'danger'
  if (isMishap(event) || cause?.oomKilled === true) return 'warn'
  if (to === 'started') return 'ok'
  return begun[to]?.endsWith('began') ? 'info' : ''
}

const causeText = ({ exitCode, signal, oomKilled }: NonNullable<SandboxEvent['cause']>): string | undefined => {
  if (oomKilled === true) return 'It ran out of memory and was killed.'
  if (signal !== undefined) return `It was ended by the signal ${signal}.`
  if (exitCode !== undefined) return `Its first process ended with exit code ${exitCode}.`
  return undefined
}

/** Says why the event happened: the server's reason, and the cause that the runner found, unless the reason names it too. */
export const reasonsOf = ({ reason, cause }: SandboxEvent): string[] => {
  const saysMemory = /out of memory/i.test(reason ?? '')
  const words = cause === undefined || (saysMemory && cause.oomKilled === true) ? undefined : causeText(cause)
  // If the server's reason already names the exit code or the signal, the text of the cause is left out.
  const isKnown = cause?.exitCode !== undefined && (reason ?? '').includes(`exit code ${cause.exitCode}`)
  const isSignalKnown = cause?.signal !== undefined && (reason ?? '').includes(cause.signal)
  const parts = [reason, cause?.detail, isKnown || isSignalKnown ? undefined : words]
  return [...new Set(parts.filter((part): part is string => part !== undefined && part !== ''))]
}

const timers: Partial<Record<string, string>> = {
  ttl: 'its time to live',
  'auto-stop': 'its idle timer',
  'auto-pause': 'its idle timer',
  'auto-archive': 'its archive timer',
  'auto-delete': 'its delete timer',
  stuck: 'the server’s time limit',
  suspension: 'the suspension of the organization',
  'runner-gone': 'the server, because its runner is gone',
  'warm-pool': 'the server, for a warm pool',
  build: 'the server’s build',
}

/** Describes who caused the event: a user, a runner or a timer. `nameOf` returns the name of a user. */
export const actorText = ({ kind, id }: SandboxEvent['by'], nameOf: (userId: string) => string | undefined): string => {
  if (kind === 'runner') return `runner ${id}`
  if (kind === 'timer') return timers[id] ?? `the timer ${id}`
  return nameOf(id) ?? `user ${id.slice(0, 8)}`
}
