// Measures how long verbs take over HTTP: creates from a warm pool, pause and resume, forks of disks of three sizes, and many
// creates at the same time. `node bench/life-http.ts [rounds]`, as root. idle.ts measures a thousand idle sandboxes.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { createBox, until } from '#test/sandboxes/box.ts'
import { platform } from '#test/sandboxes/harness.ts'
import { type Made, openClient } from './client.ts'
import { command } from './exec-trace.ts'
import { openRawCrun } from './raw-crun.ts'
import { compare, keep, type Samples, say, timed } from './samples.ts'

const rounds = Number(process.argv[2] ?? 30)
const burst = 100

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

await using alcove = await platform({ own: true, env: { ALCOVE_OVERCOMMIT: '2000,200,2000', ALCOVE_MOST_WARM: '0' } })
const http = openClient(alcove)
const facts: Record<string, unknown> = {}

/**
 * The first command in a sandbox. `program` starts a program and needs no shell. `shell` is a shell builtin and starts no
 * program.
 */
const first = { program: 'true', shell: ':' }

const firstExec = async (make: () => Promise<Made>, command = first.program) => {
  let made: Made | undefined
  const ms = await timed(async () => {
    made = await make()
    await http.execute(made, command)
  })
  return { ms, made: made as Made }
}

const raw = await (async () => {
  const box = await createBox(alcove)
  const runner = join(alcove.data, 'runner')
  const pool = existsSync(join(runner, 'pool', 'images')) ? join(runner, 'pool') : runner
  const hybrid = '/sys/fs/cgroup/unified'
  const rootfs = join(pool, 'images', 'default', 'rootfs')
  const { id } = box
  // Makes calls that are not measured, because a server that has just started still compiles its code.
  for (let round = 0; round < 100; round++) await http.execute(box.record as Made)
  return await openRawCrun(
    join(runner, 'sandboxes', id),
    rootfs,
    join(pool, 'bench'),
    existsSync(hybrid) ? hybrid : '',
    command,
  )
})()

const cgroups = async () => (await alcove.leftovers()).filter((line) => line.startsWith('cgroup')).length

const openWarmPool = async (pool: number) => {
  const { body } = await alcove.api('POST', '/warm-pools', { snapshot: 'default', pool })
  const isFull = async () =>
    ((await alcove.api('GET', '/warm-pools')).body as unknown as { currentSize: number }[])[0]?.currentSize === pool
  return {
    full: () => until('the pool is full', isFull, 120),
    close: async () => {
      await alcove.api('DELETE', `/warm-pools/${String(body['id'])}`)
      await pause(3000)
    },
  }
}

const measureWarm = async () => {
  const pool = await openWarmPool(4)
  const warm: Samples = []
  const warmShell: Samples = []
  const cold: Samples = []
  // The least time in which a client could make a sandbox and run a command: two HTTP calls and the command.
  const floor: Samples = []
  // The first ten rounds are not counted, because the server still compiles the code for claims.
  for (let round = -10; round < rounds; round++) {
    for (const [samples, command] of [
      [warm, first.program],
      [warmShell, first.shell],
    ] as const) {
      await pool.full()
      await pause(300)
      const { ms, made } = await firstExec(http.create, command)
      if (round >= 0) samples.push(ms)
      const again = await timed(() => http.execute(made))
      const nothing = await timed(() => http.post(`/sandbox/${made.id}/backup`))
      if (round >= 0) floor.push(again + nothing)
      await http.remove(made.id)
    }
  }
  await pool.close()
  for (let round = 0; round < rounds; round++) {
    await pause(300)
    const { ms, made } = await firstExec(http.create)
    cold.push(ms)
    await http.remove(made.id)
  }
  console.log(compare('a call that does nothing, and an exec', floor))
  console.log(compare('warm create to first exec', warm, { name: 'these two', samples: floor }))
  console.log(compare('the same, of a line for the shell', warmShell, { name: 'these two', samples: floor }))
  console.log(compare('cold create to first exec', cold, { name: 'warm', samples: warm }))
  facts['create'] = { warm, warmShell, cold, floor }
}

/**
 * Claims all warm sandboxes without pauses. So the CPU caches keep their data, and no warm sandbox is started between two claims.
 */
const measureRow = async () => {
  const size = 24
  const pool = await openWarmPool(size)
  const row: Samples = []
  const floor: Samples = []
  let most: number | undefined
  // The first round is not counted, because the server still compiles its code.
  for (let round = -1; round < Math.ceil(rounds / 6); round++) {
    await pool.full()
    most ??= await cgroups()
    await until('the last ones are gone', async () => (await cgroups()) <= most!, 120)
    await pause(3000)
    const all: Made[] = []
    for (let n = 0; n < size; n++) {
      const { ms, made } = await firstExec(http.create)
      if (round >= 0) row.push(ms)
      all.push(made)
    }
    for (const made of all) {
      const ms = await timed(async () => {
        await http.execute(made)
        await http.post(`/sandbox/${made.id}/backup`)
      })
      if (round >= 0) floor.push(ms)
    }
    await Promise.all(all.map(({ id }) => http.remove(id)))
  }
  await pool.close()
  console.log(compare('these two in a row', floor))
  console.log(compare('warm create to first exec in a row', row, { name: 'these two', samples: floor }))
  facts['row'] = { row, floor }
}

/**
 * Commands that run in the sandbox while the benchmark pauses and resumes it. The first command does little, which is the usual
 * case. The second command is a busy loop.
 */
const doing = {
  '': 'exec 3<> <(:); while :; do read -rt 0.01 -u 3; n=$((n+1)); done',
  ' while it is busy': 'while :; do :; done',
}

const measurePause = async (how: keyof typeof doing) => {
  const box = await createBox(alcove, { autoStopInterval: 0 })
  await box.run(`setsid bash -c '${doing[how]}' >/dev/null 2>&1 &`)
  const samples: Record<'pause' | 'resume' | 'floor', Samples> = { pause: [], resume: [], floor: [] }
  const become = async (verb: string, state: string) => {
    let made = await http.post(`/sandbox/${box.id}/${verb}`)
    while (made.state !== state) made = (await alcove.api('GET', `/sandbox/${box.id}`)).body as unknown as Made
  }
  for (let round = 0; round < 20; round++) {
    await become('pause', 'paused')
    await become('start', 'started')
  }
  for (let round = 0; round < rounds * 2; round++) {
    samples.pause.push(await timed(() => become('pause', 'paused')))
    samples.resume.push(await timed(() => become('start', 'started')))
    samples.floor.push(await timed(() => http.post(`/sandbox/${box.id}/backup`)))
  }
  await http.remove(box.id)
  const floor = { name: 'a call that does nothing', samples: samples.floor }
  console.log(compare(`a call that does nothing${how}`, samples.floor))
  console.log(compare(`pause${how}`, samples.pause, floor))
  console.log(compare(`resume${how}`, samples.resume, floor))
  facts[`pause${how}`] = samples
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

try {
  await measureWarm()
  await measureRow()
  await measurePause('')
  await measurePause(' while it is busy')
  await measureForks()
  await measureBurst()
  console.log(keep('life-http', facts))
} finally {
  await raw[Symbol.asyncDispose]()
  await http.close()
}
