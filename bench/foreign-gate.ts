// Measures a command, an upload and a download through the gate of another host (the foreign gate) and through the sandbox's own
// gate. Here the foreign gate runs on this machine, and connects to the sandbox's own gate by TLS over loopback.
// `node bench/foreign-gate.ts [n]`, as root.
import { type ChildProcess, spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { Pool } from 'undici'
import { newKeyPair } from '#src/kit/testing/authority.ts'
import { tradeToken } from '#src/up/hosts/trade.ts'
import { controlHostName } from '#src/wire/hosts.ts'
import { createBox } from '#test/sandboxes/box.ts'
import { freePorts } from '#test/sandboxes/free-ports.ts'
import { type Platform, platform } from '#test/sandboxes/harness.ts'
import { compare, keep, type Samples, timed } from './samples.ts'

const rounds = Number(process.argv[2] ?? 10)
const commands = 50
const fileBytes = 64 * 1024 * 1024

const directory = mkdtempSync(join(tmpdir(), 'alcove-bench-'))
const store = join(directory, 'store')
mkdirSync(store)

/** Joins this machine to the server again, as the host `foreign`, and starts a gate for that host. */
const startForeign = async (alcove: Platform): Promise<{ url: string; gate: ChildProcess }> => {
  const { body } = await alcove.api('POST', '/runners', { name: 'foreign' })
  const controlUrl = new URL(`https://127.0.0.1:${Number(new URL(alcove.url).port) + 3}`)
  const pairs = { runner: newKeyPair(), gate: newKeyPair() }
  const keys = { runner: pairs.runner.publicKey, gate: pairs.gate.publicKey }
  const ca = readFileSync(join(alcove.data, 'host/gate/authority.pem'), 'utf8')
  const credential = { headers: {}, tls: () => ({ ca, servername: controlHostName }) }
  const joined = await tradeToken(controlUrl, credential, { token: String(body['apiKey']), keys })
  const certificates = join(directory, 'gate')
  mkdirSync(certificates)
  const files = {
    'authority.pem': joined.authority,
    'certificate.pem': joined.certificates.gate,
    'key.pem': pairs.gate.privateKey,
  }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(certificates, name), text)
  const port = await freePorts(1)
  const url = `http://127.0.0.1:${port}`
  const gate = spawn(process.execPath, [resolve(import.meta.dirname, '../bin/gate.ts')], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      ...process.env,
      ALCOVE_LISTEN: `127.0.0.1:${port}`,
      ALCOVE_CONTROL_URL: controlUrl.origin,
      ALCOVE_PROXY_URL: url,
      ALCOVE_CERTIFICATES_DIR: certificates,
      ALCOVE_GATE_ID: 'foreign',
      // `src/up/programs.ts` starts the gate of the sandbox's host with these values. So both gates use memory in the same way.
      MALLOC_MMAP_THRESHOLD_: '32768',
      MALLOC_ARENA_MAX: '2',
    },
  })
  const isUp = () =>
    fetch(`${url}/healthz`).then(
      ({ ok }) => ok,
      () => false,
    )
  while (!(await isUp())) await new Promise((done) => setTimeout(done, 50))
  return { url, gate }
}

const alcove = await platform({ own: true, hasHosts: true, env: { ALCOVE_ARCHIVE_STORE: `file://${store}` } })
let gate: ChildProcess | undefined
try {
  const box = await createBox(alcove)
  const foreign = await startForeign(alcove)
  gate = foreign.gate
  const gates = { own: new URL(String(box.record['toolboxProxyUrl'])).origin, foreign: foreign.url }
  const pools = { own: new Pool(gates.own), foreign: new Pool(gates.foreign) }
  const headers = { authorization: `Bearer ${alcove.key}` }
  const path = (rest: string) => `/toolbox/${box.id}${rest}`

  const content = randomBytes(fileBytes)
  const wanted = createHash('sha256').update(content).digest('hex')
  // The first download through each gate is compared with the uploaded file.
  let isChecked = false
  const call = async (which: keyof typeof gates, method: 'GET' | 'POST', rest: string, body?: string | Buffer) => {
    const type = typeof body === 'string' ? 'application/json' : 'application/octet-stream'
    const reply = await pools[which].request({
      ...{ method, path: path(rest) },
      headers: body === undefined ? headers : { ...headers, 'content-type': type },
      ...(body === undefined ? {} : { body }),
    })
    const hash = createHash('sha256')
    for await (const piece of reply.body) if (isChecked) hash.update(piece)
    if (reply.statusCode >= 300) throw new Error(`${rest}: ${reply.statusCode}`)
    if (isChecked && hash.digest('hex') !== wanted) throw new Error(`${rest}: another file came through ${which}`)
  }

  const file = '/files/upload-v2?path=/tmp/bench'
  const measured = {
    exec: (which: keyof typeof gates) => call(which, 'POST', '/process/execute', '{"command":"true"}'),
    upload: (which: keyof typeof gates) => call(which, 'POST', file, content),
    download: (which: keyof typeof gates) => call(which, 'GET', '/files/download?path=/tmp/bench'),
  }
  for (const which of ['own', 'foreign'] as const) {
    await measured.upload(which)
    isChecked = true
    await measured.download(which)
    isChecked = false
  }
  const samples: Record<string, Record<string, Samples>> = {}
  // The first round is not counted, because new programs still compile their code. Each round measures both gates, so that other
  // load affects both.
  for (let round = -1; round < rounds; round += 1) {
    for (const [name, work] of Object.entries(measured)) {
      for (let count = 0; count < (name === 'exec' ? commands : 1); count += 1) {
        for (const which of ['own', 'foreign'] as const) {
          const took = await timed(() => work(which))
          if (round < 0) continue
          samples[name] ??= { own: [], foreign: [] }
          samples[name][which]!.push(took)
        }
      }
    }
  }
  for (const [name, { own = [], foreign: other = [] }] of Object.entries(samples)) {
    console.log(compare(`${name}, own gate`, own))
    console.log(compare(`${name}, foreign gate`, other, { name: 'own gate', samples: own }))
  }
  console.log(keep('foreign-gate', { rounds, fileBytes, samples }))
  for (const pool of Object.values(pools)) await pool.close()
} finally {
  gate?.kill()
  await alcove[Symbol.asyncDispose]()
  rmSync(directory, { recursive: true, force: true })
}
