// HTML in which every value is escaped, unless it is HTML of ours.
import { escaped } from '#src/kit/escape.ts'

export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

type Value = Html | string | number | false | undefined | null | readonly Value[]

const render = (value: Value): string => {
  if (value instanceof Html) return value.text
  if (Array.isArray(value)) return value.map(render).join('')
  if (value === false || value === undefined || value === null) return ''
  return escaped(String(value))
}

/** Attributes must be quoted where it is used. */
export const html = (pieces: TemplateStringsArray, ...values: Value[]): Html =>
  new Html(pieces.map((piece, index) => piece + render(values[index])).join(''))
