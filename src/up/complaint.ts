/** Something the person who typed the command can mend; told without a stack. */
export class Complaint extends Error {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super(message, options)
    this.name = 'Complaint'
  }
}
