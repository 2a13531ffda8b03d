import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { VariableChange } from '#src/wire/access.ts'
import { changeVariables, type Variables } from './variables.ts'

const inherited = { PATH: '/usr/bin', LANG: 'C', TOKEN: 'placeholder-1' }
const none: Variables = { env: {}, unset_env: [] }

const change = (before: Partial<Variables>, wanted: Partial<VariableChange>) =>
  changeVariables({ ...none, ...before }, inherited, { set: {}, unset: [], ...wanted })

suite('a change of the variables of a sandbox', () => {
  test('a change of variables sets or overwrites the variables that it names, and keeps all others', () => {
    assert.deepEqual(change({ env: { A: '1', B: '2' } }, { set: { B: '', C: '3' } }), {
      env: { A: '1', B: '', C: '3' },
      unset_env: [],
    })
  })

  test('if one change both removes and sets a variable, the variable is set afterwards', () => {
    const before = { env: { A: '1', B: '2' } }
    assert.deepEqual(change(before, { unset: ['A', 'B'], set: { B: '3' } }), { env: { B: '3' }, unset_env: [] })
  })

  test('a variable of the image that a caller removes stays in `unset_env` until a caller sets it', () => {
    const without = change({ env: { LANG: 'de' } }, { unset: ['LANG', 'nowhere'] })
    assert.deepEqual(without, { env: {}, unset_env: ['LANG'] })
    assert.deepEqual(change(without!, { unset: ['PATH'] })?.unset_env, ['LANG', 'PATH'])
    assert.deepEqual(change(without!, { set: { LANG: 'fr' } }), { env: { LANG: 'fr' }, unset_env: [] })
  })

  test('`unsetValuePrefix` removes variables whose value has the prefix, unless the same change sets them', () => {
    const before = { env: { PATH: 'placeholder-2', MINE: 'placeholder-3', NEW: 'placeholder-4', A: 'no placeholder' } }
    assert.deepEqual(change(before, { unsetValuePrefix: 'placeholder-', set: { NEW: '1' } }), {
      env: { A: 'no placeholder', NEW: '1' },
      unset_env: ['PATH', 'TOKEN'],
    })
    // The image's TOKEN begins with the prefix, but the sandbox's own TOKEN replaces it. So nothing is removed.
    assert.equal(change({ env: { TOKEN: 'own' } }, { unsetValuePrefix: 'placeholder-' }), undefined)
    assert.equal(change({ env: { A: '1' } }, { unsetValuePrefix: '' }), undefined)
  })

  test('`changeVariables` returns undefined if no variable changes, so that the runner gets no assignment', () => {
    assert.equal(change({ env: { A: '1' } }, { set: { A: '1' }, unset: ['B'] }), undefined)
    assert.equal(change({ unset_env: ['LANG'] }, { unset: ['LANG'] }), undefined)
  })

  test('a variable may be named like a property of every object, such as `constructor`', () => {
    const set = JSON.parse('{"__proto__": "1", "constructor": "2", "toString": "3"}')
    const changed = change({}, { set })
    assert.equal(JSON.stringify(changed?.env), JSON.stringify(set))
    assert.deepEqual(change(changed!, { unset: ['__proto__', 'toString'] })?.env, { constructor: '2' })
    assert.equal(change({}, { unset: ['hasOwnProperty'] }), undefined)
  })

  test('a change of variables answers 400 for a name that no shell accepts, or too many variables or bytes', () => {
    const refused = (before: Partial<Variables>, set: Record<string, string>, message: RegExp) =>
      assert.throws(() => change(before, { set }), { status: 400, message })
    for (const name of ['', '1A', 'A-B', 'A=B', 'A B', 'Ä', 'A\n'])
      refused({}, { [name]: '' }, /not the name of a variable/)
    const many = Object.fromEntries(Array.from({ length: 1000 }, (_, n) => [`N${n}`, '']))
    refused({ env: many }, { ONE_MORE: '' }, /at most 1000 variables of its own, and this would be 1001/)
    assert.equal(
      Object.keys(changeVariables({ ...none, env: many }, {}, { set: { NEW: '' }, unset: ['N7'] })!.env).length,
      1000,
    )
    refused({ env: { A: 'x'.repeat(40_000) } }, { B: 'x'.repeat(40_000) }, /at most 65536 bytes/)
  })
})
