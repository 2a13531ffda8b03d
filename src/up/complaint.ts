/** An error that the user of `up` can fix. It is shown without a stack trace. */
export class Complaint extends Error {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super(message, options)
    this.name = 'Complaint'
  }
}
