// The error of a failed archive or restore: a sentence for users (`message`), and a word that programs compare (`why`).

export type Why =
  /** The object store could not be reached, or it failed. A later attempt may succeed. */
  | 'store down'
  /** The object store refuses access, for example because of a wrong key, a missing bucket or a read-only directory. */
  | 'store refused'
  | 'store full'
  /** The object store returned other data than was written. */
  | 'damaged'
  | 'missing'
  /** The sandbox's disk cannot be read, or has too little space for the contents of the archive. */
  | 'disk'

/** Thrown if an archive or restore fails. The sandbox's owner may read the message: it contains no secrets or data of others. */
export class ArchiveFailed extends Error {
  override readonly name = 'ArchiveFailed'
  readonly why: Why

  constructor(why: Why, message: string, options?: ErrorOptions) {
    super(message, options)
    this.why = why
  }
}
