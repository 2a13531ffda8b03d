// For tests: a DNS server in a network namespace, whose answers the test sets, and a client in a second namespace.
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { runCommand } from '#src/kit/run-command.ts'
import { netnsDir } from '../names.ts'

/** What the server answers: addresses and aliases by name. Names that are not listed do not exist. */
export type Zone = Record<string, { addresses?: readonly string[]; alias?: string; ttl?: number }>

const program = `
const net = require('node:net'), dgram = require('node:dgram'), readline = require('node:readline')
const [, address] = process.argv
let zone = {}
const nameIn = (message) => {
  const labels = []
  let at = 12
  while (message[at] > 0) { labels.push(message.toString('latin1', at + 1, at + 1 + message[at])); at += 1 + message[at] }
  return [labels.join('.').toLowerCase(), at + 1]
}
const wire = (name) =>
  Buffer.concat([...name.split('.').map((label) => Buffer.from([label.length, ...Buffer.from(label)])), Buffer.from([0])])
const record = (name, type, ttl, data) => {
  const head = Buffer.alloc(10)
  head.writeUInt16BE(type, 0); head.writeUInt16BE(1, 2); head.writeUInt32BE(ttl, 4); head.writeUInt16BE(data.length, 8)
  return Buffer.concat([wire(name), head, data])
}
const answer = (message, limit) => {
  const [name, end] = nameIn(message)
  console.log(name)
  const question = message.subarray(12, end + 4)
  const records = []
  let at = name, found = zone[at]
  while (found?.alias) {
    records.push(record(at, 5, found.ttl ?? 1, wire(found.alias)))
    at = found.alias
    found = zone[at]
  }
  for (const each of found?.addresses ?? []) records.push(record(at, 1, found.ttl ?? 1, Buffer.from(each.split('.').map(Number))))
  const header = Buffer.from([message[0], message[1], 0x81, found ? 0x80 : 0x83, 0, 1, 0, records.length, 0, 0, 0, 0])
  const whole = Buffer.concat([header, question, ...records])
  if (whole.length <= limit) return whole
  return Buffer.concat([Buffer.from([message[0], message[1], 0x83, 0x80, 0, 1, 0, 0, 0, 0, 0, 0]), question])
}
const udp = dgram.createSocket('udp4')
udp.on('message', (message, from) => udp.send(answer(message, 512), from.port, from.address))
const tcp = net.createServer((socket) => {
  socket.on('error', () => {})
  socket.on('data', (data) => {
    const reply = answer(data.subarray(2), 65535)
    socket.write(Buffer.concat([Buffer.from([reply.length >> 8, reply.length & 255]), reply]))
  })
})
readline.createInterface(process.stdin).on('line', (line) => { zone = JSON.parse(line); console.log('=zone') })
udp.bind(53, address, () => tcp.listen(53, address, () => console.log('=ready')))`

export type NameServer = {
  /** The names that clients have asked the server for, in order. */
  asked: string[]
  /** Sets the server's answers. Resolves when the server uses these answers. */
  say: (zone: Zone) => Promise<void>
  [Symbol.asyncDispose]: () => Promise<void>
}

export const nameServerIn = async (netns: string, address: string): Promise<NameServer> => {
  const child = spawn('nsenter', [`--net=${netnsDir}/${netns}`, process.execPath, '-e', program, address], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const asked: string[] = []
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  const signs: (() => void)[] = []
  const sign = () => new Promise<void>((resolve) => signs.push(resolve))
  const ready = sign()
  createInterface(child.stdout).on('line', (line) => {
    if (line.startsWith('=')) signs.shift()?.()
    else asked.push(line)
  })
  await Promise.race([ready, ended.then(() => Promise.reject(new Error('the name server ended')))])
  return {
    asked,
    say: async (zone) => {
      const heard = sign()
      child.stdin.write(`${JSON.stringify(zone)}\n`)
      await heard
    },
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL')
      await ended
    },
  }
}

const asker = `
const { Resolver } = require('node:dns').promises
const [, server, name, type, tries] = process.argv
const resolver = new Resolver({ timeout: 1000, tries: Number(tries) })
resolver.setServers([server])
resolver.resolve(name, type).then((found) => console.log(JSON.stringify(found)), (error) => console.log(JSON.stringify(error.code)))`

/** Asks the server at `server` for a name, from the namespace `from`. Returns the addresses, or the code of Node's error. */
export const ask = async (
  from: string,
  server: string,
  name: string,
  type = 'A',
  tries = 4,
): Promise<string[] | string> =>
  JSON.parse(
    await runCommand([
      ...['nsenter', `--net=${netnsDir}/${from}`, process.execPath, '-e', asker],
      ...[server, name, type, String(tries)],
    ]),
  ) as string[] | string

/** Like `ask`, but with a short timeout, for questions that get no answer. */
export const askOnce = (from: string, server: string, name: string) => ask(from, server, name, 'A', 1)
