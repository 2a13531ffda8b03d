// Measures what idle sandboxes cost: the memory of the host, and the processor time of Alcove's programs. `node bench/idle.ts
// [sandboxes] [seconds] [wait]`, as root.
import { readFileSync } from 'node:fs'
import { createBox, until } from '#test/sandboxes/box.ts'
import { type Program, platform } from '#test/sandboxes/harness.ts'
import { type Made, openClient } from './client.ts'
import { agentPids, proportionalBytes } from './memory.ts'
import { compare, keep, type Samples, timed, whenAsked } from './samples.ts'

const [count = 1000, seconds = 60] = process.argv
  .slice(2)
  .filter((word) => word !== 'wait')
  .map(Number)
const callers = 4
const programs = ['control', 'gate', 'runner', 'postgres', 'ssh-gateway'] as const

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Fields of /proc/meminfo about the kernel's own memory. Processes outside of Alcove change them only a little. */
const kernelFields = ['SUnreclaim', 'KernelStack', 'PageTables', 'Percpu', 'SReclaimable'] as const
const kernelMiB = () => {
  const text = readFileSync('/proc/meminfo', 'utf8')
  const field = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0) / 1024
  return Object.fromEntries([...kernelFields, 'MemAvailable'].map((name) => [name, field(name)]))
}

const overcommit = [count, count, count * 4].map((times) => Math.max(times, 64)).join(',')
await using alcove = await platform({ own: true, env: { ALCOVE_OVERCOMMIT: overcommit, ALCOVE_MOST_WARM: '0' } })
const http = openClient(alcove)

const childrenOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)

/** Returns the processor seconds that a program has used. For PostgreSQL, this is the sum of all its processes. */
const processorSeconds = async (program: Program) => {
  const pid = await alcove.pidOf(program)
  const all = program === 'postgres' ? [pid, ...childrenOf(pid)] : [pid]
  return all.reduce((sum, each) => {
    const fields = readFileSync(`/proc/${each}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
    return sum + (Number(fields[11]) + Number(fields[12])) / 100
  }, 0)
}

/** Returns for each program how many ms of processor time it uses in a minute. */
const idleCost = async () => {
  const before = await Promise.all(programs.map(processorSeconds))
  await pause(seconds * 1000)
  const after = await Promise.all(programs.map(processorSeconds))
  return Object.fromEntries(
    programs.map((name, at) => [name, Math.round(((after[at]! - before[at]!) * 60_000) / seconds)]),
  )
}

const residentMiB = async () =>
  Object.fromEntries(await Promise.all(programs.map(async (name) => [name, (await alcove.memoryOf(name)) / 2 ** 20])))

const made: string[] = []
const create = async () => {
  while (made.length < count) {
    const at = made.push('') - 1
    made[at] = (await http.post('/sandbox', { autoStopInterval: 0 })).id
  }
}

try {
  const first = await createBox(alcove)
  // Makes calls that are not measured, because a server that has just started still compiles its code.
  for (let round = 0; round < 200; round++) await http.execute(first.record as Made)
  await http.remove(first.id)
  await pause(2000)
  const emptyCost = await idleCost()
  const empty = { kernel: kernelMiB(), resident: await residentMiB() }
  const creating = await timed(() => Promise.all(Array.from({ length: callers }, create)))
  const perSecond = count / (creating / 1000)
  console.log(`${count} created, ${perSecond.toFixed(1)} per second`)
  await whenAsked()
  await pause(3000)
  const cost = await idleCost()
  const full = { kernel: kernelMiB(), resident: await residentMiB() }
  const agents = agentPids().map(proportionalBytes)
  const agentMiB = agents.reduce((sum, bytes) => sum + bytes, 0) / agents.length / 2 ** 20
  const each = (now: Record<string, number>, before: Record<string, number>) =>
    Object.fromEntries(Object.keys(now).map((name) => [name, (now[name]! - before[name]!) / count]))
  const kernel = each(full.kernel, empty.kernel)
  const resident = each(full.resident, empty.resident)
  const held = kernelFields.reduce((sum, name) => sum + kernel[name]!, 0)
  const exec: Samples = []
  for (const id of made.slice(0, 50)) {
    const record = (await alcove.api('GET', `/sandbox/${id}`)).body as unknown as Made
    exec.push(await timed(() => http.execute(record)))
  }
  console.log(`MiB for each of ${count} idle sandboxes:`)
  console.log(`  agent     ${agentMiB.toFixed(3)} (its own pages and its share of those in common)`)
  for (const name of programs) console.log(`  ${name.padEnd(9)} ${resident[name]!.toFixed(3)}`)
  console.log(
    `  kernel    ${held.toFixed(3)}, by ${kernelFields.map((name) => `${name} ${kernel[name]!.toFixed(3)}`).join(', ')}`,
  )
  console.log(`  less available on the host: ${(-kernel['MemAvailable']!).toFixed(2)}`)
  console.log('processor time while idle, ms per minute:')
  for (const name of programs) console.log(`  ${name.padEnd(9)} ${cost[name]} (${emptyCost[name]} without any)`)
  console.log(compare('exec among them', exec))
  // The results are written before the sandboxes are removed, because the removal takes long and may fail.
  const facts = { count, perSecond, agentMiB, kernel, resident, seconds, emptyCost, cost, empty, full, exec }
  console.log(keep('idle', facts))
  const removal = await timed(async () => {
    for (let at = 0; at < made.length; at += 20) await Promise.all(made.slice(at, at + 20).map((id) => http.remove(id)))
    await until('all are gone', async () => (await alcove.leftovers()).length === 0, 300)
  })
  console.log(`all deleted in ${(removal / 1000).toFixed(1)} s`)
} finally {
  await http.close()
}
