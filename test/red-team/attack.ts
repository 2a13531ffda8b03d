// The type of an attack, and the function that runs attacks. Each attack tries to cross one of the boundaries that SECURITY.md
// lists.
import type { Box } from '../sandboxes/box.ts'
import type { Platform } from '../sandboxes/harness.ts'

export const boundaries = [
  'sandbox → host',
  'sandbox → resources',
  'sandbox → network',
  'sandbox → runner',
  'sandbox → values of its secrets',
  'Internet → API',
  'API → host',
  'toolbox caller → toolbox',
  'SSH client → sandbox',
  'whoever builds an image → host',
  'preview visitor → server inside',
] as const

/**
 * The targets of the attacks: a server and two of its sandboxes. Commands run as the default user in `box`, and as root in `root`.
 */
export type Ground = { platform: Platform; box: Box; root: Box }

export type Verdict = { result: 'held' | 'not held' | 'could not be tried'; sentence: string }

export type Attack = {
  name: string
  boundary: (typeof boundaries)[number]
  /** Makes the attack. Returns `held` if the attack did not get through. Throws an error if the attack could not be made. */
  try: (ground: Ground) => Promise<Verdict>
}

export const held = (sentence: string): Verdict => ({ result: 'held', sentence })
export const notHeld = (sentence: string): Verdict => ({ result: 'not held', sentence })

/**
 * Returns the result of an attack: `held` with the given sentence if `got` is empty. `got` lists what the attacker got through the
 * boundary.
 */
export const unless = (got: readonly string[], sentence: string): Verdict =>
  got.length === 0 ? held(sentence) : notHeld(`got through: ${got.join('; ').slice(0, 300)}`)

export type Row = Attack & Verdict

/** Maximum time of an attack, in ms. */
const attackMs = 40_000

/** Runs the attacks one after the other, because two attacks at the same time would disturb each other. */
export const runAttacks = async (
  attacks: readonly Attack[],
  ground: Ground,
  { untilMs, say = () => {} }: { untilMs: number; say?: (row: Row) => void },
): Promise<Row[]> => {
  const rows: Row[] = []
  for (const attack of attacks) {
    const leftMs = Math.min(attackMs, untilMs - Date.now())
    const verdict =
      leftMs <= 0 ? notTried('the time for all attacks is over') : await within(leftMs, attack.try(ground))
    const row = { ...attack, ...verdict }
    rows.push(row)
    say(row)
  }
  return rows
}

const notTried = (sentence: string): Verdict => ({ result: 'could not be tried', sentence })

const within = async (ms: number, trying: Promise<Verdict>): Promise<Verdict> => {
  const { promise, resolve } = Promise.withResolvers<Verdict>()
  const timer = setTimeout(() => resolve(notTried(`it took longer than ${Math.round(ms / 1000)} s`)), ms)
  const tried = trying.catch((error: Error) => notTried(error.message.split('\n')[0]!.slice(0, 200)))
  return Promise.race([tried, promise]).finally(() => clearTimeout(timer))
}
