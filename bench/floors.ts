// Measures lower bounds (floors): the least time in which this machine could do what a benchmark measures. They are measured in the
// same run as the benchmark, with programs that do only the least necessary.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import postgres from 'postgres'
import { Pool } from 'undici'
import { runCommand } from '#src/kit/run-command.ts'
import { connectionFrom } from '#src/postgres/url.ts'
import { type Samples, timed } from './samples.ts'
import type { Sandbox, Served } from './served.ts'

/**
 * An HTTP server that prints its port and answers with 200 bytes. On the host, it gives the lower bound for HTTP calls. In a
 * sandbox, it serves the measured preview.
 */
export const plainServer = (port: number): string =>
  `const s = require('node:http').createServer((q, r) => { q.resume(); q.on('end', () => r.end('x'.repeat(200))) });
   s.keepAliveTimeout = 90000; s.listen(${port}, '127.0.0.1', () => console.log(s.address().port))`

/**
 * A client that runs in the network namespace of a sandbox. It makes `rounds` calls and prints the milliseconds of
 * each.
 */
const directClient = (port: number, rounds: number): string =>
  `const { Agent, get } = require('node:http'); const agent = new Agent({ keepAlive: true });
   const once = () => new Promise((done) => get({ agent, host: '127.0.0.1', port: ${port} }, (r) => r.resume().on('end', done)));
   (async () => { for (let n = -200; n < ${rounds}; n++) { const t = performance.now(); await once();
     if (n >= 0) console.log(performance.now() - t) } process.exit() })()`

/** Copies a file through two `cat`s and a unix socket. Prints the ms without and with a sync of the copy. */
const cats = `
import os, socket, subprocess, sys, time
one, other = socket.socketpair()
began = time.perf_counter()
into = open(sys.argv[2], "wb")
giver = subprocess.Popen(["cat", sys.argv[1]], stdout=one)
taker = subprocess.Popen(["cat"], stdin=other, stdout=into)
one.close(); other.close()
assert giver.wait() == 0 and taker.wait() == 0
print((time.perf_counter() - began) * 1000)
if into.name != "/dev/null": os.fsync(into.fileno())
print((time.perf_counter() - began) * 1000)
`

const numbers = (text: string): Samples => text.trim().split('\n').map(Number)

export class Floors {
  readonly #directory: string
  readonly #server: ChildProcess
  readonly #http: Pool
  readonly #sql: postgres.Sql
  #sent: string | undefined

  private constructor(directory: string, server: ChildProcess, port: number, databaseUrl: string) {
    this.#directory = directory
    this.#server = server
    this.#http = new Pool(`http://127.0.0.1:${port}`, { connections: 1 })
    const { url, connection } = connectionFrom(databaseUrl)
    this.#sql = postgres(url, { ...connection, max: 1, onnotice: () => {} })
  }

  static async open(databaseUrl: string): Promise<Floors> {
    const directory = mkdtempSync(join(tmpdir(), 'alcove-floors-'))
    await runCommand(['cc', '-O2', '-o', join(directory, 'agent-client'), join(import.meta.dirname, 'agent-client.c')])
    const server = spawn(process.execPath, ['-e', plainServer(0)], { stdio: ['ignore', 'pipe', 'inherit'] })
    const [port] = await once(server.stdout!, 'data')
    const floors = new Floors(directory, server, Number(port), databaseUrl)
    await floors.#sql`create table if not exists bench_rows (id bigserial primary key, text text not null)`
    return floors
  }

  /** Measures the lower bound for an HTTP call: a Node server in another process answers with 200 bytes. */
  async http(rounds: number): Promise<Samples> {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${'x'.repeat(68)}` }
    return await repeat(rounds, async () => {
      const reply = await this.#http.request({ method: 'POST', path: '/', headers, body: '{"command":"true"}' })
      await reply.body.text()
    })
  }

  /** Measures the lower bound for a command: a C client runs it through the sandbox's agent, without gate and runner. */
  async agent(served: Served, sandbox: Sandbox, rounds: number, ...argv: string[]): Promise<Samples> {
    const client = join(this.#directory, 'agent-client')
    return numbers(await runCommand([client, served.agentSocket(sandbox), String(rounds), sandbox.user, ...argv]))
  }

  /** Measures the lower bound for a write to the database: PostgreSQL commits a row. */
  async row(rounds: number): Promise<Samples> {
    return await repeat(rounds, () => this.#sql`insert into bench_rows (text) values (${'x'.repeat(200)})`)
  }

  /** Calls the server in a sandbox from the sandbox's own network namespace, so that no program of Alcove is involved. */
  async direct(served: Served, sandbox: Sandbox, port: number, rounds: number): Promise<Samples> {
    const net = `--net=/proc/${served.agentPid(sandbox)}/ns/net`
    return numbers(await runCommand(['nsenter', net, process.execPath, '-e', directClient(port, rounds)]))
  }

  /** Copies a file through two `cat`s. Returns the ms until both `cat`s have ended, and until the copy is synced. */
  async cat(served: Served, sandbox: Sandbox, from: string, to: string): Promise<{ ended: number; synced: number }> {
    const [ended, synced] = numbers(await served.execute(sandbox, `python3 -c '${cats}' ${from} ${to}`))
    return { ended: ended!, synced: synced! }
  }

  /** Makes the file for uploads. It is in memory, so that it can be read in almost no time. */
  bigFile(megabytes: number): string {
    this.#sent ??= mkdtempSync('/dev/shm/alcove-bench-')
    const path = join(this.#sent, 'big')
    if (!existsSync(path)) writeFileSync(path, Buffer.alloc(megabytes * 1024 * 1024))
    return path
  }

  async [Symbol.asyncDispose]() {
    if (this.#sent !== undefined) rmSync(this.#sent, { recursive: true, force: true })
    this.#server.kill()
    await this.#http.destroy()
    await this.#sql`drop table if exists bench_rows`
    await this.#sql.end()
    rmSync(this.#directory, { recursive: true, force: true })
  }
}

export const repeat = async (rounds: number, work: () => Promise<unknown>): Promise<Samples> => {
  const samples: Samples = []
  for (let round = 0; round < rounds; round++) samples.push(await timed(work))
  return samples
}
