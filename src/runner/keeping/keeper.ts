// Brings the sandboxes of this host to the state that control assigns, and reports the results.
//
// The keeper compares each assignment with the host and acts on the difference, so repeated assignments do no harm. For each
// sandbox, only the newest generation counts and only one verb runs at a time. Failed verbs are retried.
import type { Logger } from '#src/kit/log.ts'
import { isBuildId } from '#src/runner/building/image-builder.ts'
import { idOf, isRead, type ListedSandbox, type UnreadableSandbox } from '#src/runner/control-link/assignment.ts'
import { FaultInside, NotRecoverable } from '#src/runner/machine/machine.ts'
import type { Assignment, Cause, Progress, Report, Target } from '#src/wire/runner-link.ts'
import type { SandboxState } from '#src/wire/sandbox-state.ts'
import type { Host } from '../host.ts'
import { followVerb } from './follow-verb.ts'
import { Strangers } from './strangers.ts'
import { type AtOnce, isFork, type Verb, VerbLanes, verbTo } from './verb-lanes.ts'

export type KeptHost = Pick<
  Host,
  'list' | 'get' | 'copyParent' | 'start' | 'pause' | 'stop' | 'archive' | 'destroy' | 'cutShort' | 'onExit'
>

export type KeeperParts = {
  host: KeptHost
  report: (report: Report) => void
  /** Called with the progress of slow verbs, at most once a second per sandbox. */
  onProgress?: (sandboxId: string, generation: number, progress: Progress) => void
  log: Logger
  now?: () => number
  /**
   * Pauses in milliseconds before the second and later attempts of a verb. A destroy is retried with the last pause until it
   * succeeds.
   */
  retryMs?: readonly number[]
  /** A sandbox of this host is removed when it has been missing in control's lists of sandboxes for this many milliseconds. */
  strangerGraceMs?: number
  atOnce?: AtOnce
}

const progressEveryMs = 1000

type Entry = {
  assignment: Assignment
  /** The report about the assignment. If this report is set, the keeper does nothing more until a newer generation arrives. */
  settled?: Report
  settledAt: number
  takenAt: number
  /** The verb that is running, or waits in the queue of a lane. */
  verb?: Verb
  progressAt: number
  attempts: number
  retry?: NodeJS.Timeout
  /**
   * True if control's list lacked the sandbox while this runner was starting it. The sandbox was then deleted, or a different
   * runner may start it.
   */
  isLeft: boolean
  /**
   * True if the runner has queued the start of this fork. The host may then have an unfinished copy of the parent's disk, although
   * it does not list unfinished forks.
   */
  mayHaveCopy: boolean
  /** True if a newer assignment came before the first start had begun. This host may then have nothing of the sandbox. */
  mayBeUnborn: boolean
}

const stillArchived = 'The sandbox is archived. Start it to restore its disk.'

type Outcome = Omit<Report, 'sandboxId' | 'generation'>

const sentenceOf = (error: unknown) => (error instanceof Error && error.message ? error.message : 'It failed.')

export class Keeper implements Disposable {
  readonly #host: KeptHost
  readonly #report: (report: Report) => void
  readonly #log: Logger
  readonly #now: () => number
  readonly #retryMs: readonly number[]
  readonly #turns: VerbLanes
  readonly #onProgress: NonNullable<KeeperParts['onProgress']>
  readonly #strangers: Strangers
  readonly #entries = new Map<string, Entry>()
  #isClosed = false

  constructor({ host, report, log, now = Date.now, ...parts }: KeeperParts) {
    this.#host = host
    this.#report = report
    this.#log = log
    this.#now = now
    this.#retryMs = parts.retryMs ?? [500, 2000, 10_000, 30_000]
    this.#turns = new VerbLanes(host, parts.atOnce)
    this.#onProgress = parts.onProgress ?? (() => undefined)
    this.#strangers = new Strangers({ graceMs: parts.strangerGraceMs ?? 24 * 3_600_000, log })
    host.onExit((sandboxId, cause) => this.#onExit(sandboxId, cause))
  }

  /**
   * Carries out an assignment from control. Ignores the assignment if one with a newer generation of the sandbox has arrived
   * before.
   */
  take(assignment: Assignment): void {
    const entry = this.#entryFor(assignment)
    if (entry.settled) this.#report(entry.settled)
    else this.#reconcile(entry)
  }

  /**
   * Carries out all assignments in control's complete list of this runner's sandboxes. `askedAt`: time at which the list was
   * requested.
   */
  takeAll(listed: readonly (ListedSandbox | UnreadableSandbox)[], askedAt: number): void {
    // Forks come first, because the disk of each fork must be copied before a newer verb of its parent runs.
    const read = listed.filter(isRead).sort((a, b) => Number(isFork(b.assignment)) - Number(isFork(a.assignment)))
    for (const { assignment, state } of read) this.#takeListed(assignment, state)
    const names = new Set(listed.map(idOf))
    for (const [sandboxId, entry] of this.#entries) {
      const isOver = entry.verb === undefined && entry.retry === undefined
      const isForgotten = !names.has(sandboxId) && Math.max(entry.takenAt, entry.settledAt) < askedAt
      if (!isForgotten) continue
      if (isOver) this.#entries.delete(sandboxId)
      if (entry.verb === 'start') this.#leave(sandboxId, entry)
    }
    const unlisted = this.#host.list().filter(({ id }) => !(names.has(id) || this.#entries.has(id) || isBuildId(id)))
    for (const id of this.#strangers.due(new Set(unlisted.map(({ id }) => id)), this.#now())) this.#remove(id)
  }

  /** Aborts the start of a sandbox that control no longer lists, because a different runner may start it. */
  #leave(sandboxId: string, entry: Entry) {
    entry.isLeft = true
    this.#host.cutShort(sandboxId)
  }

  #takeListed(assignment: Assignment, known: SandboxState) {
    const entry = this.#entryFor(assignment)
    if (entry.assignment.generation !== assignment.generation) return
    if (!entry.settled) this.#reconcile(entry, known)
    else if (entry.settled.state !== known) this.#report(entry.settled)
  }

