import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { newPrivateKey, parsePrivateKey } from './ssh-key.ts'

/** The library ssh2 made this key but cannot read it: ssh2 left out the zero byte at the start of the public key. */
const unreadable = `-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMgAAAAtz
c2gtZWQyNTUxOQAAAB/7iKNONPzQPEvNjejzTlWzn209NZw0OEGL6e25BnQ0AAAA
iCboCxkm6AsZAAAAC3NzaC1lZDI1NTE5AAAAH/uIo040/NA8S82N6PNOVbOfbT01
nDQ4QYvp7bkGdDQAAAA/z9gmVNsLGRE0La3vs+ew+NqdE+7uK90KNxGT11bZlUL7
iKNONPzQPEvNjejzTlWzn209NZw0OEGL6e25BnQ0AAAAAAECAwQFBgc=
-----END OPENSSH PRIVATE KEY-----
`

suite('a new key for SSH', () => {
  test('if a new SSH key cannot be read, `newPrivateKey` makes another SSH key', () => {
    assert.ok(parsePrivateKey(unreadable) instanceof Error)
    const made = [unreadable, unreadable, newPrivateKey()]
    const expected = made.at(-1)
    assert.equal(
      newPrivateKey(() => made.shift() ?? assert.fail()),
      expected,
    )
  })
})
