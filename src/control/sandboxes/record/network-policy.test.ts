import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { checkAllowList, checkDomainList, networkChange, networkOfNew } from './network-policy.ts'

suite('networkAllowList', () => {
  test('networkAllowList may have spaces between CIDRs; duplicates are removed', () => {
    assert.deepEqual(checkAllowList('1.2.3.4/32, 10.0.0.0/8,10.0.0.0/8'), ['1.2.3.4/32', '10.0.0.0/8'])
  })

  test('an absent or empty networkAllowList means that there is no list', () => {
    assert.equal(checkAllowList(''), null)
    assert.equal(checkAllowList(undefined), null)
  })

  test('a networkAllowList of only commas and spaces is refused, because an absent list allows all traffic', () => {
    for (const text of [',', ' , ', ' '])
      assert.throws(() => checkAllowList(text), { status: 400, message: /^networkAllowList has only commas/ })
  })

  test('the error for an invalid networkAllowList gives an example of an allowed CIDR', () => {
    assert.throws(() => checkAllowList('10'), { message: /such as 203\.0\.113\.0\/24, not "10"$/ })
  })

  for (const wrong of [
    '1.2.3.4',
    '1.2.3.4/33',
    '1.2.3/8',
    '::1/128',
    '1.2.3.4/8/8',
    'a.b.c.d/8',
    '1.2.3.4/ 8',
    '1.2.3.4/-1',
    '01.2.3.4/8',
  ]) {
    test(`the networkAllowList "${wrong}" is refused`, () => {
      assert.throws(() => checkAllowList(wrong), { status: 400 })
    })
  }

  test('a networkAllowList of eleven CIDRs is refused', () => {
    assert.throws(() => checkAllowList(Array.from({ length: 11 }, (_, n) => `10.0.${n}.0/24`).join(',')), {
      status: 400,
    })
  })
})

suite('domainAllowList', () => {
  test('names in domainAllowList are converted to the form that DNS uses; duplicates are removed', () => {
    assert.deepEqual(checkDomainList('API.Example.com, *.bücher.example.,api.example.com,_x.a_b.test'), [
      'api.example.com',
      '*.xn--bcher-kva.example',
      '_x.a_b.test',
    ])
    assert.equal(checkDomainList(''), null)
  })

  test('a domainAllowList of only commas and spaces is refused, because an absent list allows all traffic', () => {
    for (const text of [',', ' , ', ' '])
      assert.throws(() => checkDomainList(text), { status: 400, message: /^domainAllowList has only commas/ })
  })

  for (const wrong of [
    ...['*', '*.com', '*.*.example.com', 'a.*.com', '*example.com', 'localhost', 'com', '.example.com', 'a..com'],
    ...[
      '1.2.3.4',
      '*.1.2.3.4',
      '0x7f.1',
      '2130706433',
      '[::1]',
      'https://example.com',
      'example.com/x',
      'example.com:80',
    ],
    ...['a b.com', '-a.com', 'a-.com', 'a@b.com', 'ex%61mple.com', 'a.b?c', 'a\u200d.', `${'a'.repeat(64)}.com`],
    Array(64).fill('aaa').join('.'),
  ]) {
    test(`the domainAllowList "${wrong.slice(0, 70)}" is refused`, () => {
      assert.throws(() => checkDomainList(wrong), { status: 400 })
    })
  }

  test('a domainAllowList of eleven names is refused', () => {
    assert.throws(() => checkDomainList(Array.from({ length: 11 }, (_, n) => `a${n}.test`).join()), { status: 400 })
  })
})

suite('the network of a new sandbox', () => {
  const blocked = (given: Parameters<typeof networkOfNew>[0], isLimited: boolean) =>
    networkOfNew(given, isLimited).network_block_all

  test('if a create has no allow list or `networkBlockAll`, the organization’s default can block the network', () => {
    assert.equal(blocked({}, false), false)
    assert.equal(blocked({}, true), true)
    assert.equal(blocked({ networkAllowList: '', domainAllowList: '' }, true), true)
    assert.equal(blocked({ networkBlockAll: false }, true), false)
    assert.equal(blocked({ networkAllowList: '1.2.3.4/32' }, true), false)
    assert.equal(blocked({ domainAllowList: 'example.com' }, true), false)
    assert.equal(blocked({ domainAllowList: 'example.com', networkBlockAll: true }, false), true)
  })
})

suite('a change of the network rules of a sandbox', () => {
  test('a change replaces only the given lists; `networkBlockAll: false` alone removes addresses and domains', () => {
    assert.deepEqual(networkChange({ networkBlockAll: true }), { network_block_all: true })
    assert.deepEqual(networkChange({ domainAllowList: 'a.test' }), { domain_allow_list: ['a.test'] })
    assert.deepEqual(networkChange({ networkAllowList: '' }), { network_allow_list: null })
    assert.deepEqual(networkChange({ networkBlockAll: false }), {
      network_block_all: false,
      network_allow_list: null,
      domain_allow_list: null,
    })
    assert.deepEqual(networkChange({ networkBlockAll: false, domainAllowList: 'a.test' }), {
      network_block_all: false,
      domain_allow_list: ['a.test'],
    })
  })

  test('a change of a sandbox’s network settings without any field answers 400', () => {
    assert.throws(() => networkChange({}), { status: 400 })
  })
})
