// Shows how much time the agent, the runner and the gate each add to one command, and the processor time of each program. Each turn
// runs the command through all layers, so other load on the machine affects all results equally.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Pool } from 'undici'
import { runDirectoryOf } from '#src/kit/instance.ts'
import { placesOf, socketOf } from '#src/runner/machine/places.ts'
import { agentAt } from '#src/toolbox/agent/agent.ts'
import { dataDirectoryAt } from '#src/up/data-directory.ts'
import { findRunningUp } from '#src/up/state-file.ts'
import type { Box } from '#test/sandboxes/box.ts'
import { median, type Samples, say, timed } from './samples.ts'

/** The command that is measured. It is a program that needs no shell. */
export const command = ['true'] as const

const perTurn = 20

/** Measures the command without Alcove. The function `posix_spawn` copies no memory, so it is the fastest start. */
export const commandAlone = async (box: Box, times: number): Promise<Samples> => {
  const script = `import os, time
for _ in range(${times}):
  t = time.perf_counter()
  os.waitpid(os.posix_spawnp("${command[0]}", ${JSON.stringify(command)}, os.environ), 0)
  print((time.perf_counter() - t) * 1000)`
  return (await box.run(`python3 -c '${script}'`)).split('\n').map(Number)
}

/** Returns the processor time of all threads of a process, in milliseconds. The scheduler counts it in nanoseconds. */
const processorMs = (pid: number): number =>
  readdirSync(`/proc/${pid}/task`)
    .map((task) => Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ')[0]) / 1e6)
    .reduce((sum, ms) => sum + ms, 0)

const pidsOf = (data: string, agentPid: number) => {
  const programs = findRunningUp(dataDirectoryAt(data).stateFile)?.programs ?? []
  const pidOf = (wanted: string) => programs.find(({ name }) => name === wanted)!.pid
  return { gate: pidOf('gate'), runner: pidOf('runner'), agent: agentPid, client: process.pid }
}

export type ExecTrace = { wall: Record<Layer, Samples>; processor: Record<Spender, number> }
type Layer = 'command' | 'agent' | 'runner' | 'gate'
type Spender = 'agent' | 'runner' | 'gate' | 'client'

/**
 * Measures a command four times: alone, through the agent, through the runner, and through the gate. The function `execute` runs
 * the command through the gate. `data`: the server's data directory.
 */
export const traceExec = async (
  { data, agentPid, turns }: { data: string; agentPid: number; turns: number },
  box: Box,
  execute: () => Promise<unknown>,
): Promise<ExecTrace> => {
  const { instance, runnerSocket } = dataDirectoryAt(data)
  const agent = agentAt(socketOf(placesOf(instance, join(runDirectoryOf(instance), 'unused')), box.id))
  const runner = new Pool('http://runner', { socketPath: runnerSocket, connections: 1 })
  const headers = { 'content-type': 'application/json' }
  const through: Record<Exclude<Layer, 'command'>, () => Promise<unknown>> = {
    agent: async () => {
      const running = await agent.exec({ argv: command, env: {}, user: String(box.record['user']), mergeOutput: true })
      for await (const _ of running);
      await running.exit
    },
    runner: async () => {
      const path = `/toolbox/${box.id}/process/execute`
      const reply = await runner.request({
        method: 'POST',
        path,
        headers,
        body: JSON.stringify({ command: command.join(' ') }),
      })
      const answer = await reply.body.text()
      if (reply.statusCode !== 200) throw new Error(answer)
    },
    gate: execute,
  }
  const pids = pidsOf(data, agentPid)
  const wall: ExecTrace['wall'] = { command: [], agent: [], runner: [], gate: [] }
  const processor: ExecTrace['processor'] = { agent: 0, runner: 0, gate: 0, client: 0 }
  const spent = (sign: 1 | -1) => {
    for (const [name, pid] of Object.entries(pids)) processor[name as Spender] += sign * processorMs(pid)
  }
  for (let turn = 0; turn < turns; turn++) {
    wall.command.push(...(await commandAlone(box, perTurn)))
    for (const [name, run] of Object.entries(through)) {
      // The first run through a layer is not measured: the CPU caches still contain the data of the previous layer.
      await run()
      if (name === 'gate') spent(-1)
      for (let round = 0; round < perTurn; round++) wall[name as Layer].push(await timed(run))
      if (name === 'gate') spent(1)
    }
  }
  for (const name of Object.keys(processor)) processor[name as Spender] /= wall.gate.length
  await runner.close()
  return { wall, processor }
}

export const sayTrace = ({ wall, processor }: ExecTrace): string => {
  const above = (layer: Layer, below: Layer) =>
    `+${(median(wall[layer]) - median(wall[below])).toFixed(2)} ms`.padEnd(12)
  const cpu = (name: Spender) => `${name} ${processor[name].toFixed(2)} ms`
  return [
    'one exec, layer by layer (what each adds to the median; processor time per exec):',
    `  the command itself              ${say(wall.command)}`,
    `  agent (fork, user, exec, wait)  ${above('agent', 'command')} ${cpu('agent')}, its child until exec not counted`,
    `  runner (HTTP, its meaning)      ${above('runner', 'agent')} ${cpu('runner')}`,
    `  gate (access, forwarding)       ${above('gate', 'runner')} ${cpu('gate')}, ${cpu('client')}`,
    `  in all                          ${say(wall.gate)}`,
  ].join('\n')
}
