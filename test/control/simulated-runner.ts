// A simulated runner for tests of control. It connects as a real runner does, but only pretends to have sandboxes. A test can make
// it break the protocol.
//   await using runner = await connectRunner(app)
//   runner.behave(() => ({ type: 'fail', reason: 'the disk is full' }))
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { WebSocket } from 'ws'
import { isAssignment } from '#src/runner/control-link/assignment.ts'
import type { GateOfHost } from '#src/wire/hosts.ts'
import type {
  Assignment,
  FromRunner,
  ImageAssignment,
  Report,
  RunnerCapabilities,
  Target,
  ToRunner,
  VolumeAssignment,
} from '#src/wire/runner-link.ts'
import type { SandboxState } from '#src/wire/sandbox-state.ts'
import type { TestControl } from './harness.ts'
import { keys } from './people.ts'

/**
 * What the runner does with an assignment. `do`: performs it and reports the new state. `fail`: reports that the assignment failed.
 */
export type Behaviour =
  | { type: 'do' }
  | { type: 'fail'; reason: string; recoverable?: boolean }
  /** The runner refuses: it reports the given state and the reason. */
  | { type: 'refuse'; reason: string; state: Report['state'] }
  /** The runner accepts the assignment and reports nothing. */
  | { type: 'silent' }
  /** The runner sends every report twice. */
  | { type: 'twice' }
  /** The runner performs nothing. It reports the wanted state for the previous generation, which control must ignore. */
  | { type: 'stale' }

export type SimulatedRunner = AsyncDisposable & {
  /** URL of the control to which the runner connects: `http://127.0.0.1:port`. */
  base: string
  /** Every assignment that the runner received, in order, including repeated ones. */
  asked: Assignment[]
  /**
   * All image assignments that the runner received, in order. By default, the runner reports nothing about images; a test calls
   * `say` to send a report.
   */
  askedImages: ImageAssignment[]
  /**
   * All volumes that the runner was asked to remove, in order. The runner reports nothing about volumes; a test calls `say` to send
   * a report.
   */
  askedVolumes: VolumeAssignment[]
  /** The sandboxes that the runner pretends to have, and their states. */
  has: Map<string, Exclude<Target, 'destroyed'>>
  behave: (choose: (assignment: Assignment) => Behaviour) => void
  /** Sets what the runner does with an image assignment. Default: nothing. */
  behaveWithImages: (choose: (assignment: ImageAssignment) => 'do' | 'fail' | 'silent') => void
  say: (message: FromRunner) => void
  report: (report: Report) => void
  /** Performs an assignment to which the runner has not reacted, because the test had chosen the behaviour `silent`. */
  perform: (assignment: Assignment) => void
  /**
   * Fetches control's list of assignments, as a runner does after each `hello` message, and performs the assignments.
   */
  takeList: () => Promise<void>
  /** Resolves with the first assignment for which `is` returns true, even if the runner received it before this call. */
  untilAsked: (is: (assignment: Assignment) => boolean) => Promise<Assignment>
  /** Breaks the link between runner and control without a WebSocket close frame. */
  cut: () => Promise<void>
  link: (images?: readonly string[]) => Promise<void>
}

const capabilities = {
  cpu: 4,
  memoryGiB: 16,
  diskGiB: 100,
  runtime: 'simulated',
  runtimeVersion: '1',
  hardDiskLimit: true,
  pause: 'memory',
  fork: 'disk',
  volumes: 'disk',
} as const satisfies RunnerCapabilities

/** What the simulated runner reports about the archive of a sandbox. */
export const archiveReport = (id: string) => ({ id, sha256: 'a'.repeat(64), bytes: 4096, storedBytes: 1024 })

/** The entrypoint, variables, user and working directory that every image on the simulated runner has. */
const imageConfig = { entrypoint: [], env: {}, user: 'of-image', workdir: '/' }

/** Options of the runner. `token`: the token of a runner that the test has added. Absent: the server's own runner. */
export type RunnerOptions = {
  images?: readonly string[]
  capabilities?: Partial<RunnerCapabilities>
  token?: string
  gate?: GateOfHost
}

const untilMilliseconds = 20_000

