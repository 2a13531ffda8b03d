// Measures how long the verbs of a sandbox take in the runner alone. Needs root.
//
//   node bench/life.ts [ROUNDS]
import assert from 'node:assert/strict'
import type { Assignment } from '#src/wire/runner-link.ts'
import { TestHost } from '../src/runner/testing/test-host.ts'

const rounds = Number(process.argv[2] ?? 30)
const GiB = 1024 ** 3

const sorted = (values: readonly number[]) => values.toSorted((a, b) => a - b)
const at = (values: readonly number[], share: number) =>
  sorted(values)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? Number.NaN
const row = (name: string, values: readonly number[]) => {
  const [p50, p95, most] = [at(values, 0.5), at(values, 0.95), Math.max(...values)].map((ms) => ms.toFixed(2))
  console.log(`| ${name} | ${p50} | ${p95} | ${most} | ${values.length} |`)
}
const timed = async (work: () => Promise<unknown>) => {
  const began = performance.now()
  await work()
  return performance.now() - began
}

await using box = await TestHost.start({ poolBytes: 12 * GiB })
console.log('| ms | p50 | p95 | max | n |\n|---|---|---|---|---|')

const measurePause = async () => {
  let now = await box.started()
  const next = (target: Assignment['target']) => {
    now = { ...now, generation: now.generation + 1, target }
    return now
  }
  await box.run(now.sandboxId, 'while :; do :; done >/dev/null 2>&1 &')
  const pauses: number[] = []
  const resumes: number[] = []
  for (let round = 0; round < rounds; round++) {
    pauses.push(await timed(() => box.host.pause(next('paused'))))
    resumes.push(await timed(() => box.host.start(next('started'))))
  }
  row('pause', pauses)
  row('resume', resumes)
  await box.host.destroy(now.sandboxId)
}

const measureFork = async (megabytes: number) => {
  const parent = await box.started({ diskGiB: 8, memoryGiB: 2 })
  const write = `dd if=/dev/urandom of=/root/big bs=1M count=${megabytes} conv=fsync`
  assert.equal((await box.run(parent.sandboxId, write)).exitCode, 0)
  const times: number[] = []
  for (let round = 0; round < rounds; round++) {
    const child = box.assignment({ isNew: true, forkOf: parent.sandboxId, diskGiB: 8 })
    times.push(
      await timed(async () => {
        await box.host.start(child)
        await box.run(child.sandboxId, 'true')
      }),
    )
    await box.host.destroy(child.sandboxId)
  }
  row(`fork of ${megabytes} MB, until the first exec`, times)
  const templates: number[] = []
  for (let round = 0; round < 5; round++) {
    templates.push(await timed(() => box.host.snapshot(parent.sandboxId, `template-${round}`)))
    await box.host.removeTemplate(`template-${round}`)
  }
  row(`snapshot of ${megabytes} MB, on the disk`, templates)
  await box.host.destroy(parent.sandboxId)
}

const measureStart = async () => {
  const times: number[] = []
  for (let round = 0; round < rounds; round++) {
    const assignment = box.assignment({ isNew: true })
    times.push(
      await timed(async () => {
        await box.host.start(assignment)
        await box.run(assignment.sandboxId, 'true')
      }),
    )
    await box.host.destroy(assignment.sandboxId)
  }
  row('create, until the first exec', times)
}

await measurePause()
await measureStart()
for (const megabytes of [10, 100, 1024]) await measureFork(megabytes)
