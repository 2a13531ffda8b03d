// The host key of the SSH gateway. It is made only once, because SSH clients warn their users when a host key has
// changed.
import ssh2 from 'ssh2'
import { type DataDirectory, readSecret } from './data-directory.ts'

const newHostKey = (): string => ssh2.utils.generateKeyPairSync('ed25519').private

/** Returns the private key in the format of OpenSSH, and the public key in the format of `known_hosts`. */
export const readSshHostKey = (data: DataDirectory): { privateKey: string; publicKey: string } => {
  const privateKey = readSecret(data, 'ssh-host.key', newHostKey).value
  const key = ssh2.utils.parseKey(`${privateKey}\n`)
  if (key instanceof Error) throw new Error(`${data.secrets}/ssh-host.key is no private key in the format of OpenSSH`)
  return { privateKey, publicKey: `${key.type} ${key.getPublicSSH().toString('base64')}` }
}
