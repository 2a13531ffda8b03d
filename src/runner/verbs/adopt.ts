// What a new runner does first: it compares the host with the journal. A sandbox in the journal that runs is adopted. A sandbox in
// the journal that has ended gets the status `stopped` and the cause of its end. Everything else that belongs to sandboxes is
// removed. All changes are logged.
import { readdir } from 'node:fs/promises'
import { inParallel } from '#src/kit/in-parallel.ts'
import { settlesWithin } from '#src/kit/settles-within.ts'
import { listCgroups } from '#src/runner/cgroup/cgroup.ts'
import type { Entry, Run, Spec } from '#src/runner/machine/journal.ts'
import { cgroupOf, type Machine, reasonOf } from '#src/runner/machine/machine.ts'
import { socketOf } from '#src/runner/machine/places.ts'
import { findInit } from '#src/runner/machine/processes.ts'
import type { Running } from '#src/runner/machine/running.ts'
import { adoptShown } from '#src/runner/shown/show.ts'
import { causeOfEnd } from '#src/runner/watching/causes.ts'
import type { Cause } from '#src/wire/runner-link.ts'
import { clearSandbox } from './clear.ts'
import { destroySandbox } from './destroy.ts'
import { startEntrypoint } from './entrypoint.ts'
import { placeTrust } from './trust.ts'

export type Adopted = { spec: Spec; running?: Running }

const atOnce = 8
const agentAnswersWithinMs = 5_000

export const adoptSandboxes = async (machine: Machine): Promise<Map<string, Adopted>> => {
  const { journal, log } = machine
  const adopted = new Map<string, Adopted>()
  await inParallel(atOnce, await journal.list(), async (sandboxId) => {
    const entry = await journal.read(sandboxId)
    if (entry !== undefined) adopted.set(sandboxId, await adoptOne(machine, sandboxId, entry))
  })
  const removed = await sweep(machine, new Set(adopted.keys()))
  const alive = [...adopted.values()].flatMap(({ running }) => running ?? [])
  const slots = await machine.network.sweep(new Set(alive.map(({ slot }) => slot.name)))
  log.info({ alive: alive.length, known: adopted.size, removed, slots }, 'looked at what is on this host')
  return adopted
}

const adoptOne = async (machine: Machine, sandboxId: string, entry: Entry): Promise<Adopted> => {
  const { spec, run } = entry
  try {
    const found = await findAlive(machine, sandboxId, entry)
    if (found.isAlive) return found.adopted

    const cause = found.cause ?? (await causeOfEnd(machine, spec.assignment.memoryGiB, run))
    // The network is not released here: a later call of `sweep` releases it together with other unused networks.
    await clearSandbox(machine, sandboxId, undefined)
    // The disk of an archived sandbox is in the object store. If there is also a disk on this host, an interrupted archive or
    // restore has left it, so it is removed.
    if (spec.status === 'archived') await machine.pool.remove(sandboxId)
    if (spec.status !== 'started') return { spec }
    machine.log.info({ sandboxId, cause }, 'ended while no runner looked')
    // A sandbox whose start was interrupted gets no cause, because it did not end by itself. The keeper (keeping/keeper.ts) starts
    // a sandbox without a cause again, if its assignment is still to run.
    const wasStarted = run === undefined || run.pid !== undefined
    const stopped: Spec = { assignment: spec.assignment, status: 'stopped', ...(wasStarted ? { cause } : {}) }
    await machine.journal.writeSpec(sandboxId, stopped)
    return { spec: stopped }
  } catch (error) {
    // If one sandbox cannot be adopted, only that sandbox gets the status `error`. The others are still adopted.
    machine.log.error({ err: error, sandboxId }, 'could not be adopted')
    return { spec: { assignment: spec.assignment, status: 'error', errorReason: reasonOf(error) } }
  }
}

type Liveness = { isAlive: true; adopted: Adopted } | { isAlive: false; cause?: Cause }

