import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { networkBody, networkProblem, readNetwork } from './network.ts'

suite('the form of the network', () => {
  test('the network form shows the mode (open, closed, listed), and even a closed network’s allow lists', () => {
    assert.equal(readNetwork({ networkBlockAll: false }).mode, 'open')
    assert.deepEqual(readNetwork({ networkBlockAll: true, domainAllowList: 'a.example,b.example' }), {
      mode: 'closed',
      domains: 'a.example\nb.example',
      addresses: '',
    })
    assert.equal(readNetwork({ networkBlockAll: false, networkAllowList: '198.51.100.0/24' }).mode, 'listed')
  })

  test('the network form sends also empty lists of domains and addresses, so that the server clears both', () => {
    assert.deepEqual(networkBody({ mode: 'listed', domains: ' a.example \n\nb.example,', addresses: '' }), {
      networkBlockAll: false,
      domainAllowList: 'a.example,b.example',
      networkAllowList: '',
    })
  })

  test('the network form refuses the mode `listed` with two empty lists, which would allow all traffic', () => {
    assert.match(networkProblem({ mode: 'listed', domains: ' \n', addresses: ',' }) ?? '', /at least one/)
    assert.equal(networkProblem({ mode: 'listed', domains: 'a.example', addresses: '' }), undefined)
    assert.equal(networkProblem({ mode: 'closed', domains: '', addresses: '' }), undefined)
  })
})
