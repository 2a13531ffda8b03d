import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { readSshHostKey } from './ssh-host-key.ts'

suite('the host key of the SSH gateway', () => {
  test('an unreadable SSH host key causes an error that names the file and says what to do', () => {
    const secrets = mkdtempSync(join(tmpdir(), 'alcove-host-key-'))
    try {
      writeFileSync(join(secrets, 'ssh-host.key'), 'no key')
      assert.throws(() => readSshHostKey({ secrets }), /ssh-host\.key is not a private key .*Remove the file/)
    } finally {
      rmSync(secrets, { recursive: true, force: true })
    }
  })

  test('the SSH host key of a server is made only once; later calls return the same key', () => {
    const secrets = mkdtempSync(join(tmpdir(), 'alcove-host-key-'))
    try {
      const first = readSshHostKey({ secrets })
      assert.match(first.publicKey, /^ssh-ed25519 \S{68}$/)
      assert.deepEqual(readSshHostKey({ secrets }), first)
    } finally {
      rmSync(secrets, { recursive: true, force: true })
    }
  })
})
