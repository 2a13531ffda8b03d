// The credential with which a program authenticates to control: its own certificate, or a key in each request.
import { buildConnector } from 'undici'
import { CertificateFiles } from './certificate-files.ts'

export type Credential = {
  /** Headers of each request to control. They contain the program's key, unless the program shows a certificate. */
  headers: Record<string, string>
  /**
   * Options for a new TLS connection. They are read for each connection, because another program renews the certificate. Throws
   * if a file is missing.
   */
  tls?: () => { ca: string; cert?: string; key?: string; servername: string }
}

/** Returns whether a program shows its certificate to control. It then needs no key. */
export const showsCertificate = (controlUrl: URL, certificatesDirectory: string | undefined): boolean =>
  certificatesDirectory !== undefined && controlUrl.protocol === 'https:'

/**
 * Returns the credential for calls to control: over HTTPS the certificate, if there is one; otherwise `key`. `controlName`: the
 * name that control's certificate must have.
 */
export const credentialFor = (
  controlUrl: URL,
  {
    key,
    certificatesDirectory,
    controlName,
  }: { key: string; certificatesDirectory?: string | undefined; controlName: string },
): Credential => {
  if (certificatesDirectory === undefined || !showsCertificate(controlUrl, certificatesDirectory)) {
    return { headers: { authorization: `Bearer ${key}` } }
  }
  const files = new CertificateFiles(certificatesDirectory)
  return { headers: {}, tls: () => ({ ...files.options, servername: controlName }) }
}

/** Returns the function with which a connection pool of undici (an HTTP client) opens its connections. */
export const connectorFor = ({ tls }: Credential, timeout: number): buildConnector.connector => {
  if (tls === undefined) return buildConnector({ timeout })
  return (options, callback) => {
    try {
      const { servername, ...certificate } = tls()
      // TLS sessions are not resumed, because a resumed session would keep the identity of an older certificate.
      const connect = buildConnector({ ...certificate, timeout, allowH2: false, maxCachedSessions: 0 })
      connect({ ...options, servername }, callback)
    } catch (error) {
      callback(error as Error, null)
    }
  }
}
