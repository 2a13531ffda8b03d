// What can go wrong with an archive, as a sentence for a person and a word for a program.

export type Why =
  /** The store could not be reached, or failed; later it may work. */
  | 'store down'
  /** The store does not let us: wrong key, no such bucket, a read-only directory. */
  | 'store refused'
  | 'store full'
  /** What is stored is not what was stored. */
  | 'damaged'
  | 'missing'
  /** The sandbox's disk cannot be read, or has no room for what the archive holds. */
  | 'disk'

/** An archive that failed. The owner of the sandbox may read the message: it holds no key, no secret, nothing of other sandboxes. */
export class ArchiveFailed extends Error {
  override readonly name = 'ArchiveFailed'
  readonly why: Why

  constructor(why: Why, message: string, options?: ErrorOptions) {
    super(message, options)
    this.why = why
  }
}
