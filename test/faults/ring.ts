// The fault test (`./alcove test --faults`). It kills programs of a server at random while simulated users use sandboxes. No
// confirmed change may be lost, and nothing of deleted sandboxes may stay on the host.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Platform, Program } from '../sandboxes/harness.ts'
import { Client } from './client.ts'
import { type Random, randomFrom } from './random.ts'
import { Steady } from './steady.ts'
import { type Tally, Worker } from './worker.ts'

export type Victim = Program | 'everything' | 'a sandbox'

const victims: readonly (readonly [number, Victim])[] = [
  [5, 'runner'],
  [4, 'control'],
  [2, 'gate'],
  [2, 'postgres'],
  [1, 'up'],
  [1, 'everything'],
  [3, 'a sandbox'],
]

export type Outcome = {
  seed: number
  kills: Tally
  verbs: Tally
  /** A sentence for each rule that the server has broken. */
  complaints: string[]
  seconds: number
}

const workers = 4
/** Maximum ms from the last delete until the host has no files or processes of the sandboxes any more. */
const goneWithinMs = 60_000

type RingOptions = {
  seed: number
  count: number
  /** What may be killed: kinds of programs, or sandboxes. Default: all. */
  only?: readonly Victim[]
  say: (line: string) => void
}

/**
 * Kills programs and sandboxes of a server at random, `count` times, while workers use the server's sandboxes. No other test may
 * use the server. At the end, the server has no sandboxes.
 */
export const runRing = async (
  alcove: Platform,
  { seed, count, only = victims.map(([, victim]) => victim), say }: RingOptions,
): Promise<Outcome> => {
  const began = performance.now()
  const random = randomFrom(seed)
  const client = new Client(alcove)
  const verbs: Tally = new Map()
  const kills: Tally = new Map()
  const crowd = Array.from(
    { length: workers },
    (_, index) =>
      new Worker({
        client,
        random: randomFrom(seed + 1 + index),
        tally: verbs,
        name: `w${index}`,
        lookInto: (sandboxId) => linesOf(alcove, new RegExp(sandboxId)),
      }),
  )
  let isOver = false
  const steady = await Steady.begin(client)
  const pool = (await client.sure('POST', '/warm-pools', { snapshot: 'default', pool: 2 })).body as { id: string }
  const load = Promise.all([steady, ...crowd].map((worker) => worker.run(() => isOver)))
  const complaints: string[] = []
  try {
    for (let done = 0; done < count; done++) {
      await sleep(100 + random.below(2400))
      const victim = random.pick(victims.filter(([, one]) => only.includes(one)))
      kills.set(victim, (kills.get(victim) ?? 0) + 1)
      const kill = () =>
        strike(alcove, victim, random, steady).catch((error) => complaints.push(`killing ${victim}: ${error}`))
      // While the runner or a sandbox of other users is killed, calls of the user `steady` must succeed. After a kill of any other
      // program, these calls may fail until the program runs again.
      await (victim === 'runner' || victim === 'a sandbox' ? kill() : steady.during(kill))
      if ((done + 1) % 25 === 0) say(`${done + 1} of ${count} killed`)
    }
  } finally {
    isOver = true
  }
  await load
  for (const worker of [steady, ...crowd]) await worker.settle()
  await client.sure('DELETE', `/warm-pools/${pool.id}`)
  complaints.push(...(await findDoubles(client)))
  complaints.push(...(await removeAll(alcove, client)))
  complaints.push(...[steady, ...crowd].flatMap((worker) => worker.complaints), ...client.wrong)
  verbs.set('work that goes on', steady.answered)
  if (complaints.length > 0) complaints.push(...linesOf(alcove, /"level":(50|"error")/))
  return { seed, kills, verbs, complaints, seconds: Math.round((performance.now() - began) / 1000) }
}

/** Returns the last lines that match `what` from each program's log. Only the logs show the reason of an internal error. */
const linesOf = ({ data }: Platform, what: RegExp): string[] =>
  readdirSync(join(data, 'log')).flatMap((name) =>
    readFileSync(join(data, 'log', name), 'utf8')
      .split('\n')
      .filter((line) => what.test(line))
      .slice(-20)
      .map((line) => `${name}: ${line}`),
  )

