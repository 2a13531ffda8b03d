#!/usr/bin/env node
// A language server for tests. The name of the project's directory says how it behaves.
import { appendFileSync } from 'node:fs'
import { basename } from 'node:path'

const mode = basename(process.cwd())
const raw = (text) => process.stdout.write(text)
const send = (message) => {
  const body = JSON.stringify({ jsonrpc: '2.0', ...message })
  raw(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
}
const flood = (text) => {
  while (process.stdout.write(text));
  process.stdout.once('drain', () => flood(text))
}
const framed = (body) => `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
const notification = framed(JSON.stringify({ jsonrpc: '2.0', method: 'window/logMessage', params: { message: 'x' } }))

/** Functions that run in place of an answer to a request for completions, by the name of the project. */
const misbehave = {
  dies: () => {
    process.stderr.write('out of luck\n', () => process.exit(3))
  },
  hangs: () => {},
  'negative length': () => raw('Content-Length: -5\r\n\r\n'),
  'gigantic length': () => raw('Content-Length: 4000000000\r\n\r\n{'),
  'endless header': () => flood('X'.repeat(64 * 1024)),
  'bad json': () => raw(framed('{"id": 2, ')),
  'deep json': () => raw(framed(`{"id":2,"result":${'['.repeat(100_000)}${']'.repeat(100_000)}}`)),
  'not an object': () => raw(framed('17')),
  'endless notifications': () => flood(notification.repeat(500)),
  'endless questions': () =>
    flood(framed(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'workspace/configuration' })).repeat(500)),
  'endless stderr': () => {
    const go = () => {
      while (process.stderr.write('e'.repeat(64 * 1024)));
      process.stderr.once('drain', go)
    }
    go()
  },
  refuses: (id) => send({ id, error: { code: -32602, message: 'no such position' } }),
  'wrong ids': (id) => {
    for (const wrong of [-1, id + 1, String(id), null, [id], { id }]) send({ id: wrong, result: [{ label: 'wrong' }] })
    send({ id, result: [{ label: 'right' }] })
    send({ id, result: [{ label: 'twice' }] })
  },
  'odd answers': (id) => send({ id, result: { items: [1, { label: {} }, { label: 'odd', kind: 'x' }] } }),
}

const documents = new Map()
const answer = {
  initialize: ({ rootUri }) => ({ capabilities: {}, rootUri }),
  'textDocument/completion': ({ textDocument, context }) => ({
    isIncomplete: false,
    items: [{ label: `${documents.get(textDocument.uri) ?? 'closed'} ${context.triggerKind}` }],
  }),
  'textDocument/documentSymbol': ({ textDocument }) => [
    { name: documents.get(textDocument.uri) ?? 'closed', kind: 5, location: { uri: textDocument.uri } },
  ],
  'workspace/symbol': ({ query }) => [{ name: query, kind: 12, location: { uri: 'file:///w' } }],
}

const hear = ({ id, method, params }) => {
  if (method === 'textDocument/didOpen')
    documents.set(params.textDocument.uri, `${params.textDocument.languageId} ${params.textDocument.text}`)
  if (method === 'textDocument/didClose') documents.delete(params.textDocument.uri)
  if (method === 'initialized' && mode === 'floods alone') flood(notification.repeat(500))
  if (id === undefined || method === undefined) return
  if (method === 'textDocument/completion' && misbehave[mode]) misbehave[mode](id)
  else if (answer[method]) send({ id, result: answer[method](params) })
  else send({ id, error: { code: -32601, message: 'unknown' } })
}

if (mode === 'speaks no protocol') raw('usage: pylsp\r\n\r\n')
else if (mode === 'does not start') process.exit(2)
appendFileSync('started', `${process.pid}\n`)

let held = Buffer.alloc(0)
process.stdin.on('data', (data) => {
  held = Buffer.concat([held, data])
  for (;;) {
    const end = held.indexOf('\r\n\r\n')
    const length = Number(/Content-Length: (\d+)/.exec(held.toString('latin1', 0, Math.max(end, 0)))?.[1])
    if (end === -1 || held.length < end + 4 + length) return
    const message = JSON.parse(held.toString('utf8', end + 4, end + 4 + length))
    held = held.subarray(end + 4 + length)
    hear(message)
    if (mode === 'reads nothing' && message.method === 'initialized') process.stdin.pause()
  }
})
process.stdin.on('end', () => process.exit())
