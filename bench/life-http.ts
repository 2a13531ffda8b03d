// The life of sandboxes as a client meets it, through HTTP: warm creates, pause and resume, forks of disks of three sizes, a
// burst of creates, and a thousand idle ones. `node bench/life-http.ts [rounds] [idle]`, as root.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createBox, until } from '#test/sandboxes/box.ts'
import { type Program, platform } from '#test/sandboxes/harness.ts'
import { type Made, openClient } from './client.ts'
import { command } from './exec-trace.ts'
import { agentPids, proportionalBytes } from './memory.ts'
import { openRawCrun } from './raw-crun.ts'
import { compare, keep, type Samples, say, timed } from './samples.ts'

const rounds = Number(process.argv[2] ?? 30)
const idle = Number(process.argv[3] ?? 1000)
const burst = 100

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
const kilobytes = (name: string) =>
  Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(readFileSync('/proc/meminfo', 'utf8'))?.[1])

await using alcove = await platform({ own: true, env: { ALCOVE_OVERCOMMIT: '2000,200,2000', ALCOVE_MOST_WARM: '0' } })
const http = openClient(alcove)
const facts: Record<string, unknown> = {}

const firstExec = async (make: () => Promise<Made>) => {
  let made: Made | undefined
  const ms = await timed(async () => {
    made = await make()
    await http.execute(made)
  })
  return { ms, made: made as Made }
}

const raw = await (async () => {
  const first = await createBox(alcove)
  const runner = join(alcove.data, 'runner')
  const pool = existsSync(join(runner, 'pool', 'images')) ? join(runner, 'pool') : runner
  const hybrid = '/sys/fs/cgroup/unified'
  const rootfs = join(pool, 'images', 'default', 'rootfs')
  const { id } = first
  // A server that has just started still compiles what it runs.
  for (let round = 0; round < 100; round++) await http.execute(first.record as Made)
  return await openRawCrun(
    join(runner, 'sandboxes', id),
    rootfs,
    join(pool, 'bench'),
    existsSync(hybrid) ? hybrid : '',
    command,
  )
})()

const measureWarm = async () => {
  const { body } = await alcove.api('POST', '/warm-pools', { snapshot: 'default', pool: 4 })
  const ready = async () =>
    ((await alcove.api('GET', '/warm-pools')).body as unknown as { currentSize: number }[])[0]?.currentSize === 4
  const warm: Samples = []
  const cold: Samples = []
  for (let round = 0; round < rounds; round++) {
    await until('the pool is full', ready, 60)
    await pause(300)
    const { ms, made } = await firstExec(http.create)
    warm.push(ms)
    await http.remove(made.id)
  }
  await alcove.api('DELETE', `/warm-pools/${String(body['id'])}`)
  await pause(3000)
  for (let round = 0; round < rounds; round++) {
    await pause(300)
    const { ms, made } = await firstExec(http.create)
    cold.push(ms)
    await http.remove(made.id)
  }
  console.log(compare('warm create to first exec', warm, { name: 'cold', samples: cold }))
  console.log(compare('cold create to first exec', cold))
  facts['create'] = { warm, cold }
}

const measurePause = async () => {
  const box = await createBox(alcove, { autoStopInterval: 0 })
  await box.run("setsid bash -c 'while :; do :; done' >/dev/null 2>&1 &")
  const samples: Record<'pause' | 'resume' | 'floor', Samples> = { pause: [], resume: [], floor: [] }
  const become = async (verb: string, state: string) => {
    let made = await http.post(`/sandbox/${box.id}/${verb}`)
    while (made.state !== state) made = (await alcove.api('GET', `/sandbox/${box.id}`)).body as unknown as Made
  }
  for (let round = 0; round < rounds * 2; round++) {
    samples.pause.push(await timed(() => become('pause', 'paused')))
    samples.resume.push(await timed(() => become('start', 'started')))
    samples.floor.push(await timed(() => http.post(`/sandbox/${box.id}/backup`)))
  }
  await http.remove(box.id)
  console.log(compare('pause', samples.pause, { name: 'a call that does nothing', samples: samples.floor }))
  console.log(compare('resume', samples.resume, { name: 'a call that does nothing', samples: samples.floor }))
  facts['pause'] = samples
}