export const connectRunner = async (
  control: Pick<TestControl, 'with' | 'listen'>,
  options: RunnerOptions = {},
): Promise<SimulatedRunner> => {
  const { images = ['default'], token = keys.runner } = options
  const base = await control.listen()
  const asked: Assignment[] = []
  const askedImages: ImageAssignment[] = []
  const askedVolumes: VolumeAssignment[] = []
  const has: SimulatedRunner['has'] = new Map()
  const waiters = new Set<() => void>()
  let choose: (assignment: Assignment) => Behaviour = () => ({ type: 'do' })
  let chooseForImage: (assignment: ImageAssignment) => 'do' | 'fail' | 'silent' = () => 'silent'
  let socket: WebSocket | undefined

  const say = (message: FromRunner) => {
    if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message))
  }
  const report = (given: Report) => say({ type: 'report', report: given })

  const perform = ({ sandboxId, generation, target, archive, save }: Assignment) => {
    if (target === 'destroyed') has.delete(sandboxId)
    else has.set(sandboxId, target)
    const written = target === 'archived' && archive ? { archive: archiveReport(archive.id) } : {}
    report({ sandboxId, generation, state: target, ...written })
    if (save) say({ type: 'saved', sandboxId, archive: archiveReport(save.id) })
  }

  const takeImage = (assignment: ImageAssignment) => {
    askedImages.push(assignment)
    const { image, target } = assignment
    const done = chooseForImage(assignment)
    if (done === 'do') say({ type: 'image', report: { image, state: target, sizeBytes: 2 ** 20, config: imageConfig } })
    if (done === 'fail') say({ type: 'image', report: { image, state: 'error', errorReason: 'The disk is full.' } })
    for (const wake of waiters) wake()
  }

  const take = (assignment: Assignment) => {
    assert.ok(isAssignment(assignment), `a runner could not read ${JSON.stringify(assignment).slice(0, 1000)}`)
    asked.push(assignment)
    const { sandboxId, generation, target } = assignment
    const behaviour = choose(assignment)
    switch (behaviour.type) {
      case 'do':
        perform(assignment)
        break
      case 'twice':
        perform(assignment)
        perform(assignment)
        break
      case 'stale':
        report({ sandboxId, generation: generation - 1, state: target })
        break
      case 'fail': {
        const { reason, recoverable = true } = behaviour
        report({ sandboxId, generation, state: 'error', errorReason: reason, recoverable })
        break
      }
      case 'refuse':
        report({ sandboxId, generation, state: behaviour.state, refused: behaviour.reason })
        break
      case 'silent':
    }
    for (const wake of waiters) wake()
  }

  const takeList = async () => {
    const { status, body } = await control.with(token).get('/sandbox/for-runner')
    if (status !== 200) throw new Error(`for-runner answered ${status}`)
    for (const { assignment, state } of body as { assignment: Assignment; state: string }[]) {
      if (assignment.target !== state || has.get(assignment.sandboxId) !== assignment.target) take(assignment)
    }
  }

  const hear = (message: ToRunner) => {
    if (message.type === 'assign') take(message.assignment)
    if (message.type === 'image') takeImage(message.assignment)
    if (message.type === 'volume') askedVolumes.push(message.assignment)
  }

  const link = async (present: readonly string[] = images) => {
    const opened = new WebSocket(`${base.replace('http', 'ws')}/api/runners/link`, {
      headers: { authorization: `Bearer ${token}` },
    })
    socket = opened
    // Control answers the message `hello` with the message `list`, after control has stored the contents of `hello`.
    const listed = new Promise<unknown>((resolve, reject) => {
      opened.on('message', (data) => {
        const message = JSON.parse(String(data)) as ToRunner
        hear(message)
        // Resolve only after the list. Otherwise a test's next sandbox could arrive twice: in the list and in a message.
        if (message.type === 'list') takeList().then(resolve, resolve)
      })
      opened.on('error', reject)
      opened.on('close', () => reject(new Error('control closed the link')))
    })
    listed.catch(() => {})
    await once(opened, 'open')
    say({
      type: 'hello',
      address: 'unix:/simulated/runner.sock',
      images: present,
      capabilities: { ...capabilities, ...options.capabilities },
      version: '0.0.0-simulated',
      ...(options.gate && { gate: options.gate }),
    })
    await listed
  }

  const cut = async () => {
    const closing = socket
    socket = undefined
    if (closing === undefined || closing.readyState === WebSocket.CLOSED) return
    closing.terminate()
    await once(closing, 'close')
  }

  await link()
  return {
    base,
    asked,
    askedImages,
    askedVolumes,
    has,
    say,
    report,
    perform,
    takeList,
    link,
    cut,
    behave: (chosen) => {
      choose = chosen
    },
    behaveWithImages: (chosen) => {
      chooseForImage = chosen
    },
    untilAsked: (is) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const found = asked.findLast(is)
          if (found === undefined) return
          clearTimeout(timer)
          waiters.delete(look)
          resolve(found)
        }
        const timer = setTimeout(() => {
          waiters.delete(look)
          reject(
            new Error(`the runner was never asked that; it was asked ${JSON.stringify(asked.map((a) => a.target))}`),
          )
        }, untilMilliseconds)
        waiters.add(look)
        look()
      }),
    [Symbol.asyncDispose]: cut,
  }
}

/** Waits until a sandbox has the state `state` in the database. After a time limit, throws an error with the actual state. */
export const untilState = async (
  { app, database }: Pick<TestControl, 'app' | 'database'>,
  sandboxId: string,
  state: SandboxState,
): Promise<void> => {
  const deadline = performance.now() + untilMilliseconds
  for (;;) {
    const changed = app.sandboxes.changes.next(sandboxId, 500)
    const [row] = await database.sql<{ state: string }[]>`select state from sandboxes where id = ${sandboxId}`
    if (row?.state === state) return
    if (performance.now() > deadline) throw new Error(`sandbox ${sandboxId} is ${row?.state}, not ${state}`)
    await changed
  }
}

export type TimelineEvent = {
  from_state: string | null
  to_state: string
  by_kind: string
  by_id: string
  reason: string | null
}

/** Returns the whole timeline of a sandbox, in order. */
export const eventsOf = async (
  { database }: Pick<TestControl, 'database'>,
  sandboxId: string,
): Promise<TimelineEvent[]> =>
  database.sql<TimelineEvent[]>`
    select from_state, to_state, by_kind, by_id, reason from sandbox_events
    where sandbox_id = ${sandboxId} order by id`
