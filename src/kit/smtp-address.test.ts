import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { readSmtpAddress } from './smtp-address.ts'

const from = 'Alcove <alcove@example.com>'

suite('the address of the mail server', () => {
  test('a mail server’s address gets a default port, and needs TLS for a password unless the server is local', () => {
    assert.deepEqual(readSmtpAddress('smtp://me:p%40ss%3A@mail.example.com', from), {
      host: 'mail.example.com',
      port: 587,
      isTls: false,
      needsTls: true,
      credentials: { user: 'me', pass: 'p@ss:' },
      from,
    })
    const plain = { credentials: undefined, needsTls: false, from: 'a@b.c' }
    assert.deepEqual(readSmtpAddress('smtps://mail.example.com', 'a@b.c'), {
      ...plain,
      host: 'mail.example.com',
      port: 465,
      isTls: true,
    })
    assert.deepEqual(readSmtpAddress('smtp://[::1]:25/', 'a@b.c'), { ...plain, host: '::1', port: 25, isTls: false })
    const here = readSmtpAddress('smtp://me:x@127.0.0.1', from)
    assert.equal(typeof here === 'string' || here.needsTls, false)
  })

  test('an invalid address of a mail server is refused, and the error does not show its password', () => {
    const wrong: [string, string | undefined][] = [
      ['mail.example.com:587', from],
      ['http://me:hidden@mail.example.com', from],
      ['smtp://', from],
      ['smtp://me:hidden@mail.example.com/?tls=no', from],
      ['smtp://me:hidden%zz@mail.example.com', from],
      ['smtp://me:hidden@mail.example.com', undefined],
      ['smtp://mail.example.com', 'nobody'],
      ['smtp://mail.example.com', 'a@b.c\r\nBcc: x@y.z'],
      ['smtp://mail.example.com', 'a@b.c, x@y.z'],
      ['smtp://mail.example.com', 'A\n<a@b.c>'],
    ]
    for (const [url, sender] of wrong) {
      const complaint = readSmtpAddress(url, sender)
      assert.equal(typeof complaint, 'string', `${url} ${sender}`)
      assert.doesNotMatch(String(complaint), /hidden/)
    }
  })
})
