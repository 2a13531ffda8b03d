import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { suite, test } from 'node:test'
import type { WebSocket } from 'ws'
import type { AccessAhead } from '#src/wire/access.ts'
import { GateLinks } from './gate-links.ts'

const message = { type: 'access', question: 'q', at: 0 } as AccessAhead

suite('the WebSockets of gates, over which control sends access answers', () => {
  test('control sends a message about a sandbox only to gates of control’s machine and of the sandbox’s host', () => {
    const links = new GateLinks()
    const told: string[] = []
    const add = (name: string, gateId?: string) => {
      const socket = { OPEN: 1, readyState: 1, bufferedAmount: 0, on: () => {}, send: () => told.push(name) }
      links.add(socket as unknown as WebSocket, gateId)
    }
    add('server')
    add('second', 'second')
    add('third', 'third')
    links.tell(message, 'second')
    assert.deepEqual(told.splice(0), ['server', 'second'])
    links.tell(message)
    assert.deepEqual(told, ['server'])
  })

  test('control removes the WebSocket of a gate from the list of gates when the WebSocket closes', () => {
    const links = new GateLinks()
    const socket = new EventEmitter() as unknown as WebSocket
    links.add(socket)
    assert.equal(links.size, 1)
    socket.emit('close')
    assert.equal(links.size, 0)
  })
})
