// Clients of several kinds that post a body twice over one connection. Some send all of a body before they read anything.
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { rm, writeFile } from 'node:fs/promises'
import { Agent } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import axios from 'axios'

const run = promisify(execFile)

/** Returns both statuses. Throws if a call fails or is not answered. */
type PostTwice = (url: string, headers: Record<string, string>, bytes: number) => Promise<number[]>

const python = (program: string): PostTwice => {
  return async (url, headers, bytes) => {
    const { stdout } = await run('/usr/bin/python3', ['-c', program, url, JSON.stringify(headers), String(bytes)], {
      timeout: 60_000,
    })
    return JSON.parse(stdout) as number[]
  }
}

const begin = 'import sys, json\nurl, headers, size = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])\n'

export const realClients: Record<string, PostTwice> = {
  'Python requests': python(`${begin}
import requests
session = requests.Session()
session.trust_env = False
print(json.dumps([session.post(url, data=b'x' * size, headers=headers, timeout=20).status_code for _ in range(2)]))`),
  'Python httpx': python(`${begin}
import httpx
with httpx.Client(timeout=20, trust_env=False) as client:
    print(json.dumps([client.post(url, content=b'x' * size, headers=headers).status_code for _ in range(2)]))`),
  'Python httpx in pieces': python(`${begin}
import httpx
def pieces():
    for at in range(0, size, 65536):
        yield b'x' * min(65536, size - at)
with httpx.Client(timeout=20, trust_env=False) as client:
    print(json.dumps([client.post(url, content=pieces(), headers=headers).status_code for _ in range(2)]))`),
  fetch: async (url, headers, bytes) => {
    const statuses: number[] = []
    for (let round = 0; round < 2; round++) {
      const signal = AbortSignal.timeout(20_000)
      const reply = await fetch(url, { method: 'POST', headers, body: Buffer.alloc(bytes, 'x'), signal })
      await reply.arrayBuffer()
      statuses.push(reply.status)
    }
    return statuses
  },
  'fetch with a form': async (url, { 'content-type': _type, ...headers }, bytes) => {
    const statuses: number[] = []
    for (let round = 0; round < 2; round++) {
      const body = new FormData()
      body.append('file', new Blob([Buffer.alloc(bytes, 'x')]), 'x')
      const reply = await fetch(url, { method: 'POST', headers, body, signal: AbortSignal.timeout(20_000) })
      await reply.arrayBuffer()
      statuses.push(reply.status)
    }
    return statuses
  },
  axios: async (url, headers, bytes) => {
    const httpAgent = new Agent({ keepAlive: true, maxSockets: 1 })
    const post = () =>
      axios.post(url, Buffer.alloc(bytes, 'x'), { headers, httpAgent, timeout: 20_000, validateStatus: () => true })
    try {
      return [(await post()).status, (await post()).status]
    } finally {
      httpAgent.destroy()
    }
  },
  curl: async (url, headers, bytes) => {
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
  },
}
