import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { suite, test } from 'node:test'
import { Places } from './places.ts'

class Fake extends EventEmitter {
  isDestroyed = false

  destroy(): void {
    if (this.isDestroyed) return
    this.isDestroyed = true
    this.emit('close')
  }
}

const connect = (places: Places, address: string) => {
  const connection = new Fake()
  return { connection, place: places.take(connection, address) }
}

suite('the limits of open SSH connections', () => {
  test('`Places` refuses a new connection if too many clients of its network have not signed in', () => {
    const places = new Places({ mostStrangersOfOne: 2 })
    const [one] = [connect(places, '198.51.100.1'), connect(places, '198.51.100.1')]
    assert.equal(connect(places, '198.51.100.1').place, undefined)
    assert.ok(connect(places, '198.51.100.2').place)
    one.place?.settle()
    assert.ok(connect(places, '198.51.100.1').place)
  })

  test('`Places` closes the oldest connection without sign-in to make room, never one that has signed in', () => {
    const places = new Places({ mostStrangers: 2 })
    const settled = connect(places, '198.51.100.1')
    settled.place?.settle()
    const strangers = ['198.51.100.2', '198.51.100.3', '198.51.100.4'].map((address) => connect(places, address))
    assert.deepEqual(
      [settled, ...strangers].map(({ connection }) => connection.isDestroyed),
      [false, true, false, false],
    )
  })

  test('`Places` limits the connections of one network, and accepts a new one after another has closed', () => {
    const places = new Places({ most: 3, mostOfOne: 2 })
    const held = [connect(places, '198.51.100.1'), connect(places, '198.51.100.1')]
    for (const { place } of held) place?.settle()
    assert.equal(connect(places, '198.51.100.1').place, undefined)
    assert.ok(connect(places, '198.51.100.2').place)
    assert.equal(connect(places, '198.51.100.3').place, undefined)
    held[0]?.connection.destroy()
    assert.ok(connect(places, '198.51.100.1').place)
  })

  test('`Places` counts the addresses of one IPv6 network together', () => {
    const places = new Places({ mostStrangersOfOne: 1 })
    assert.ok(connect(places, '2001:db8::1').place)
    assert.equal(connect(places, '2001:db8::2').place, undefined)
    assert.ok(connect(places, '2001:db8:0:1::1').place)
  })
})
