// Measures a create with its first command, one command, an idle sandbox, and creates per second. Podman and crun do this work in
// the same run, for comparison. `node bench/sandboxes.ts [n]`, as root.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { runCommand } from '#src/kit/run-command.ts'
import { createBox } from '#test/sandboxes/box.ts'
import { platform } from '#test/sandboxes/harness.ts'
import { openClient } from './client.ts'
import { command, commandAlone, sayTrace, traceExec } from './exec-trace.ts'
import { agentPids, proportionalBytes } from './memory.ts'
import { openPodman } from './podman.ts'
import { openRawCrun } from './raw-crun.ts'
import { compare, keep, median, type Samples, say, timed } from './samples.ts'

const rounds = Number(process.argv[2] ?? 30)
const idleBoxes = 50

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

const alcove = await platform({ own: true })
const http = openClient(alcove)
try {
  const first = await createBox(alcove)
  const runner = join(alcove.data, 'runner')
  const hybrid = '/sys/fs/cgroup/unified'
  const pool = existsSync(join(runner, 'pool', 'images')) ? join(runner, 'pool') : runner
  const raw = await openRawCrun(
    join(runner, 'sandboxes', first.id),
    join(pool, 'images', 'default', 'rootfs'),
    join(pool, 'bench'),
    existsSync(hybrid) ? hybrid : '',
    command,
  )
  const podman = await openPodman(join(pool, 'images', 'default', 'rootfs'), command)

  const cold: Record<'alcove' | 'crun' | 'podman', Samples> = { alcove: [], crun: [], podman: [] }
  for (let round = 0; round < rounds; round++) {
    // Real creates do not come directly one after the other. Without the pause, the kernel's cgroup locks would be faster.
    await pause(300)
    let made: { id: string; toolboxProxyUrl: string } | undefined
    cold.alcove.push(
      await timed(async () => {
        made = await http.create()
        await http.execute(made)
      }),
    )
    await http.remove(made!.id)
    await pause(300)
    cold.crun.push(await timed(() => raw.createAndExec(`raw-${round}`)))
    await raw.remove(`raw-${round}`)
    if (podman !== undefined && round < 10) {
      await pause(300)
      cold.podman.push(await timed(() => podman.runOnce()))
    }
  }
  console.log(compare('create to first exec, Alcove', cold.alcove, { name: 'raw crun run + exec', samples: cold.crun }))
  console.log(compare('create to first exec, raw crun', cold.crun))
  if (podman) console.log(compare('podman run', cold.podman, { name: 'Alcove', samples: cold.alcove }))

  const exec: Record<'alcove' | 'inside' | 'crun' | 'podman', Samples> = {
    alcove: [],
    inside: [],
    crun: [],
    podman: [],
  }
  await raw.createAndExec('raw-exec')
  if (podman) await podman.start()
  // Each program gets a series of its own. Otherwise one program would push the next one's data out of the CPU caches.
  const repeat = async (samples: Samples, times: number, work: () => Promise<unknown>) => {
    for (let round = 0; round < times; round++) samples.push(await timed(work))
  }
  const executeOnce = () => http.execute(first.record as { id: string; toolboxProxyUrl: string })
  // Makes calls that are not measured, because a server that has just started still compiles its code.
  await repeat([], 1000, executeOnce)
  // Measures the lower bound (the command alone) before and after the calls over HTTP.
  // So a change in the machine's speed affects the lower bound and the calls alike.
  exec.inside.push(...(await commandAlone(first, 100)))
  await repeat(exec.alcove, rounds * 3, executeOnce)
  exec.inside.push(...(await commandAlone(first, 100)))
  await repeat(exec.crun, rounds * 3, () => raw.exec('raw-exec'))
  if (podman) await repeat(exec.podman, 20, () => podman.exec())
  console.log(compare('exec round trip, Alcove', exec.alcove, { name: 'crun exec', samples: exec.crun }))
  console.log(`${'the command itself, inside'.padEnd(34)} ${say(exec.inside)}`)
  console.log(`${'above the command'.padEnd(34)} ${(median(exec.alcove) - median(exec.inside)).toFixed(2)} ms`)
  console.log(compare('crun exec', exec.crun))
  if (podman) console.log(compare('podman exec', exec.podman, { name: 'Alcove', samples: exec.alcove }))
  const agentPid = agentPids().find((pid) => readFileSync(`/proc/${pid}/cgroup`, 'utf8').includes(first.id))
  if (agentPid === undefined) throw new Error('the agent of the first sandbox is not found')
  const trace = await traceExec({ data: alcove.data, agentPid, turns: Math.ceil(rounds / 3) }, first, executeOnce)
  console.log(sayTrace(trace))
  await raw.remove('raw-exec')
  await podman?.[Symbol.asyncDispose]()

  const rates: Record<number, number> = {}
  for (const callers of [1, 8]) {
    const each = callers === 1 ? rounds : Math.ceil((rounds * 2) / callers)
    const made: string[] = []
    const began = performance.now()
    await Promise.all(
      Array.from({ length: callers }, async () => {
        for (let index = 0; index < each; index++) made.push((await http.create()).id)
      }),
    )
    rates[callers] = made.length / ((performance.now() - began) / 1000)
    await Promise.all(made.map((id) => http.remove(id)))
    console.log(`creates per second, ${callers} caller(s)`.padEnd(35) + rates[callers].toFixed(1))
  }

  await pause(2000)
  const runnerBefore = await alcove.memoryOf('runner')
  const boxes = []
  for (let index = 0; index < idleBoxes; index++) boxes.push(await http.create())
  await pause(2000)
  const runnerShare = ((await alcove.memoryOf('runner')) - runnerBefore) / idleBoxes
  const agents = agentPids().map(proportionalBytes)
  const agent = agents.reduce((sum, bytes) => sum + bytes, 0) / agents.length
  const mib = (bytes: number) => `${(bytes / 1024 / 1024).toFixed(3)} MiB`
  console.log(`${'memory per idle sandbox'.padEnd(34)} agent ${mib(agent)}, runner ${mib(runnerShare)}`)
  await Promise.all(boxes.map(({ id }) => http.remove(id)))
  await raw[Symbol.asyncDispose]()
  const runtime = await runCommand(['crun', '--version'])
  const memory = { agentBytes: agent, runnerBytes: runnerShare, sandboxes: agents.length }
  console.log(keep('sandboxes', { runtime: runtime.split('\n')[0], cold, exec, trace, rates, memory }))
} finally {
  await http.close()
  await alcove[Symbol.asyncDispose]()
}