const measureForks = async () => {
  const all: Record<string, Samples> = {}
  for (const megabytes of [10, 100, 1024]) {
    const parent = await createBox(alcove, { autoStopInterval: 0, disk: 8, memory: 2 })
    await parent.run(`head -c ${megabytes}M /dev/urandom > ~/big && sync`, { timeout: 300 })
    const samples: Samples = []
    for (let round = 0; round < Math.ceil(rounds / 2); round++) {
      await pause(200)
      const { ms, made } = await firstExec(() => http.post(`/sandbox/${parent.id}/fork`))
      samples.push(ms)
      await http.remove(made.id)
    }
    await http.remove(parent.id)
    all[`${megabytes} MB`] = samples
    console.log(
      compare(`fork of ${megabytes} MB to first exec`, samples, { name: 'of 10 MB', samples: all['10 MB'] as Samples }),
    )
  }
  facts['fork'] = all
}

const measureBurst = async () => {
  const cgroups = async () => (await alcove.leftovers()).filter((line) => line.startsWith('cgroup')).length
  const before = await cgroups()
  const ours = await Promise.all(Array.from({ length: burst }, () => firstExec(http.create)))
  await Promise.all(ours.map(({ made }) => http.remove(made.id)))
  await until('they are gone', async () => (await cgroups()) <= before, 120)
  await pause(2000)
  const theirs = await Promise.all(
    Array.from({ length: burst }, (_, index) => timed(() => raw.createAndExec(`burst-${index}`))),
  )
  for (let index = 0; index < burst; index++) await raw.remove(`burst-${index}`)
  const samples = ours.map(({ ms }) => ms)
  console.log(compare(`${burst} creates at once`, samples, { name: 'raw crun', samples: theirs }))
  console.log(`${`${burst} raw crun at once`.padEnd(34)} ${say(theirs)}`)
  facts['burst'] = { ours: samples, crun: theirs }
}

/** Seconds of processor time that a program has used. */
const processorSeconds = async (program: Program) => {
  const pid = await alcove.pidOf(program)
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / 100
}

const measureIdle = async () => {
  const programs = ['control', 'proxy', 'runner', 'postgres'] as const
  const memory = async () =>
    Object.fromEntries(await Promise.all(programs.map(async (name) => [name, await alcove.memoryOf(name)])))
  await pause(3000)
  const before = { available: kilobytes('MemAvailable'), programs: await memory() }
  const made: string[] = []
  const began = performance.now()
  await Promise.all(
    Array.from({ length: 4 }, async () => {
      while (made.length < idle) {
        const at = made.push('') - 1
        made[at] = (await http.post('/sandbox', { autoStopInterval: 0 })).id
      }
    }),
  )
  const perSecond = made.length / ((performance.now() - began) / 1000)
  await pause(10_000)
  const cpuBefore = await Promise.all(programs.map(processorSeconds))
  await pause(30_000)
  const cpuAfter = await Promise.all(programs.map(processorSeconds))
  const after = { available: kilobytes('MemAvailable'), programs: await memory() }
  const share = Object.fromEntries(
    programs.map((name, index) => [name, ((cpuAfter[index]! - cpuBefore[index]!) / 30) * 100]),
  )
  const agents = agentPids().map(proportionalBytes)
  const agentMiB = agents.reduce((sum, bytes) => sum + bytes, 0) / agents.length / 2 ** 20
  const hostMiB = (before.available - after.available) / 1024 / made.length
  const exec: Samples = []
  for (const id of made.slice(0, 50)) {
    const record = (await alcove.api('GET', `/sandbox/${id}`)).body as unknown as Made
    exec.push(await timed(() => http.execute(record)))
  }
  console.log(
    `${made.length} idle sandboxes: ${hostMiB.toFixed(2)} MiB of the host each, of that agent ${agentMiB.toFixed(3)} MiB; ${perSecond.toFixed(1)} creates per second`,
  )
  for (const name of programs) {
    const grown = ((after.programs[name] as number) - (before.programs[name] as number)) / 2 ** 20
    console.log(
      `  ${name.padEnd(9)} ${(share[name] as number).toFixed(1)} % of one processor, ${grown.toFixed(1)} MiB more`,
    )
  }
  console.log(compare('exec among them', exec))
  facts['idle'] = { sandboxes: made.length, perSecond, hostMiB, agentMiB, processorPercent: share, before, after, exec }
  const removal = await timed(async () => {
    for (let at = 0; at < made.length; at += 50) await Promise.all(made.slice(at, at + 50).map((id) => http.remove(id)))
    await until('all are gone', async () => agentPids().length <= 1, 300)
  })
  console.log(`all deleted in ${(removal / 1000).toFixed(1)} s`)
}

try {
  await measureWarm()
  await measurePause()
  await measureForks()
  await measureBurst()
  if (idle > 0) await measureIdle()
  console.log(keep('life-http', facts))
} finally {
  await raw[Symbol.asyncDispose]()
  await http.close()
}
