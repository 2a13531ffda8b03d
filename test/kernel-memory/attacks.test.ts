import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { suite, test } from 'node:test'
import { attacks, holds, noiseMiB, slowAttacks, watchedAttacks } from './attacks.ts'

suite('attacks on the kernel’s memory', () => {
  test('each attack on kernel memory is listed in docs/reference/kernel-memory.md and made by attacks.c', () => {
    const page = readFileSync(new URL('../../docs/reference/kernel-memory.md', import.meta.url), 'utf8')
    const program = readFileSync(new URL('attacks/attacks.c', import.meta.url), 'utf8')
    const names = [...attacks, ...watchedAttacks, ...slowAttacks].map(({ name }) => name)
    assert.deepEqual(
      names.filter((name) => !page.includes(`\`${name}\``)),
      [],
    )
    const known = [...program.matchAll(/^ {4}\{"([a-z\d-]+)", /gm)].map((match) => match[1])
    assert.deepEqual(known.toSorted(), names.toSorted())
  })

  test('an attack counts as successful if it made forbidden objects, or used much memory outside the cgroup', () => {
    const base = { name: 'x', object: 'x', bound: 'x' }
    const measured = { made: 1, unchargedMiB: noiseMiB + 10, chargedMiB: 0 }
    assert.equal(holds({ ...base, verdict: 'refused' }, measured), false)
    assert.equal(holds({ ...base, verdict: 'refused' }, { ...measured, made: 0 }), true)
    assert.equal(holds({ ...base, verdict: 'charged' }, measured), false)
    assert.equal(holds({ ...base, verdict: { boundedMiB: 20 } }, measured), true)
  })
})
