// The host key of the SSH gateway. The key is made only once, because SSH clients warn about a changed key.
import { newPrivateKey, parsePrivateKey } from '#src/kit/ssh-key.ts'
import { type DataDirectory, readSecret } from './data-directory.ts'

/** Returns the private key in OpenSSH format, and the public key in the format of `known_hosts`. */
export const readSshHostKey = (data: Pick<DataDirectory, 'secrets'>): { privateKey: string; publicKey: string } => {
  const privateKey = readSecret(data, 'ssh-host.key', newPrivateKey).value
  const key = parsePrivateKey(privateKey)
  if (key instanceof Error)
    throw new Error(
      `${data.secrets}/ssh-host.key is not a private key in the format of OpenSSH. Remove the file; Alcove then makes a new key`,
    )
  return { privateKey, publicKey: `${key.type} ${key.getPublicSSH().toString('base64')}` }
}
