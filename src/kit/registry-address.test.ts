import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { accountFor, readRegistryAddress } from './registry-address.ts'

suite('the address of a registry', () => {
  test('each spelling of a registry’s address is read as the host in the form that image names have', () => {
    const hosts = {
      'ghcr.io': 'ghcr.io',
      ' https://GHCR.io/ ': 'ghcr.io',
      'https://registry.example:5000': 'registry.example:5000',
      'https://registry.example:443': 'registry.example',
      'localhost:5000': 'localhost:5000',
      localhost: 'localhost',
      '1234.dkr.ecr.eu-central-1.amazonaws.com': '1234.dkr.ecr.eu-central-1.amazonaws.com',
      'https://europe-docker.pkg.dev/v2/': 'europe-docker.pkg.dev',
      '198.51.100.7:5000': '198.51.100.7:5000',
    }
    for (const [given, host] of Object.entries(hosts))
      assert.deepEqual(readRegistryAddress(given), { host, isPlain: false }, given)
    assert.deepEqual(readRegistryAddress('HTTP://a.example:80'), { host: 'a.example:80', isPlain: true })
  })

  test('each of Docker Hub’s host names is read as the registry docker.io', () => {
    for (const given of ['docker.io', 'https://index.docker.io/v1/', 'registry-1.docker.io', 'Registry.Hub.Docker.com'])
      assert.deepEqual(readRegistryAddress(given), { host: 'docker.io', isPlain: false }, given)
  })

  test('the address of a registry that cannot be used is refused with an error that says why', () => {
    const wrong = {
      '': /must be the host/,
      'file:///etc/passwd': /must begin with https/,
      'file:/etc/passwd': /must have no path/,
      'ftp://a.example': /must begin with https/,
      'https://me:secret@a.example': /no credentials/,
      'a.example/team/app': /no path/,
      'a.example/v2/../x': /no path/,
      'a.example?x=1': /only the host/,
      'a.example#x': /only the host/,
      'a.example\\x': /only the host/,
      'a b.example': /only the host/,
      'a.example\r\nx': /only the host/,
      ghcr: /dot or a port/,
      '1.5': /must be the host/,
      '0x7f.1': /must be the host/,
      '2130706433:80': /must be the host/,
      '[::1]:5000': /must be the host/,
      'a.example:0': /must be the host/,
      'a.example:99999': /must be the host/,
      'a..example': /must be the host/,
      'münchen.example': /must be the host/,
      [`${'a'.repeat(63)}.`.repeat(5)]: /must be the host/,
    }
    for (const [given, why] of Object.entries(wrong)) assert.match(String(readRegistryAddress(given)), why, given)
  })
})

suite('the registry credentials that are used for an image', () => {
  const account = (host: string, project = '') => ({ host, project })
  const named = (registry: string, repository: string) => ({ registry, repository })

  test('an image is pulled with the account for the longest prefix of its name, or the account for all names', () => {
    const accounts = [account('a.example', 'team'), account('a.example'), account('a.example', 'team/tools')]
    const found = (repository: string) => accountFor(named('a.example', repository), accounts)?.project
    assert.deepEqual(['team/tools/x', 'team/app', 'teams/app', 'team', 'other'].map(found), [
      ...['team/tools', 'team', '', 'team', ''],
    ])
  })

  test('the only account at a registry is used for all images of that registry, and for no other images', () => {
    const accounts = [account('docker.io', 'team')]
    assert.equal(accountFor(named('docker.io', 'library/python'), accounts), accounts[0])
    assert.equal(accountFor(named('index.docker.io', 'team/app'), accounts), accounts[0])
    for (const other of ['docker.io.example', 'docker.io:5000', 'xdocker.io', 'ghcr.io'])
      assert.equal(accountFor(named(other, 'team/app'), accounts), undefined, other)
    assert.equal(accountFor(named('A.example:443', 'x'), [account('a.example')])?.host, 'a.example')
  })
})
