// Makes keys for SSH by the library ssh2, and reads them.
import ssh2 from 'ssh2'

/** Reads a private key in the format of OpenSSH. Returns an error if the text is no such key. */
export const parsePrivateKey = (privateKey: string) => ssh2.utils.parseKey(`${privateKey}\n`)

const generate = (): string => ssh2.utils.generateKeyPairSync('ed25519').private

/**
 * Returns a new private key. ssh2 leaves out zero bytes at the beginning of a public key, so that one of 256 keys that it
 * makes cannot be read. Such a key is dropped.
 */
export const newPrivateKey = (make = generate): string => {
  for (let key = make(); ; key = make()) if (!(parsePrivateKey(key) instanceof Error)) return key
}
