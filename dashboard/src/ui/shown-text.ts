// Names, descriptions and log lines come from strangers. React escapes markup; these functions also take away what could
// make a text look like another one.

/** Control characters, without the tab, and characters that change the direction of a text. */
const misleading = /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g

/** The text with a visible sign in place of each character that cannot be seen or changes the direction of the text. */
export const shownText = (text: string): string => text.replace(misleading, '\ufffd')

/** A text for one line of a page, such as a file's name: as `shownText` has it, without tabs, and cut if it is longer. */
export const shownName = (text: string, longest = 500): string => {
  const cut = text.length > longest ? `${text.slice(0, longest)}…` : text
  return shownText(cut).replaceAll('\t', '\ufffd').toWellFormed()
}

/** Operating system commands (titles, links), colours and cursor moves, and what is left of them at the end of a line. */
const escapes = /\u001b[\]PX^_].*?(?:\u0007|\u001b\\|$)|\u001b\[[0-?]*[ -/]*(?:[@-~]|$)|\u001b[ -/]*[0-~]?/g

/**
 * One line of a program's output as plain text. Of a line that was drawn several times, as progress is, the last drawing
 * counts.
 */
export const shownLine = (line: string): string => {
  const plain = line.replace(escapes, '').replace(/\r+$/, '')
  return shownText(plain.slice(plain.lastIndexOf('\r') + 1))
}

/** Several lines of a program's output as plain text. */
export const shownLines = (text: string): string => text.split('\n').map(shownLine).join('\n')

/** The address if a browser may open it. Undefined if it is no address, or has another scheme than http and https. */
export const webAddress = (text: string): string | undefined => {
  const url = URL.parse(text)
  return url !== null && (url.protocol === 'https:' || url.protocol === 'http:') ? url.href : undefined
}
