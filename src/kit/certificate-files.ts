// The files with which a program authenticates to programs on other machines. Another program renews the certificate by
// renaming a new file over it.
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** Options for `tls.connect`, `tls.createServer` and `setSecureContext`. Each value is PEM. */
export type CertificateOptions = { ca: string; cert: string; key: string }

export class CertificateFiles {
  readonly #directory: string
  #read: { mtimeMs: number; options: CertificateOptions } | undefined

  constructor(directory: string) {
    this.#directory = directory
  }

  /**
   * Returns the contents of the files. Reads them again only if the certificate file has changed. Throws if a file is
   * missing.
   */
  get options(): CertificateOptions {
    const { mtimeMs } = statSync(join(this.#directory, 'certificate.pem'))
    if (this.#read?.mtimeMs !== mtimeMs) this.#read = { mtimeMs, options: this.#readAll() }
    return this.#read.options
  }

  #readAll(): CertificateOptions {
    const read = (name: string) => readFileSync(join(this.#directory, name), 'utf8')
    return { ca: read('authority.pem'), cert: read('certificate.pem'), key: read('key.pem') }
  }
}