/**
 * Finds out whether a sandbox is alive: its PID 1 is the process that was started, and no part of its network (slot) is missing.
 * The agent is not asked, because the agent of a paused sandbox cannot answer.
 */
const findAlive = async (machine: Machine, sandboxId: string, { spec, run }: Entry): Promise<Liveness> => {
  if (run === undefined || run.bootId !== machine.bootId) return { isAlive: false }
  const init = await findInit(await cgroupOf(machine, sandboxId).pids())
  if (init === undefined) return { isAlive: false }
  const isComplete = run.pid !== undefined
  if (isComplete && (run.pid !== init.pid || run.startTime !== init.startTime)) return { isAlive: false }
  if (!isComplete && !(await agentAnswers(machine, sandboxId))) return { isAlive: false }
  const slot = machine.network.adopt(run.slot)
  if (slot === undefined) return { isAlive: false, cause: { detail: 'The network of the sandbox was gone.' } }

  const started: Spec = spec.status === 'started' ? spec : { assignment: spec.assignment, status: 'started' }
  // The network policy is applied again: somebody may have deleted firewall rules while no runner ran, and the new runner's DNS
  // resolver does not know yet which domain names the policy allows.
  const applied = machine.network.apply(slot, spec.assignment.network, spec.assignment.organizationId, sandboxId)
  if (!isComplete) {
    // The start was interrupted after the launch. Completes it: applies the network policy, runs the entrypoint, and writes
    // `run.json`.
    await applied
    await placeTrust(machine, sandboxId, spec.assignment.authority)
    await startEntrypoint(machine, spec.assignment)
    await machine.journal.writeRun(sandboxId, { ...run, ...init })
  } else {
    // If the network policy cannot be applied, the sandbox continues to run with the firewall rules that are in the kernel.
    await applied.catch((err: unknown) => machine.log.error({ err, sandboxId }, 'its policy could not be applied anew'))
  }
  if (started !== spec) await machine.journal.writeSpec(sandboxId, started)
  await adoptShown(machine, spec.assignment)
  const isPaused = await adoptPause(machine, sandboxId, run)
  return { isAlive: true, adopted: { spec: started, running: { init, slot, isPaused } } }
}

/**
 * Returns whether a sandbox is paused. If it is frozen although `run.json` does not say that it is paused, an earlier runner was
 * killed while it had frozen the sandbox for a moment. Such a sandbox is thawed.
 */
const adoptPause = async (machine: Machine, sandboxId: string, { isPaused = false }: Run): Promise<boolean> => {
  const cgroup = cgroupOf(machine, sandboxId)
  if (!(await cgroup.isFrozen())) return false
  if (isPaused) await cgroup.freeze()
  else await cgroup.thaw()
  return isPaused
}

const agentAnswers = ({ agentAt, places }: Machine, sandboxId: string) =>
  settlesWithin(agentAt(socketOf(places, sandboxId)).info(), agentAnswersWithinMs)

/**
 * Removes everything on the host that has the name of a sandbox which is not in the journal. Returns the names of these
 * sandboxes.
 */
const sweep = async (machine: Machine, known: ReadonlySet<string>): Promise<string[]> => {
  const { journal, pool, places, cgroups } = machine
  const withoutSpec = (await journal.list()).filter((id) => !known.has(id))
  const lists = await Promise.all([
    journal.listGone(),
    pool.list(),
    listCgroups(cgroups, places.cgroup),
    readdir(places.runtimeState),
    readdir(places.shown),
    readdir(places.sockets).then((names) => names.map((name) => name.replace(/\.sock$/, ''))),
  ])
  const unknown = new Set([...withoutSpec, ...lists.flat()].filter((id) => !known.has(id)))
  await inParallel(atOnce, [...unknown], async (id) => {
    try {
      await destroySandbox(machine, id, undefined, await journal.owesArchives(id))
    } catch (error) {
      // The error is only logged. When a runner starts again, it tries again to remove what is left of the sandbox.
      machine.log.error({ err: error, id }, 'what no journal knows could not be removed')
    }
  })
  return [...unknown]
}
