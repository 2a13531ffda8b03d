// For tests: servers that listen in a network namespace, and functions that try to reach these servers from a second namespace.
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { runCommand } from '#src/kit/run-command.ts'
import { netnsDir } from '../names.ts'

const program = `
const net = require('node:net'), dgram = require('node:dgram')
const ports = process.argv.slice(1).map(Number)
const say = (line) => process.stdout.write(line + '\\n')
let pending = ports.length * 2
const ready = () => { if (--pending === 0) say('ready') }
for (const port of ports) {
  net.createServer((socket) => { socket.on('error', () => {}); socket.end('hello\\n') }).listen(port, '0.0.0.0', ready)
  const udp = dgram.createSocket('udp4')
  udp.on('message', (data, from) => { say(from.address + ' ' + data); udp.send('hello', from.port, from.address) })
  udp.bind(port, '0.0.0.0', ready)
}`

export type Listeners = {
  /** The datagrams that the listeners have received, each as `sender text`, in order of arrival. */
  datagrams: string[]
  /** Resolves when a datagram with this text has arrived. */
  heard: (text: string) => Promise<void>
  [Symbol.asyncDispose]: () => Promise<void>
}

const ended = (child: ChildProcess) =>
  child.exitCode !== null || child.signalCode !== null
    ? Promise.resolve()
    : new Promise<void>((resolve) => child.once('close', () => resolve()))

/** Starts TCP and UDP listeners on all addresses of a namespace. `undefined`: the namespace of the test itself. */
export const listenIn = async (netns: string | undefined, ports: readonly number[]): Promise<Listeners> => {
  const enter = netns === undefined ? [] : ['nsenter', `--net=${netnsDir}/${netns}`]
  const [command, ...args] = [...enter, process.execPath, '-e', program, ...ports.map(String)]
  const child = spawn(command as string, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const datagrams: string[] = []
  const hearers = new Map<string, () => void>()
  await new Promise<void>((resolve, reject) => {
    child.once('close', () => reject(new Error('the listeners ended')))
    createInterface(child.stdout).on('line', (line) => {
      if (line === 'ready') return resolve()
      datagrams.push(line)
      for (const [text, hear] of hearers) if (line.endsWith(` ${text}`)) hear()
    })
  })
  return {
    datagrams,
    heard: (text) =>
      new Promise((resolve) => {
        if (datagrams.some((line) => line.endsWith(` ${text}`))) resolve()
        else hearers.set(text, resolve)
      }),
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL')
      await ended(child)
    },
  }
}

const bashIn = (netns: string | undefined, script: string, seconds: number) => {
  const enter = netns === undefined ? [] : ['nsenter', `--net=${netnsDir}/${netns}`]
  return runCommand([...enter, 'timeout', String(seconds), 'bash', '-c', script])
}

/** Whether a TCP connection gets the listener's first text within `seconds`. Pass a long time if success is expected. */
export const reaches = (from: string | undefined, address: string, port: number, seconds: number): Promise<boolean> =>
  bashIn(from, `exec 3<>/dev/tcp/${address}/${port} && read -r line <&3 && [ "$line" = hello ]`, seconds).then(
    () => true,
    () => false,
  )

export const sendDatagram = (from: string, address: string, port: number, text: string) =>
  bashIn(from, `printf '%s' '${text}' > /dev/udp/${address}/${port}`, 5).catch(() => {})
