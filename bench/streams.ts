// Measures how long a typed key and a command in a session take, and how fast logs and files are. The lower bound for logs and
// files is a copy through two `cat`s with a unix socket, in the same sandbox. `node bench/streams.ts [n]`, as root.
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { WebSocket } from 'ws'
import { runCommand } from '#src/kit/run-command.ts'
import { createBox } from '#test/sandboxes/box.ts'
import { platform } from '#test/sandboxes/harness.ts'
import { openClient } from './client.ts'
import { openReader } from './reader.ts'
import { compare, keep, median, type Samples, say, timed } from './samples.ts'
import { openFloor } from './unix-socket.ts'

const rounds = Number(process.argv[2] ?? 5)
const streamBytes = 512 * 1024 * 1024
const keystrokes = rounds * 100
const commands = rounds * 60

const alcove = await platform({ own: true })
const http = openClient(alcove)
// The files that this benchmark uploads, and the copies that it downloads, are in memory, so that disks do not delay the benchmark.
const directory = mkdtempSync('/dev/shm/alcove-bench-')
try {
  const box = await createBox(alcove)
  const toolbox = `${box.record['toolboxProxyUrl']}/${box.id}`
  const headers = { authorization: `Bearer ${alcove.key}` }
  const open = (path: string) =>
    new WebSocket(`${toolbox.replace(/^http/, 'ws')}${path}`, { headers, perMessageDeflate: false })

  /** Measures the time from typing a key until the shell sends it back. The keys are typed one after the other. */
  const type = async (): Promise<Samples> => {
    const made = await box.toolbox('POST', '/process/pty', { id: 'typing', cols: 80, rows: 24 })
    if (made.status !== 201) throw new Error(JSON.stringify(made))
    const socket = open('/process/pty/typing/connect')
    let heard = ''
    let listen = () => {}
    socket.on('message', (data, isBinary) => {
      if (!isBinary) return
      heard += String(data)
      listen()
    })
    const hear = (text: string) =>
      new Promise<void>((resolve) => {
        listen = () => {
          if (heard.includes(text)) resolve()
        }
        listen()
      })
    await new Promise((resolve) => socket.once('open', resolve))
    socket.send('PS1=rea""dy; echo\r')
    await hear('ready')
    const samples: Samples = []
    for (let index = 0; index < keystrokes; index++) {
      // Clears the typed line (Ctrl-U) after 39 keys. If the line became wider than the terminal, the shell would draw it anew.
      const key = index % 40 === 39 ? '\x15' : 'x'
      heard = ''
      const echo = key === 'x' ? 'x' : '\x1b'
      const milliseconds = await timed(() => {
        socket.send(key)
        return hear(echo)
      })
      if (key === 'x') samples.push(milliseconds)
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
    socket.close()
    return samples
  }

  const executeInSession = () =>
    http.executeInSession(box.record as { id: string; toolboxProxyUrl: string }, 'exec', 'true')

  /** Measures a command in a session. `true` is a shell builtin and takes almost no time, so the time is Alcove's. */
  const inSession = async (): Promise<Samples> => {
    const samples: Samples = []
    for (let index = 0; index < commands; index++) samples.push(await timed(executeInSession))
    return samples
  }

  /** Follows a log to its end. If the reader is too slow, the server leaves bytes out, so fewer bytes arrive. */
  const followBusy = async (): Promise<{ milliseconds: number; arrivedBytes: number }> => {
    const { readWhole } = await openReader()
    // Waits until Python, which reads the log, has started. Otherwise its start would slow the measurement down.
    await new Promise((resolve) => setTimeout(resolve, 200))
    const began = performance.now()
    // The function `floor.cat`, which measures the lower bound, reads the file `~/whole` too. So the two times can be compared.
    const command = 'cat ~/whole'
    const { body } = await box.toolbox('POST', '/process/session/logs/exec', { command, runAsync: true })
    const arrivedBytes = await readWhole(
      new URL(`${toolbox}/process/session/logs/command/${body['cmdId']}/logs?follow=true`),
      alcove.key,
    )
    return { milliseconds: performance.now() - began, arrivedBytes }
  }

  const curl = (...args: string[]) => {
    const argv = ['curl', '-sS', '--fail', '-H', `Authorization: Bearer ${alcove.key}`, ...args]
    return timed(() => runCommand(argv, { timeoutMs: 120_000 }))
  }
  const file = (name: string) => join(directory, name)
  for (const [name, bytes] of [['whole', streamBytes] as const, ['half', streamBytes / 2] as const]) {
    await runCommand(['sh', '-c', `head -c ${bytes} /dev/zero > ${file(name)}`])
  }
  const at = (call: string, path: string) => `${toolbox}/files/${call}?path=${path}`
  const upload = (name: string, path: string) => curl('-T', file(name), '-X', 'POST', at('upload', path))
  const form = (name: string, path: string) => curl('-F', `file=@${file(name)}`, at('upload', path))
  const floor = await openFloor(box)

  for (const id of ['exec', 'logs']) await box.toolbox('POST', '/process/session', { sessionId: id })
  for (const name of ['whole', 'half']) await upload(name, name)
  // Makes calls that are not measured, because a server that has just started still compiles its code.
  for (let index = 0; index < 1000; index++) await executeInSession()
  await curl('-o', '/dev/null', at('download', 'whole'))
  await followBusy()
  const echo = await type()
  console.log(`${'PTY keystroke to echo'.padEnd(34)} ${say(echo)}`)
  const session = await inSession()
  console.log(`${'session exec above the command'.padEnd(34)} ${say(session)}`)

  const taken = {
    floor: { nothing: [] as Samples, disk: [] as Samples, memory: [] as Samples },
    follow: [] as Samples,
    download: { nothing: [] as Samples, disk: [] as Samples },
    upload: { disk: [] as Samples, memory: [] as Samples },
    form: { disk: [] as Samples, memory: [] as Samples },
  }
  const arrived: number[] = []
  // A file in /dev/shm uses the sandbox's memory. So this file is half as large as the other files, and is removed at once.
  const inMemory = async (samples: Samples, write: (path: string) => Promise<number>) => {
    samples.push(await write('/dev/shm/half'))
    await box.run('rm /dev/shm/half')
  }
  for (let round = 0; round < rounds; round++) {
    taken.floor.nothing.push(await floor.cat('whole', '/dev/null'))
    const { milliseconds, arrivedBytes } = await followBusy()
    arrived.push(arrivedBytes)
    // A slow reader gets only a part of the log. So compute the time for the whole log from the bytes that have arrived.
    taken.follow.push((milliseconds * streamBytes) / arrivedBytes)
    taken.download.nothing.push(await curl('-o', '/dev/null', at('download', 'whole')))
    taken.download.disk.push(await curl('-o', file('saved'), at('download', 'whole')))
    await inMemory(taken.floor.memory, (path) => floor.cat('half', path))
    await inMemory(taken.upload.memory, (path) => upload('half', path))
    await inMemory(taken.form.memory, (path) => form('half', path))
    // Write all data to the disk now. Otherwise this would slow down the next measurement.
    await box.run('sync')
    taken.floor.disk.push(await floor.cat('whole', 'copy'))
    taken.upload.disk.push(await upload('whole', 'uploaded'))
    taken.form.disk.push(await form('whole', 'uploaded'))
  }
  const nothing = { name: 'cat to nothing', samples: taken.floor.nothing }
  const disk = { name: 'cat to a file', samples: taken.floor.disk }
  const memory = { name: 'cat to memory', samples: taken.floor.memory }
  console.log(compare('cat through a socket to nothing', taken.floor.nothing))
  console.log(
    `${compare('follow of a busy command', taken.follow, nothing)}, ${Math.round((median(arrived) / streamBytes) * 100)} % arrived`,
  )
  console.log(compare('download, thrown away', taken.download.nothing, nothing))
  console.log(compare('download to a file', taken.download.disk, nothing))
  console.log(compare('cat through a socket to memory', taken.floor.memory))
  console.log(compare('upload to memory, the body itself', taken.upload.memory, memory))
  console.log(compare('upload to memory, a form', taken.form.memory, memory))
  console.log(compare('cat through a socket to a file', taken.floor.disk))
  console.log(compare('upload to a file, the body itself', taken.upload.disk, disk))
  console.log(compare('upload to a file, a form', taken.form.disk, disk))
  console.log(keep('streams', { streamBytes, echo, session, arrived, ...taken }))
} finally {
  rmSync(directory, { recursive: true })
  await http.close()
  await alcove[Symbol.asyncDispose]()
}
