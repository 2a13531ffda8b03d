// A lock between processes that the kernel gives back however its holder ends: flock(1) holds it for as long as its
// standard input, a pipe from us, is open.
import { spawn } from 'node:child_process'

export type Lock = AsyncDisposable

type Waiting = { onWait: () => void; timeoutMs: number }

export const takeLock = (path: string, { onWait, timeoutMs }: Waiting): Promise<Lock> =>
  new Promise((resolve, reject) => {
    const script = 'flock --nonblock 9 || { echo waiting; flock --timeout "$1" 9 || exit 75; }; echo locked; exec cat'
    const seconds = String(Math.ceil(timeoutMs / 1000))
    const child = spawn('sh', ['-c', `exec 9>>"$0"; ${script}`, path, seconds], { stdio: ['pipe', 'pipe', 'inherit'] })
    const ended = new Promise<void>((done) => child.once('close', () => done()))
    child.once('error', reject)
    child.once('close', (code) =>
      reject(new Error(code === 75 ? `waited ${seconds} s for the lock ${path}` : `no lock on ${path}`)),
    )
    child.stdin.on('error', () => {})
    let said = ''
    child.stdout.on('data', (data: Buffer) => {
      const before = said
      said += data.toString()
      if (!before.includes('waiting') && said.includes('waiting')) onWait()
      if (!said.includes('locked')) return
      resolve({
        [Symbol.asyncDispose]: async () => {
          child.stdin.end()
          await ended
        },
      })
    })
  })
