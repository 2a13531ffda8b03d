import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { isWebAddress, minutesText, nameOf, networkText, timerText } from './words.ts'

suite('the words for the settings of a sandbox', () => {
  test('the dashboard shows minutes as days, hours and minutes, without zero units; zero is “0 minutes”', () => {
    assert.equal(minutesText(0), '0 minutes')
    assert.equal(minutesText(1), '1 minute')
    assert.equal(minutesText(60), '1 hour')
    assert.equal(minutesText(1441), '1 day 1 minute')
    assert.equal(minutesText(43_200), '30 days')
  })

  test('for each timer, the dashboard says in words what 0 and a negative number mean', () => {
    assert.equal(timerText.autoStopInterval(0), 'Does not stop by itself')
    assert.equal(timerText.autoArchiveInterval(0), 'Is archived as late as the server allows after it stops')
    assert.equal(timerText.autoDeleteInterval(0), 'Is deleted as soon as it stops')
    assert.equal(timerText.autoDeleteInterval(-1), 'Is not deleted by itself')
    assert.equal(timerText.autoDeleteInterval(90), 'Is deleted 1 hour 30 minutes after it stops')
  })

  test('`networkText` names all domains and addresses that a sandbox may call, but none for a closed network', () => {
    const lists = { networkAllowList: '198.51.100.0/24', domainAllowList: 'example.com, *.example.org' }
    assert.match(networkText({ networkBlockAll: true, ...lists }), /^Closed/)
    assert.equal(networkText({ networkBlockAll: false, ...lists }), 'Only example.com, *.example.org, 198.51.100.0/24')
    assert.match(networkText({ networkBlockAll: false }), /^Open/)
    assert.match(networkText({ networkBlockAll: false, networkAllowList: '' }), /^Open/)
  })

  test('`isWebAddress` is false for addresses that the browser would run as a script', () => {
    assert.equal(isWebAddress('http://3000-a.localhost:5601'), true)
    for (const wrong of ['javascript:alert(1)', 'data:text/html,x', ' http://a', '']) {
      assert.equal(isWebAddress(wrong), false, wrong)
    }
  })

  test('the dashboard shows a deleted sandbox under its former name, and any other sandbox under its name', () => {
    const name = 'DESTROYED_my_box_1795727206306'
    assert.equal(nameOf({ name, state: 'destroying' }), 'my_box')
    assert.equal(nameOf({ name, state: 'started' }), name)
    assert.equal(nameOf({ name: 'box', state: 'destroyed' }), 'box')
  })
})
