// Makes and reads SSH keys with the library ssh2.
import ssh2 from 'ssh2'

/** Reads a private key in OpenSSH format. Returns an error if the text is not such a key. */
export const parsePrivateKey = (privateKey: string) => ssh2.utils.parseKey(`${privateKey}\n`)

const generate = (): string => ssh2.utils.generateKeyPairSync('ed25519').private

/**
 * Returns a new private key that the library ssh2 can read. ssh2 cannot read one of 256 keys that it makes, because it leaves out
 * a zero byte of the key.
 */
export const newPrivateKey = (make = generate): string => {
  for (let key = make(); ; key = make()) if (!(parsePrivateKey(key) instanceof Error)) return key
}
