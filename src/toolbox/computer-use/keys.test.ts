import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { chordOf, readHotkey } from './keys.ts'

suite('names of keys that computer use accepts', () => {
  test('`chordOf` returns the X11 names of a key and its modifiers, joined by a plus', () => {
    for (const [key, modifiers, chord] of [
      ['enter', [], 'Return'],
      ['Return', [], 'Return'],
      ['Escape', [], 'Escape'],
      ['c', ['ctrl'], 'ctrl+c'],
      ['T', ['Control', 'shift'], 'ctrl+shift+T'],
      ['v', ['cmd'], 'super+v'],
      ['tab', ['option'], 'alt+Tab'],
      ['F12', [], 'F12'],
      ['/', ['ctrl'], 'ctrl+slash'],
      [' ', [], 'space'],
      ['num_plus', [], 'KP_Add'],
      ['num7', [], 'KP_7'],
      ['shift', [], 'shift'],
      ['a', ['ctrl', 'control'], 'ctrl+a'],
    ] as const) {
      assert.equal(chordOf(key, modifiers), chord, key)
    }
  })

  test('`readHotkey` accepts a hotkey with spaces, with only a modifier, or with plus as the key', () => {
    for (const [keys, chord] of [
      ['ctrl+c', 'ctrl+c'],
      [' ctrl + c ', 'ctrl+c'],
      ['cmd+shift+t', 'super+shift+t'],
      ['shift', 'shift'],
      ['ctrl++', 'ctrl+plus'],
      ['+', 'plus'],
    ] as const) {
      assert.equal(readHotkey(keys), chord, keys)
    }
  })

  test('`chordOf` and `readHotkey` throw 400 for any text that names no key, such as an option of xdotool', () => {
    const names = [
      '--window',
      'a b',
      'ctrl c',
      'KP_Add',
      'f25',
      '',
      'constructor',
      '__proto__',
      'aa',
      '\n',
      'é',
      '$(id)',
    ]
    for (const name of names) assert.throws(() => chordOf(name), { status: 400 }, name)
    for (const name of ['a', 'ctrl+alt', 'toString']) assert.throws(() => chordOf('a', [name]), { status: 400 }, name)
    for (const keys of ['ctrl+', '+c', '++', '+++', 'a+b', 'ctrl++c', 'ctrl+--window']) {
      assert.throws(() => readHotkey(keys), { status: 400 }, keys)
    }
  })
})
