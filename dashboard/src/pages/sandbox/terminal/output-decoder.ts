/**
 * Characters that xterm.js draws onto the previous one: combining marks, joiners and Hangul vowels. The library ignores DEL, so
 * marks before and after a DEL are drawn onto one character.
 */
const joined = '[\\p{M}\\p{Cf}\\u1160-\\u11ff\\u007f]'
const surplus = new RegExp(`(?<=${joined}{16})${joined}+`, 'gu')
const lastRun = new RegExp(`${joined}{0,16}$`, 'u')

/**
 * Decodes the output of a terminal. Keeps at most sixteen marks (such as accents) per character: thousands would hang the browser.
 */
export class OutputDecoder {
  #decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  /**
   * Combining marks at the end of earlier output. The method `decode` counts them if the next output begins with more marks of that
   * character.
   */
  #before = ''

  decode(data: Uint8Array): string {
    const text = `${this.#before}${this.#decoder.decode(data, { stream: true })}`.replace(surplus, '')
    const fresh = text.slice(this.#before.length)
    this.#before = lastRun.exec(text.slice(-32))?.[0] ?? ''
    return fresh
  }

  /**
   * Forgets the combining marks and the incomplete character at the end of earlier output. Called before the terminal is cleared.
   */
  reset(): void {
    this.#decoder = new TextDecoder('utf-8', { ignoreBOM: true })
    this.#before = ''
  }
}
