// Cleans texts of untrusted users and programs. React escapes markup; these functions remove characters with which one text could
// look like another.

/** Matches control characters except the tab, characters that change the writing direction, and invisible characters. */
const misleading =
  /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0]/g

/** Replaces each invisible character, and each character that changes the writing direction, by a visible sign. */
export const shownText = (text: string): string => text.replace(misleading, '\ufffd')

/** Cleans a text for one line, such as a file name. Removes tabs too, and cuts the text after `longest` characters. */
export const shownName = (text: string, longest = 500): string => {
  const cut = text.length > longest ? `${text.slice(0, longest)}…` : text
  return shownText(cut).replaceAll('\t', '\ufffd').toWellFormed()
}

/** Matches escape sequences for titles, links, colours and cursor moves, and also a sequence that was cut at the end of a line. */
const escapes = /\u001b[\]PX^_].*?(?:\u0007|\u001b\\|$)|\u001b\[[0-?]*[ -/]*(?:[@-~]|$)|\u001b[ -/]*[0-~]?/g

/** Turns one line of output into plain text. If carriage returns overwrite it, as a progress bar does, only the last text stays. */
export const shownLine = (line: string): string => {
  const plain = line.replace(escapes, '').replace(/\r+$/, '')
  return shownText(plain.slice(plain.lastIndexOf('\r') + 1))
}

/** Turns several lines of a program's output into plain text. */
export const shownLines = (text: string): string => text.split('\n').map(shownLine).join('\n')

/** Returns the address if it is http or https. Otherwise undefined: the page must not open it. */
export const webAddress = (text: string): string | undefined => {
  const url = URL.parse(text)
  return url !== null && (url.protocol === 'https:' || url.protocol === 'http:') ? url.href : undefined
}
