// The sandboxes of this host, as the runners of this host report them. Usually there is one runner; an operator can add more.
import type { Logger } from '#src/kit/log.ts'
import { Problem } from '#src/problems.ts'
import type { Access } from '#src/wire/access.ts'
import type { SandboxHere } from '#src/wire/gate-link.ts'
import { RunnerLink } from './runner-link.ts'

/** A sandbox to which control has allowed a call, with the fields of control's answer. */
export type AdmittedSandbox = Pick<Access, 'sandboxId' | 'runnerAddress' | 'isStarted' | 'leastGeneration'>

export type SandboxPlace = { sandbox: SandboxHere | undefined; link: RunnerLink }

const mostRunners = 64
/**
 * Milliseconds for which a call waits until the runner reports the required generation. A runner that must first connect to
 * control needs a second or two.
 */
const takenMs = 10_000
/**
 * If control says that a sandbox is started, a call waits this many milliseconds until the runner says so too. The runner
 * reports to control and to the gate at the same time, so a short wait suffices.
 */
const newsMs = 500
/**
 * If the gate has no connection to the runner, a call for an unknown sandbox waits this many milliseconds: the runner may
 * be starting.
 */
const runnerMs = 3000

export class Sandboxes implements Disposable {
  readonly #log: Logger
  readonly #links = new Map<string, RunnerLink>()

  constructor(log: Logger) {
    this.#log = log
  }

  /**
   * Returns the `RunnerLink` for a runner: its last reports, and a way to send it requests. `address`: from control, in
   * the form `unix:/path`.
   */
  linkTo(address: string): RunnerLink {
    const known = this.#links.get(address)
    if (known !== undefined) return known
    if (!address.startsWith('unix:/')) {
      throw new Problem('bad_gateway', undefined, { cause: 'the runner of this sandbox is on another host' })
    }
    if (this.#links.size >= mostRunners) this.#forgetOne()
    const link = new RunnerLink(address.slice('unix:'.length), this.#log)
    this.#links.set(address, link)
    return link
  }

  #forgetOne() {
    const [address, link] = [...this.#links].find(([, { isCurrent }]) => !isCurrent) ?? []
    if (address === undefined || link === undefined) throw new Problem('unavailable', 'This host has too many runners.')
    link[Symbol.dispose]()
    this.#links.delete(address)
  }

  /**
   * Finds the sandbox as its runner reports it, once the runner has the generation that control named. When a warm sandbox
   * is claimed, control knows its owner before the runner does. Meanwhile no call may reach the sandbox
   * (docs/adr/0014-warm-pools-follow-demand.md).
   */
  async find({ sandboxId, runnerAddress, isStarted, leastGeneration = 0 }: AdmittedSandbox): Promise<SandboxPlace> {
    const link = this.linkTo(runnerAddress)
    const since = performance.now()
    for (;;) {
      const sandbox = link.get(sandboxId)
      const passed = performance.now() - since
      const isOld = sandbox !== undefined && sandbox.assignment.generation < leastGeneration
      const isAwaited = isStarted && sandbox?.status !== 'started'
      if (!isOld && !isAwaited) return { sandbox, link }
      if (isOld && passed >= takenMs) {
        throw new Problem('unavailable', 'The sandbox is being made ready; try again.')
      }
      if (!isOld && passed >= newsMs) {
        if (link.isCurrent || sandbox !== undefined) return { sandbox, link }
        if (passed >= runnerMs)
          throw new Problem('unavailable', 'The runner of this sandbox does not answer; try again.')
      }
      await link.untilChanged(sandboxId, Math.max(1, (isOld ? takenMs : passed < newsMs ? newsMs : runnerMs) - passed))
    }
  }

  [Symbol.dispose]() {
    for (const link of this.#links.values()) link[Symbol.dispose]()
  }
}
