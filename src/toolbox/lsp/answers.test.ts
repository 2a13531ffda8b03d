import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { completionsOf, symbolsOf } from './answers.ts'

const at = (line: number, character: number) => ({ line, character })
const range = { start: at(1, 2), end: at(1, 5) }
const nowhere = { start: at(0, 0), end: at(0, 0) }

suite('answers of language servers in the shapes of the API', () => {
  test('`completionsOf` returns a list if the language server sends a CompletionList, an array or null', () => {
    const item = {
      label: 'greet',
      kind: 2,
      detail: 'method',
      sortText: '1',
      filterText: 'greet',
      insertText: 'greet()',
    }
    const list = { isIncomplete: true, items: [{ ...item, data: { secret: 1 }, command: {} }] }
    assert.deepEqual(completionsOf(list), { isIncomplete: true, items: [item] })
    assert.deepEqual(completionsOf([item]), { isIncomplete: false, items: [item] })
    assert.deepEqual(completionsOf(null), { isIncomplete: false, items: [] })
  })

  test('`completionsOf` returns the documentation of a completion as an object with kind and value', () => {
    const documentationIn = (documentation: unknown) =>
      completionsOf([{ label: 'a', documentation }]).items[0]?.documentation
    assert.deepEqual(documentationIn('text'), { kind: 'plaintext', value: 'text' })
    assert.deepEqual(documentationIn({ kind: 'markdown', value: '# a', more: [] }), { kind: 'markdown', value: '# a' })
    for (const wrong of [1, null, [], { value: {} }]) assert.equal(documentationIn(wrong), undefined)
  })

  test('`symbolsOf` returns a flat list, even if the language server nests symbols or omits their range', () => {
    const uri = 'file:///a.py'
    const nested = { name: 'A', kind: 5, range, children: [{ name: 'b', kind: 6, range, selectionRange: range }] }
    assert.deepEqual(symbolsOf([nested], uri), [
      { name: 'A', kind: 5, location: { uri, range } },
      { name: 'b', kind: 6, location: { uri, range } },
    ])
    const other = { name: 'c', kind: 12, location: { uri: 'file:///b.py' } }
    assert.deepEqual(symbolsOf([other]), [{ ...other, location: { uri: 'file:///b.py', range: nowhere } }])
    assert.deepEqual(symbolsOf(null), [])
  })

  test('`symbolsOf` refuses many symbols of a file with a long name, because the answer would be huge', () => {
    const symbols = (count: number) => [{ name: 'A', children: Array.from({ length: count }, () => ({ name: 'b' })) }]
    const uri = `file:///${'a'.repeat(12_000)}`
    assert.throws(() => symbolsOf(symbols(100_000), uri), { code: 'unprocessable' })
    assert.equal(symbolsOf(symbols(100_000), 'file:///a.py').length, 100_001)
    assert.equal(symbolsOf(symbols(1000), uri).length, 1001)
  })

  test('a language server’s field of a wrong type is dropped, or becomes 0 if the API requires a number', () => {
    for (const wrong of [1, 'x', true, {}, { items: {} }, { items: [1, null, {}, { label: 2 }] }]) {
      assert.deepEqual(completionsOf(wrong).items, [])
    }
    assert.deepEqual(completionsOf([{ label: 'a', kind: 'x', detail: 1, sortText: null }]).items, [{ label: 'a' }])
    assert.deepEqual(
      symbolsOf([1, null, { name: 1 }, { name: 'a', kind: 1e300, location: 7, range: { start: 'x' } }], 'u'),
      [{ name: 'a', kind: 0, location: { uri: 'u', range: nowhere } }],
    )
  })
})
