import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { readAnswer } from './ask.ts'
import { Nodes, Point, Screenshot, Windows } from './schemas.ts'
import { treeOf } from './tree.ts'

const row = (id: string, parent: number | null) => ({
  ...{ id, parent, name: id, role: 'frame', description: '' },
  ...{ states: [] as string[], actions: [] as string[] },
})

suite('the accessibility tree of a sandbox’s desktop', () => {
  test('`treeOf` makes the tree of a screen’s elements from rows, and keeps the order of the rows', () => {
    const rows = [row('a', null), row('b', 0), row('c', 1), row('d', 0)]
    const { root, truncated } = treeOf({ rows, truncated: true })
    assert.deepEqual(
      [root?.id, root?.children?.map(({ id }) => id), root?.children?.[0]?.children?.map(({ id }) => id), truncated],
      ['a', ['b', 'd'], ['c'], true],
    )
    assert.deepEqual(treeOf({ rows: [], truncated: false }), { truncated: false })
  })

  test('`treeOf` throws 422 for rows with a cycle, with two roots, without a root or with too many levels', () => {
    for (const rows of [
      [row('a', 0)],
      [row('a', null), row('b', 2), row('c', 1)],
      [row('a', null), row('b', null)],
      [row('a', null), row('b', -1)],
      Array.from({ length: 200 }, (_, at) => row('a', at === 0 ? null : at - 1)),
    ]) {
      assert.throws(() => treeOf({ rows, truncated: false }), { status: 422 })
    }
  })
})

suite('the answer of a sandbox to a computer use call', () => {
  const answer = (value: unknown) => JSON.stringify(value)

  test('`readAnswer` returns a desktop program’s result, and throws 422 for a field that is not expected', () => {
    assert.deepEqual(readAnswer(answer({ result: { x: 1, y: 2 } }), Point), { x: 1, y: 2 })
    assert.throws(() => readAnswer(answer({ result: { x: 1, y: 2, z: 3 } }), Point), { status: 422 })
    assert.throws(() => readAnswer(answer({ result: { x: 1, y: 2 }, more: 1 }), Point), { status: 422 })
  })

  test('`readAnswer` accepts a long screenshot, but throws 422 for a text with very many JSON escapes', () => {
    const picture = (screenshot: string) =>
      readAnswer(answer({ result: { screenshot, cursorPosition: { x: 1, y: 1 }, sizeBytes: 1 } }), Screenshot)
    assert.equal(picture('A'.repeat(600_000)).screenshot.length, 600_000)
    assert.throws(() => picture('"'.repeat(300_000)), { status: 422 })
  })

  test('`readAnswer` returns the title of a window unchanged, whatever characters it has', () => {
    const title = '\u001b]0;x\u0007\n{"result":[]}\ud800'
    const window = { id: 1, title, x: -5, y: 0, width: 1, height: 1, isActive: false }
    assert.deepEqual(readAnswer(answer({ result: { windows: [window] } }), Windows), { windows: [window] })
  })

  test('`readAnswer` throws the status that fits a desktop program’s refusal, and 422 for an unknown refusal', () => {
    for (const [refusal, status] of [
      ['bad', 400],
      ['unknown', 404],
      ['late', 408],
      ['stopped', 409],
      ['failed', 422],
      ['missing', 422],
      ['many', 429],
      ['constructor', 422],
    ] as const) {
      assert.throws(() => readAnswer(answer({ refusal, message: 'Why.' }), Point), { status })
    }
  })

  test('`readAnswer` throws 422 for text that is no JSON, for wrong types, deep nesting and too many values', () => {
    for (const text of [
      '',
      'Traceback',
      '{"result":{"x":1}',
      answer({ result: { x: '1', y: 2 } }),
      answer({ result: null }),
      answer([]),
      answer({ refusal: 'bad', message: 1 }),
      answer({ refusal: 'bad', message: 'x'.repeat(5000) }),
      `{"result":${'['.repeat(50_000)}`,
      `{"result":{"matches":[${'1,'.repeat(300_000)}1],"truncated":false}}`,
    ]) {
      assert.throws(() => readAnswer(text, Nodes), { status: 422 }, text.slice(0, 100))
    }
  })
})