  #entryFor(assignment: Assignment): Entry {
    const known = this.#entries.get(assignment.sandboxId)
    if (known) known.isLeft = false
    else {
      const entry: Entry = {
        assignment,
        settledAt: 0,
        progressAt: 0,
        takenAt: this.#now(),
        attempts: 0,
        isLeft: false,
        mayHaveCopy: false,
        mayBeUnborn: false,
      }
      this.#entries.set(assignment.sandboxId, entry)
      return entry
    }
    if (assignment.generation <= known.assignment.generation) return known
    known.mayBeUnborn ||= known.assignment.target === 'started' && this.#host.get(assignment.sandboxId) === undefined
    known.assignment = assignment
    known.takenAt = this.#now()
    known.attempts = 0
    clearTimeout(known.retry)
    delete known.retry
    delete known.settled
    return known
  }

  /**
   * Reports the state if the sandbox is already as assigned, and otherwise queues a verb. `known`: the state that control's list
   * shows, which need not be reported again.
   */
  #reconcile(entry: Entry, known?: SandboxState): void {
    if (this.#isClosed || entry.settled || entry.retry) return
    if (entry.verb !== undefined && !overtakes(entry)) return
    const outcome = this.#reached(entry, known)
    if (outcome !== undefined) {
      this.#settle(entry, outcome, known)
      return
    }
    const { assignment } = entry
    const verb = verbTo[assignment.target]
    entry.verb = verb
    entry.mayHaveCopy ||= isFork(assignment)
    const isWanted = () => !this.#isClosed && entry.assignment === assignment
    this.#turns.take(verb, assignment, isWanted, () => this.#perform(entry, verb))
  }

  /** Returns the report for control if the assignment needs no verb. Undefined if the host must run a verb first. */
  #reached({ assignment, mayBeUnborn, verb, attempts, mayHaveCopy }: Entry, known?: SandboxState): Outcome | undefined {
    const { sandboxId, target, generation } = assignment
    const held = this.#host.get(sandboxId)
    // Even if the host does not list the sandbox, parts of it may exist: an archive, an unfinished copy, or remains of a failed
    // removal.
    const mayHaveParts = assignment.archive !== undefined || verb !== undefined || attempts > 0 || mayHaveCopy
    if (target === 'destroyed') return held || mayHaveParts ? undefined : { state: 'destroyed' }
    if (!held) {
      if (target === 'started') return undefined
      if (target !== 'paused' && assignment.archive?.sha256 !== undefined)
        return { state: 'archived', ...(target === 'archived' ? {} : { refused: stillArchived }) }
      return mayBeUnborn
        ? { state: 'stopped' }
        : { state: 'destroyed', errorReason: 'The sandbox is not on this runner.' }
    }
    const { status, cause, refused, archive } = held
    const isThisGeneration = held.assignment.generation === generation
    // If control believes that the sandbox runs, the assignment requests no start. Exception: a newer assignment, such as a claim,
    // may start an ended warm sandbox, which nobody has used yet.
    const isChanged = assignment.isRunning && !held.assignment.isWarm
    // True if the sandbox was already in the state `target`, and ended later. Otherwise the assignment requests a new start.
    const wasReached = isThisGeneration || known === target || isChanged
    // A sandbox that ended by itself stays stopped until somebody requests a start.
    if (runs(target) && wasReached && status === 'stopped' && cause) return ended(cause)
    if (!isThisGeneration) return undefined
    // A verb has failed, perhaps in an earlier runner. If control knows of the failure, only a newer assignment causes a retry.
    if (status === 'error') return known === 'error' ? { state: 'error' } : undefined
    if (refused !== undefined) return { state: status, refused }
    if (status !== target) return undefined
    return { state: target, ...(target === 'archived' && archive ? { archive } : {}) }
  }

  async #perform(entry: Entry, verb: Verb): Promise<void> {
    const { assignment } = entry
    const isCurrent = () => entry.assignment.generation === assignment.generation
    // While the verb was in the queue, a newer assignment may have arrived, which may need a different verb.
    const isWanted = verbTo[assignment.target] === verb && !entry.isLeft
    let failure: { error: unknown } | undefined
    if (!this.#isClosed && isWanted) {
      try {
        await followVerb(assignment, verb, () =>
          verb === 'destroy'
            ? this.#host.destroy(assignment.sandboxId, assignment.archive ? 'with archives' : undefined)
            : this.#host[verb](assignment, (progress) => this.#say(entry, assignment, progress)),
        )
      } catch (error) {
        failure = { error }
      }
    }
    if (entry.verb === verb) delete entry.verb
    if (entry.isLeft) this.#entries.delete(assignment.sandboxId)
    else if (!isWanted || !isCurrent()) this.#reconcile(entry)
    else if (failure) this.#failed(entry, verb, failure.error)
    else if (!entry.settled) {
      const isGone = verb === 'destroy'
      this.#settle(entry, (isGone ? undefined : this.#reached(entry)) ?? { state: assignment.target })
    }
  }

  #say(entry: Entry, { sandboxId, generation }: Assignment, progress: Progress) {
    const now = this.#now()
    if (this.#isClosed || entry.assignment.generation !== generation || now - entry.progressAt < progressEveryMs) return
    entry.progressAt = now
    this.#onProgress(sandboxId, generation, progress)
  }

  #failed(entry: Entry, verb: Verb, error: unknown) {
    const { sandboxId, generation } = entry.assignment
    const waitMs = this.#retryMs[entry.attempts]
    entry.attempts += 1
    const isFaultInside = error instanceof FaultInside
    const said = { err: error, sandboxId, generation, verb, attempts: entry.attempts }
    this.#log[isFaultInside ? 'info' : 'warn'](said, 'a verb failed')
    // A failed verb is tried two more times. A failed destroy is tried until it succeeds.
    const isOwed = verb === 'destroy'
    if (!isOwed && (entry.attempts > 2 || isFaultInside || error instanceof NotRecoverable)) {
      this.#settle(entry, this.#givenUp(entry, verb, error))
      return
    }
    if (this.#isClosed) return
    entry.retry = setTimeout(
      () => {
        delete entry.retry
        this.#reconcile(entry)
      },
      waitMs ?? this.#retryMs.at(-1) ?? 1000,
    )
  }

  #givenUp({ assignment }: Entry, verb: Verb, error: unknown): Outcome {
    const reason = sentenceOf(error)
    const status = this.#host.get(assignment.sandboxId)?.status
    const recoverable = !(error instanceof NotRecoverable)
    // A failed pause leaves the sandbox running, and a failed archive leaves its disk. The state is then not `error`.
    const isWell = (verb === 'pause' && status === 'started') || (verb === 'archive' && status === 'stopped')
    if (recoverable && isWell) return { state: status, refused: reason }
    return { state: 'error', errorReason: reason, recoverable }
  }

  #settle(entry: Entry, outcome: Outcome, known?: SandboxState) {
    const { sandboxId, generation } = entry.assignment
    entry.settled = { sandboxId, generation, ...outcome }
    entry.settledAt = this.#now()
    entry.mayBeUnborn = false
    if (known !== outcome.state) this.#report(entry.settled)
  }

  #onExit(sandboxId: string, cause: Cause) {
    const entry = this.#entries.get(sandboxId)
    // A running or queued verb reports its own result. No report is needed if the sandbox should have no processes.
    if (!entry || entry.verb !== undefined || !runs(entry.assignment.target)) return
    this.#settle(entry, ended(cause))
  }

  /** Removes a sandbox that control has omitted from its lists for the whole grace period. */
  #remove(sandboxId: string) {
    this.#log.warn({ sandboxId }, 'control does not know this sandbox: it is removed')
    void this.#turns.remove(async () => {
      if (this.#isClosed || this.#entries.has(sandboxId)) return
      await this.#host
        .destroy(sandboxId)
        .catch((error) => this.#log.error({ err: error, sandboxId }, 'could not be removed'))
    })
  }

  [Symbol.dispose]() {
    this.#isClosed = true
    for (const { retry } of this.#entries.values()) clearTimeout(retry)
  }
}

/** Returns whether a sandbox with this target has processes. In a paused sandbox, the processes are frozen. */
const runs = (target: Target) => target === 'started' || target === 'paused'

/**
 * Returns the state of a sandbox that ended by itself: `error` after a signal or a lack of memory, otherwise `stopped`, because its
 * programs may have wanted to end.
 */
const ended = (cause: Cause): Outcome =>
  cause.oomKilled || cause.signal !== undefined
    ? { state: 'error', errorReason: cause.detail ?? 'It was killed.', recoverable: true, cause }
    : { state: 'stopped', cause }

/** Whether a new assignment may interrupt the running verb. An archive may wait long for the store, and a stop for processes. */
const overtakes = ({ verb, assignment: { target, signal } }: Entry) => {
  if (target === 'destroyed') return verb !== 'destroy'
  if (verb === 'archive') return target !== 'archived'
  return verb === 'stop' && target === 'stopped' && signal === 'SIGKILL'
}
