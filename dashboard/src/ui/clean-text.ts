/**
 * Characters that do harm in one line of text: control characters, line separators, and those that turn the direction of
 * writing or cannot be seen.
 */
const harmful = /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/gu

const visible = (character: string): string =>
  `‹${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}›`

/**
 * A text of a stranger, such as a file name, for one line of a page: harmful characters become visible, and it has at most
 * `longest` characters.
 */
export const cleanText = (text: string, longest = 500): string => {
  const cut = text.length > longest ? `${text.slice(0, longest)}…` : text
  return cut.replace(harmful, visible).toWellFormed()
}
