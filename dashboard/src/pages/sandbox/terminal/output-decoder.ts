/** Characters that xterm.js puts onto the character before them: marks, joiners, Hangul vowels. DEL is passed over. */
const joined = '[\\p{M}\\p{Cf}\\u1160-\\u11ff\\u007f]'
const surplus = new RegExp(`(?<=${joined}{16})${joined}+`, 'gu')
const lastRun = new RegExp(`${joined}{0,16}$`, 'u')

/**
 * Decodes the output of a terminal, and leaves out what follows the sixteenth mark of a character: a browser stands still
 * while it draws characters that carry thousands of marks.
 */
export class OutputDecoder {
  #decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  /** The marks at the end of the last piece. The next piece may go on with them. */
  #before = ''

  decode(data: Uint8Array): string {
    const text = `${this.#before}${this.#decoder.decode(data, { stream: true })}`.replace(surplus, '')
    const fresh = text.slice(this.#before.length)
    this.#before = lastRun.exec(text.slice(-32))?.[0] ?? ''
    return fresh
  }

  /** Forgets the last piece, before a terminal begins anew. */
  reset(): void {
    this.#decoder = new TextDecoder('utf-8', { ignoreBOM: true })
    this.#before = ''
  }
}
