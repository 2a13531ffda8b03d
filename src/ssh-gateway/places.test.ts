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
  test('the SSH gateway refuses a connection if too many clients of its network have not signed in', () => {
    const places = new Places({ mostStrangersOfOne: 2 })
    const [one] = [connect(places, '198.51.100.1'), connect(places, '198.51.100.1')]
    assert.equal(connect(places, '198.51.100.1').place, undefined)
    assert.ok(connect(places, '198.51.100.2').place)
    one.place?.settle()
    assert.ok(connect(places, '198.51.100.1').place)
  })

  test('to make room, the SSH gateway closes the oldest connection without sign-in, never a signed-in one', () => {
    const places = new Places({ mostStrangers: 2 })
    const settled = connect(places, '198.51.100.1')
    settled.place?.settle()
    const strangers = ['198.51.100.2', '198.51.100.3', '198.51.100.4'].map((address) => connect(places, address))
    assert.deepEqual(
      [settled, ...strangers].map(({ connection }) => connection.isDestroyed),
      [false, true, false, false],
    )
  })

  test('the SSH gateway limits one network’s connections; if one closes, the network may open another', () => {
    const places = new Places({ most: 3, mostOfOne: 2 })
    const held = [connect(places, '198.51.100.1'), connect(places, '198.51.100.1')]
    for (const { place } of held) place?.settle()
    assert.equal(connect(places, '198.51.100.1').place, undefined)
    assert.ok(connect(places, '198.51.100.2').place)
    assert.equal(connect(places, '198.51.100.3').place, undefined)
    held[0]?.connection.destroy()
    assert.ok(connect(places, '198.51.100.1').place)
  })

  test('the SSH gateway counts connections from all addresses of one IPv6 network together', () => {
    const places = new Places({ mostStrangersOfOne: 1 })
    assert.ok(connect(places, '2001:db8::1').place)
    assert.equal(connect(places, '2001:db8::2').place, undefined)
    assert.ok(connect(places, '2001:db8:0:1::1').place)
  })
})
