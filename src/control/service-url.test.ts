import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { readServiceUrl } from './service-url.ts'

suite('the URL of a service that an organization runs itself', () => {
  test('`readServiceUrl` accepts a service’s URL unchanged, even with a private address', () => {
    const urls = [
      'https://otel.example.com',
      'http://10.0.0.7:4318/v1/traces',
      'http://localhost:4601',
      'https://proxy.example.com/a?b=c',
      'http://[fd12::1]:80/',
      'HTTPS://Example.com',
    ]
    for (const url of urls) assert.equal(readServiceUrl('endpoint', ` ${url}\n`), url)
  })

  test('`readServiceUrl` refuses invalid URLs, URLs with credentials, and link-local or metadata addresses', () => {
    const urls = [
      '',
      'example.com',
      'ftp://example.com',
      'file:///etc/passwd',
      'javascript:alert(1)',
      'http:example.com',
      'http:///example.com',
      'http://',
      'http://a b',
      'http://a\nb',
      'http://exa\u200bmple.com',
      'https://user:pass@example.com',
      'https://user@example.com',
      'https://@example.com',
      'https://example.com/#x',
      'http://169.254.169.254/latest/meta-data',
      'http://169.254.169.254./',
      'http://2852039166/',
      'http://0xa9fea9fe/',
      'http://0251.0376.0251.0376/',
      'http://[::ffff:169.254.169.254]/',
      'http://[64:ff9b::a9fe:a9fe]/',
      'http://[2002:a9fe:a9fe::]/',
      'http://[fe80::1]/',
      'http://[::]/',
      'http://0/',
      'http://[fd00:ec2::254]/',
      'http://metadata.google.internal/',
      'http://METADATA.google.internal./',
      'http://255.255.255.255/',
      `https://example.com/${'a'.repeat(2048)}`,
    ]
    for (const url of urls) {
      assert.throws(() => readServiceUrl('endpoint', url), { code: 'bad_request', message: /^endpoint / }, url)
    }
  })
})
