/** An error that the user of the command can fix. It is shown without a stack. */
export class Complaint extends Error {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super(message, options)
    this.name = 'Complaint'
  }
}
