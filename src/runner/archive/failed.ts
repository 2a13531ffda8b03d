// The error of a failed archive or restore. It has a sentence for users, and a word (`Why`) that programs compare.

export type Why =
  /** The store could not be reached or failed. A later try may work. */
  | 'store down'
  /** The store refuses access: wrong key, no such bucket, read-only directory. */
  | 'store refused'
  | 'store full'
  /** The stored data is not the data that was written. */
  | 'damaged'
  | 'missing'
  /** The sandbox's disk cannot be read, or has no room for the archive's contents. */
  | 'disk'

/** A failed archive. The owner of the sandbox may read the message: it contains no key, secret or data of other sandboxes. */
export class ArchiveFailed extends Error {
  override readonly name = 'ArchiveFailed'
  readonly why: Why

  constructor(why: Why, message: string, options?: ErrorOptions) {
    super(message, options)
    this.why = why
  }
}
