/** An error whose cause the user of `up` can remove. The message is shown without a stack trace. */
export class Complaint extends Error {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super(message, options)
    this.name = 'Complaint'
  }
}
