import { until } from './box.ts'

/** Collects what a terminal shows, as text. */
export class Screen {
  text = ''
  readonly #decoder = new TextDecoder()
  readonly take = (data: Uint8Array): void => {
    this.text += this.#decoder.decode(data, { stream: true })
  }

  shows(wanted: RegExp): Promise<void> {
    return until(`${wanted} on the screen`, () => wanted.test(this.text))
  }
}
