import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { shownLines, shownName, shownText, webAddress } from './shown-text.ts'

suite('texts that untrusted users and programs wrote', () => {
  test('the dashboard replaces three kinds of characters by a visible sign: control, direction, invisible', () => {
    assert.equal(shownText('a\u202eb\u0007c\nd'), 'a\ufffdb\ufffdc\ufffdd')
    assert.equal(shownText('prod\u200bab\u00adc\u3164'), 'prod\ufffdab\ufffdc\ufffd')
    assert.equal(shownText('naïve שלום 👩‍🚀\tx'), 'naïve שלום 👩‍🚀\tx')
  })

  test('the dashboard shows a name in one line, cuts a long name, and cuts no surrogate pair in two', () => {
    assert.equal(shownName('photo\u202egnp\n\t<b>'), 'photo\ufffdgnp\ufffd\ufffd<b>')
    assert.equal(shownName('x'.repeat(1000), 10), `${'x'.repeat(10)}…`)
    assert.equal(shownName('👩'.repeat(10), 3), '👩\ufffd…')
  })

  test('the dashboard shows the lines of an output without colours and without texts that were overwritten', () => {
    assert.equal(shownLines('exit code 3\n\u001b[31mred\u001b[0m\r\n10 %\r20 %'), 'exit code 3\nred\n20 %')
  })

  test('`webAddress` returns undefined for a text that is no http or https address, such as `javascript:…`', () => {
    for (const wrong of ['javascript:alert(1)', 'data:text/html,x', 'file:///etc', '//host/x', 'host', ''])
      assert.equal(webAddress(wrong), undefined, wrong)
    assert.equal(webAddress('https://example.com/a b'), 'https://example.com/a%20b')
  })
})
