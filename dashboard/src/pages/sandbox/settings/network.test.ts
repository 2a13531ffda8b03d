import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { networkBody, networkProblem, readNetwork } from './network.ts'

suite('the form of the network', () => {
  test('`readNetwork` finds the mode (open, closed or listed), and keeps the lists of a closed network', () => {
    assert.equal(readNetwork({ networkBlockAll: false }).mode, 'open')
    assert.deepEqual(readNetwork({ networkBlockAll: true, domainAllowList: 'a.example,b.example' }), {
      mode: 'closed',
      domains: 'a.example\nb.example',
      addresses: '',
    })
    assert.equal(readNetwork({ networkBlockAll: false, networkAllowList: '198.51.100.0/24' }).mode, 'listed')
  })

  test('`networkBody` sends the lists of domains and addresses even if empty, so that the server clears them', () => {
    assert.deepEqual(networkBody({ mode: 'listed', domains: ' a.example \n\nb.example,', addresses: '' }), {
      networkBlockAll: false,
      domainAllowList: 'a.example,b.example',
      networkAllowList: '',
    })
  })

  test('`networkProblem` refuses empty lists of domains and addresses: the server would allow all traffic', () => {
    assert.match(networkProblem({ mode: 'listed', domains: ' \n', addresses: ',' }) ?? '', /at least one/)
    assert.equal(networkProblem({ mode: 'listed', domains: 'a.example', addresses: '' }), undefined)
    assert.equal(networkProblem({ mode: 'closed', domains: '', addresses: '' }), undefined)
  })
})
