// HTML templates that escape every value, except values that are `Html` themselves.
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

/** Makes HTML from a template. Templates must quote their attributes, because escaping is safe only inside quotes. */
export const html = (pieces: TemplateStringsArray, ...values: Value[]): Html =>
  new Html(pieces.map((piece, index) => piece + render(values[index])).join(''))
