// A new runner first compares the host with the journal. It adopts each sandbox that runs, and records the cause if a sandbox has
// ended. What belongs to sandboxes outside the journal is removed.
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
    // An archived sandbox's disk is in the object store. A disk on this host is left from an interrupted archive or restore.
    if (spec.status === 'archived') await machine.pool.remove(sandboxId)
    if (spec.status !== 'started') return { spec }
    machine.log.info({ sandboxId, cause }, 'ended while no runner looked')
    // An interrupted start gets no cause, because the sandbox did not end by itself. Without a cause, keeping/keeper.ts starts the
    // sandbox again if its assignment still asks for that.
    const wasStarted = run === undefined || run.pid !== undefined
    const stopped: Spec = { assignment: spec.assignment, status: 'stopped', ...(wasStarted ? { cause } : {}) }
    await machine.journal.writeSpec(sandboxId, stopped)
    return { spec: stopped }
  } catch (error) {
    // Only this sandbox gets the status `error`. Other sandboxes are still adopted.
    machine.log.error({ err: error, sandboxId }, 'could not be adopted')
    return { spec: { assignment: spec.assignment, status: 'error', errorReason: reasonOf(error) } }
  }
}

type Liveness = { isAlive: true; adopted: Adopted } | { isAlive: false; cause?: Cause }

/**
 * A sandbox is alive if PID 1 is the process in `run.json` and the network slot is complete. If an interrupted start left no PID in
 * `run.json`, the agent must answer instead. Otherwise the agent is not asked, because it may be paused.
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
  // Apply the policy again: firewall rules may have been deleted, and the new runner's DNS resolver does not know the allowed
  // domain names yet.
  const applied = machine.network.apply(slot, spec.assignment.network, spec.assignment.organizationId, sandboxId)
  if (!isComplete) {
    // The start was interrupted after the launch: complete it.
    await applied
    await placeTrust(machine, sandboxId, spec.assignment.authority)
    await startEntrypoint(machine, spec.assignment)
    await machine.journal.writeRun(sandboxId, { ...run, ...init })
  } else {
    // If the policy cannot be applied, the sandbox keeps running with the firewall rules that are in the kernel.
    await applied.catch((err: unknown) => machine.log.error({ err, sandboxId }, 'its policy could not be applied anew'))
  }
  if (started !== spec) await machine.journal.writeSpec(sandboxId, started)
  await adoptShown(machine, spec.assignment)
  const isPaused = await adoptPause(machine, sandboxId, run)
  return { isAlive: true, adopted: { spec: started, running: { init, slot, isPaused } } }
}

/**
 * Returns whether a sandbox is paused. If a sandbox is frozen but `run.json` does not say that it is paused, an earlier runner had
 * frozen it for a moment and was then killed. Such a sandbox is thawed.
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

/** Removes the remains of sandboxes that are not in the journal. Returns the ids of these sandboxes. */
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
      // The next start of a runner tries to remove the sandbox's remains again.
      machine.log.error({ err: error, id }, 'what no journal knows could not be removed')
    }
  })
  return [...unknown]
}
