// `./alcove test --faults`: runs only the tests that kill programs at random.
// Runs with the same `--seed` kill programs in the same order.
// With `--hosts`, whole machines lose power, and network connections are cut.
// Example: node scripts/faults.ts --seed 7 --count 500
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { requiredPackages } from '#src/doctor/packages.ts'
import { buildNativePrograms } from '#src/up/native-programs.ts'
import { ensurePackages, hostNeeding } from '#src/up/system-packages.ts'
import { describe, runRing } from '#test/faults/ring.ts'
import { Network } from '#test/hosts/namespaces.ts'
import { runHostsRing } from '#test/hosts/ring.ts'
import { platform } from '#test/sandboxes/harness.ts'
import { purgeBelow } from './test-server.ts'

process.chdir(resolve(import.meta.dirname, '..'))
const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    count: { type: 'string', default: '50' },
    hosts: { type: 'boolean', default: false },
  },
})
const [seed, count] = [Number(values.seed), Number(values.count)]
if (!Number.isSafeInteger(seed) || !Number.isSafeInteger(count) || count < 1) {
  console.error('--seed and --count are whole numbers')
  process.exit(2)
}
if (process.getuid?.() !== 0) {
  console.error('the fault ring needs root: it makes real sandboxes')
  process.exit(2)
}
ensurePackages(console.log, hostNeeding(requiredPackages))
await buildNativePrograms(console.log)
const servers = mkdtempSync(join(tmpdir(), 'alcove-faults-'))
process.env['ALCOVE_TEST_SERVERS'] = servers

type Options = Parameters<typeof runRing>[1]

const runOnServer = async (options: Options) => {
  await using alcove = await platform({ own: true, image: 'small' })
  return await runRing(alcove, options)
}

const runOnHosts = async (options: Options) => {
  await using network = await Network.open()
  return await runHostsRing(network, options)
}

let failed = 1
try {
  const options = { seed, count, say: (line: string) => console.log(line) }
  const outcome = await (values.hosts ? runOnHosts(options) : runOnServer(options))
  console.log(describe(outcome))
  failed = outcome.complaints.length > 0 ? 1 : 0
} finally {
  const left = await purgeBelow(servers)
  for (const line of left) console.log(`left on the host: ${line}`)
  rmSync(servers, { recursive: true, force: true })
  if (left.length > 0) failed = 1
}
console.log(`${1 - failed} passed, ${failed} failed`)
process.exit(failed)
