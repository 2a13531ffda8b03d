import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { readStoreAddress } from './store-address.ts'

const read = (address: string, accessKey: string | undefined = 'key', secret: string | undefined = 'secret') =>
  readStoreAddress({ address, accessKey, secret })

suite('the address of an object store', () => {
  test('a file: address of a store becomes an absolute path, in which `%20` and `..` are resolved', () => {
    assert.deepEqual(read('file:///srv/a%20b/../c'), { kind: 'directory', path: '/srv/c' })
    assert.deepEqual(read('file:///srv/a%20b', undefined, undefined), { kind: 'directory', path: '/srv/a b' })
  })

  test('an s3: address of a store has a bucket, and may have a prefix, an endpoint and a region', () => {
    assert.deepEqual(read('s3://box'), {
      kind: 's3',
      endpoint: new URL('https://s3.us-east-1.amazonaws.com'),
      region: 'us-east-1',
      bucket: 'box',
      prefix: '',
      accessKey: 'key',
      secret: 'secret',
    })
    assert.deepEqual(read('s3://box/a/b/?endpoint=http://127.0.0.1:9000&region=eu-1'), {
      kind: 's3',
      endpoint: new URL('http://127.0.0.1:9000'),
      region: 'eu-1',
      bucket: 'box',
      prefix: 'a/b/',
      accessKey: 'key',
      secret: 'secret',
    })
  })

  const wrong: [string, RegExp][] = [
    ['/srv/archive', /must begin with/],
    ['ftp://host/x', /must begin with/],
    ['file://host/srv', /must be file/],
    ['file:///', /must be file/],
    ['file:///srv?x=1', /must be file/],
    ['file:///srv/%2fetc', /must be file/],
    ['s3://', /names no bucket/],
    ['s3://B_b/x', /names no bucket/],
    ['s3://box/a//b', /prefix/],
    ['s3://box/a b', /prefix/],
    ['s3://box?endpoint=nonsense', /endpoint/],
    ['s3://box?endpoint=ftp://host', /endpoint/],
    ['s3://box?endpoint=http://user@host', /endpoint/],
    ['s3://box?endpoint=http://host/path', /endpoint/],
    ['s3://box?region=EU', /region/],
    ['s3://box?secret=x', /knows no "secret"/],
    ['s3://key:secret@box/x', /must not hold a key/],
  ]
  for (const [address, sentence] of wrong) {
    test(`the store address "${address}" is refused with a sentence that says what is wrong`, () => {
      assert.match(String(read(address)), sentence)
    })
  }

  test('an S3 store address without key or secret is refused; the error names both settings and no value', () => {
    for (const [key, secret] of [
      ['', 'secret'],
      ['key', ''],
      ['', ''],
    ]) {
      assert.match(
        String(read('s3://box', key, secret)),
        /ALCOVE_ARCHIVE_S3_KEY and ALCOVE_ARCHIVE_S3_SECRET must be set$/,
      )
    }
  })

  test('`readStoreAddress` returns an address or an error text for any text, and never throws', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.webUrl(),
          fc.string().map((rest) => `s3://${rest}`),
          fc.string().map((rest) => `file://${rest}`),
        ),
        (text) => {
          const said = read(text)
          assert.ok(typeof said === 'string' ? said.length > 5 : said.kind === 's3' || said.path.startsWith('/'))
        },
      ),
      { numRuns: 2000 },
    )
  })
})