const strike = async (alcove: Platform, victim: Victim, random: Random, steady: Pick<Steady, 'id'>) => {
  switch (victim) {
    case 'everything':
      await alcove.killAll()
      return await alcove.start()
    case 'up':
      await alcove.kill('up')
      return await alcove.start()
    case 'a sandbox':
      return await killSandbox(alcove, random, steady.id)
    default:
      // The kill fails if the program has not started again since its last kill. So try the kill a second time.
      await alcove.kill(victim).catch(async () => {
        await sleep(500)
        await alcove.kill(victim).catch(() => {})
      })
  }
}

/** Kills PID 1 of a sandbox from the host, with a signal that no process in the sandbox can handle. */
const killSandbox = async (alcove: Platform, random: Random, except: string) => {
  const pids = (await alcove.leftovers())
    .filter((line) => !line.includes(except))
    .map((line) => /^process (\d+) \(.*alcove-agent/.exec(line)?.[1])
    .filter((pid) => pid !== undefined)
    .filter(isFirst)
  const pid = pids[random.below(Math.max(pids.length, 1))]
  if (pid === undefined) return
  try {
    process.kill(Number(pid), 'SIGKILL')
  } catch {
    // The chosen process had already ended, so nothing was killed.
  }
}

const isFirst = (pid: string): boolean => {
  try {
    return /^NSpid:.*\s1$/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

type Page = { items: { id: string; name: string }[]; nextCursor: string | null }

export const listAll = async (client: Client) => {
  const all: Page['items'] = []
  let cursor: string | null = null
  do {
    const query: string = cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`
    const page = (await client.sure('GET', `/sandbox?limit=200${query}`)).body as Page
    all.push(...page.items)
    cursor = page.nextCursor
  } while (cursor !== null)
  return all
}

export const findDoubles = async (client: Client): Promise<string[]> => {
  const seen = new Set<string>()
  const complaints: string[] = []
  for (const { name } of await listAll(client)) {
    if (seen.has(name)) complaints.push(`DOUBLED ${name}`)
    seen.add(name)
  }
  return complaints
}

/**
 * Asks the server for the simulated users' snapshots. The users may not know all of their snapshots, because answers may have been
 * lost.
 */
export const listSnapshots = async (client: Client) => {
  const { items } = (await client.sure('GET', '/snapshots?limit=200')).body as {
    items: { id: string; general: boolean }[]
  }
  return items.filter(({ general }) => !general)
}

const sandboxIdShape = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g

/** Returns the journals of the sandboxes whose ids are in the given lines, and the log lines about these sandboxes. */
const tellOf = (alcove: Platform, lines: readonly string[]): string[] => {
  const ids = new Set(lines.flatMap((line) => line.match(sandboxIdShape) ?? []))
  return [...ids].flatMap((id) => [
    ...['spec', 'run'].map((name) => `${name} of ${id}: ${readIfThere(journalOf(alcove, id, name))}`),
    ...linesOf(alcove, new RegExp(id)),
  ])
}

const journalOf = ({ data }: Platform, id: string, name: string) => join(data, `runner/sandboxes/${id}/${name}.json`)

const readIfThere = (path: string): string => {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    return String(error)
  }
}

const removeAll = async (alcove: Platform, client: Client): Promise<string[]> => {
  for (const { id } of await listAll(client)) await client.sure('DELETE', `/sandbox/${id}`)
  for (const { id } of await listSnapshots(client)) await client.sure('DELETE', `/snapshots/${id}`)
  const end = Date.now() + goneWithinMs
  for (;;) {
    const left = await alcove.leftovers()
    if (left.length === 0) return []
    if (Date.now() > end) return [...left.map((line) => `ORPHANED ${line}`), ...tellOf(alcove, left)]
    await sleep(200)
  }
}

export const describe = ({ seed, kills, verbs, complaints, seconds }: Outcome): string => {
  const table = (tally: Tally) =>
    [...tally]
      .sort(([, a], [, b]) => b - a)
      .map(([word, count]) => `  ${String(count).padStart(6)}  ${word}`)
      .join('\n')
  const total = [...kills.values()].reduce((sum, count) => sum + count, 0)
  const broken = ['LOST', 'DOUBLED', 'ORPHANED', 'STUCK', 'FELT'].map(
    (word) => `${complaints.filter((line) => line.startsWith(word)).length} ${word.toLowerCase()}`,
  )
  return [
    `seed ${seed}, ${total} kills in ${seconds} s`,
    'killed:',
    table(kills),
    'done meanwhile:',
    table(verbs),
    ...complaints,
    broken.join(', '),
  ].join('\n')
}
