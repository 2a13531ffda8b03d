// Real HTTP clients for tests, such as curl and Python libraries. Each sends two requests with the same body over one connection.
// Some send the whole body before they read the answer.
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { rm, writeFile } from 'node:fs/promises'
import { Agent } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import axios from 'axios'

const run = promisify(execFile)

type Post = { url: string; headers: Record<string, string>; bytes: number }

/**
 * Sends each body in two requests over one connection, and returns the two statuses for each body. Throws if a call fails or gets
 * no answer.
 */
type PostTwice = (posts: readonly Post[]) => Promise<number[][]>

/**
 * Returns a function that sends bodies with a Python program. `program` defines `twice(url, headers, size)`, which sends
 * one body twice and returns the two statuses. One process sends all bodies, because loading the HTTP library takes long.
 */
const python = (program: string): PostTwice => {
  const all = `import sys, json\n${program}
print(json.dumps([twice(post['url'], post['headers'], post['bytes']) for post in json.loads(sys.argv[1])]))`
  return async (posts) => {
    const { stdout } = await run('/usr/bin/python3', ['-c', all, JSON.stringify(posts)], { timeout: 120_000 })
    return JSON.parse(stdout) as number[][]
  }
}

const oneByOne =
  (twice: (url: string, headers: Record<string, string>, bytes: number) => Promise<number[]>): PostTwice =>
  async (posts) => {
    const statuses: number[][] = []
    for (const { url, headers, bytes } of posts) statuses.push(await twice(url, headers, bytes))
    return statuses
  }

export const realClients: Record<string, PostTwice> = {
  'Python requests': python(`
import requests
def twice(url, headers, size):
    with requests.Session() as session:
        session.trust_env = False
        return [session.post(url, data=b'x' * size, headers=headers, timeout=20).status_code for _ in range(2)]`),
  'Python httpx': python(`
import httpx
def twice(url, headers, size):
    with httpx.Client(timeout=20, trust_env=False) as client:
        return [client.post(url, content=b'x' * size, headers=headers).status_code for _ in range(2)]`),
  'Python httpx in pieces': python(`
import httpx
def pieces(size):
    for at in range(0, size, 65536):
        yield b'x' * min(65536, size - at)
def twice(url, headers, size):
    with httpx.Client(timeout=20, trust_env=False) as client:
        return [client.post(url, content=pieces(size), headers=headers).status_code for _ in range(2)]`),
  fetch: oneByOne(async (url, headers, bytes) => {
    const statuses: number[] = []
    for (let round = 0; round < 2; round++) {
      const signal = AbortSignal.timeout(20_000)
      const reply = await fetch(url, { method: 'POST', headers, body: Buffer.alloc(bytes, 'x'), signal })
      await reply.arrayBuffer()
      statuses.push(reply.status)
    }
    return statuses
  }),
  'fetch with a form': oneByOne(async (url, { 'content-type': _type, ...headers }, bytes) => {
    const statuses: number[] = []
    for (let round = 0; round < 2; round++) {
      const body = new FormData()
      body.append('file', new Blob([Buffer.alloc(bytes, 'x')]), 'x')
      const reply = await fetch(url, { method: 'POST', headers, body, signal: AbortSignal.timeout(20_000) })
      await reply.arrayBuffer()
      statuses.push(reply.status)
    }
    return statuses
  }),
  axios: oneByOne(async (url, headers, bytes) => {
    const httpAgent = new Agent({ keepAlive: true, maxSockets: 1 })
    const post = () =>
      axios.post(url, Buffer.alloc(bytes, 'x'), { headers, httpAgent, timeout: 20_000, validateStatus: () => true })
    try {
      return [(await post()).status, (await post()).status]
    } finally {
      httpAgent.destroy()
    }
  }),
  curl: oneByOne(async (url, headers, bytes) => {
    const file = join(tmpdir(), `alcove-body-${randomBytes(6).toString('hex')}`)
    await writeFile(file, Buffer.alloc(bytes, 'x'))
    const asked = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`])
    const one = [
      '-sS',
      '-m',
      '20',
      '-o',
      '/dev/null',
      '-w',
      '%{http_code} ',
      ...asked,
      '--data-binary',
      `@${file}`,
      url,
    ]
    try {
      const { stdout } = await run('curl', [...one, '--next', ...one], { timeout: 60_000 })
      return stdout.trim().split(' ').map(Number)
    } finally {
      await rm(file)
    }
  }),
}
