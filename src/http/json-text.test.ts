import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { deepest, findTooMuch, mostValues } from './json-text.ts'

const long = 'x'.repeat(mostValues)

suite('the limits of a JSON text', () => {
  test('the server accepts a JSON text with at most as many values as the limit allows', () => {
    const list = (length: number) => JSON.stringify(Array.from({ length }, (_, index) => index))
    assert.equal(findTooMuch(list(mostValues + 1)), undefined)
    assert.match(findTooMuch(list(mostValues + 2))!, /^body must not hold more than 10000 values$/)
    const twice = `{${'"a":1,'.repeat(mostValues + 1)}"a":1}`
    assert.match(findTooMuch(twice)!, /values/)
  })

  test('the server accepts a JSON text that is nested at most as deep as the limit allows', () => {
    const nested = (depth: number) => `${'['.repeat(depth)}"${long}"${']'.repeat(depth)}`
    assert.equal(findTooMuch(nested(deepest)), undefined)
    assert.match(findTooMuch(nested(deepest + 1))!, /^body must not be nested deeper than 64 levels$/)
  })

  test('commas and brackets inside strings of a JSON text do not count as values or nesting', () => {
    const marks = ',[{'.repeat(mostValues)
    for (const text of [marks, `${marks}"`, `"${marks}\\`, `\\"${marks}\\\\"${marks}`, `${marks}\\\\`]) {
      assert.equal(findTooMuch(JSON.stringify([text, { [text]: text }])), undefined)
    }
    assert.match(findTooMuch(`["\\\\"${',1'.repeat(mostValues + 1)}]`)!, /values/)
  })

  test('`findTooMuch` accepts a JSON text that ends inside a string, because the parser refuses it later', () => {
    for (const text of [`["${long}`, `["${long}\\`, `["${long}\\"`, `{"${long}\\\\\\"`])
      assert.equal(findTooMuch(text), undefined)
  })
})
