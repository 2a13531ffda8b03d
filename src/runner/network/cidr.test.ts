import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { type Cidr, overlap, parseCidr, withoutNested } from './cidr.ts'
import { toDotted } from './names.ts'

const parsed = (text: string) => parseCidr(text) as Cidr

suite('IPv4 blocks (CIDR)', () => {
  test('`parseCidr` reads an IPv4 block or a single address, and sets the bits after the prefix to 0', () => {
    assert.deepEqual(parseCidr('10.0.0.0/8'), { base: 10 * 2 ** 24, bits: 8 })
    assert.deepEqual(parseCidr(' 255.255.255.255 '), { base: 2 ** 32 - 1, bits: 32 })
    assert.deepEqual(parseCidr('192.168.3.77/16'), parseCidr('192.168.0.0/16'))
    assert.deepEqual(parseCidr('200.1.2.3/0'), { base: 0, bits: 0 })
  })

  test('`parseCidr` returns undefined for any text that is not an IPv4 address or block', () => {
    const wrong = [
      '',
      '1.2.3',
      '1.2.3.4.5',
      '256.1.1.1',
      '1.2.3.4/33',
      '1.2.3.4/',
      '1.2.3.4/-1',
      '::1/64',
      'a.b.c.d',
      '1.2.3.4/8 x',
      '0x1.2.3.4',
    ]
    for (const text of wrong) assert.equal(parseCidr(text), undefined, text)
  })

  test('`overlap` returns true if two IPv4 blocks have an address in common, in either order of arguments', () => {
    assert.ok(overlap(parsed('10.0.0.0/8'), parsed('10.9.0.0/16')))
    assert.ok(overlap(parsed('10.9.0.0/16'), parsed('0.0.0.0/0')))
    assert.ok(!overlap(parsed('10.0.0.0/9'), parsed('10.128.0.0/9')))
  })

  test('`withoutNested` returns blocks that do not overlap, with all addresses of the blocks in its argument', () => {
    const block = fc
      .tuple(fc.integer({ min: 0, max: 2 ** 32 - 1 }), fc.integer({ min: 0, max: 32 }))
      .map(([address, bits]) => parsed(`${toDotted(address)}/${bits}`))
    fc.assert(
      fc.property(fc.array(block, { maxLength: 10 }), (blocks) => {
        const kept = withoutNested([...blocks, ...blocks])
        for (const one of blocks) assert.ok(kept.some((other) => other.bits <= one.bits && overlap(other, one)))
        for (const [index, one] of kept.entries()) {
          for (const other of kept.slice(index + 1)) assert.ok(!overlap(one, other))
        }
      }),
    )
  })
})
