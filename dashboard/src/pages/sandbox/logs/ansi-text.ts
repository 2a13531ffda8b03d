// Reads the colours of a log line from its escape sequences. All other escape sequences are removed.
import { shownText } from '../../../ui/shown-text.ts'

export type Piece = { text: string; className: string }

const names = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'] as const

/** Matches an escape sequence: a control sequence (CSI), a string such as a title or a link, or a short escape. */
const sequence =
  /\u001b\[([0-9;:?<=>]*)[ -/]*([@-~])|\u001b[\]PX^_][^\u0007\u001b\u009c]*(?:\u0007|\u001b\\|\u009c|$)|\u001b[ -/]*[0-~]?/g

type Look = { colour: string | undefined; isBold: boolean }

/** Applies an escape sequence (SGR) to `look`, and returns the new colour and weight. Ignores 256 colours and RGB colours. */
const changed = (look: Look, parameters: string): Look => {
  let { colour, isBold } = look
  const codes = parameters.split(/[;:]/).map(Number)
  for (let at = 0; at < codes.length; at++) {
    const code = codes[at]!
    if (code === 0) {
      colour = undefined
      isBold = false
    } else if (code === 1) isBold = true
    else if (code === 22) isBold = false
    else if (code === 39) colour = undefined
    else if (code >= 30 && code <= 37) colour = names[code - 30]
    else if (code >= 90 && code <= 97) colour = names[code - 90]
    else if (code === 38 || code === 48) at += codes[at + 1] === 5 ? 2 : 4
  }
  return { colour, isBold }
}

const classOf = ({ colour, isBold }: Look) =>
  [colour !== undefined && `ansi-${colour}`, isBold && 'ansi-bold'].filter(Boolean).join(' ')

/**
 * Splits a log line into pieces of one colour each. If carriage returns overwrite the line, as a progress bar does, only the last
 * text stays.
 */
export const piecesOf = (line: string): Piece[] => {
  const shown = line.slice(line.replace(/\r+$/, '').lastIndexOf('\r') + 1).replace(/\r+$/, '')
  const pieces: Piece[] = []
  let look: Look = { colour: undefined, isBold: false }
  let from = 0
  const add = (text: string) => {
    if (text !== '') pieces.push({ text: shownText(text), className: classOf(look) })
  }
  for (const match of shown.matchAll(sequence)) {
    add(shown.slice(from, match.index))
    from = match.index + match[0].length
    if (match[2] === 'm' && /^[\d;:]*$/.test(match[1]!)) look = changed(look, match[1]!)
  }
  add(shown.slice(from))
  return pieces
}

/** The visible text of a log line, without its colours. The search on the page uses this text. */
export const plainText = (line: string): string =>
  piecesOf(line)
    .map(({ text }) => text)
    .join('')
