// Makes text from servers and sandboxes safe for a terminal. A name or an error message may contain escape sequences that change
// what the user sees, or that make the terminal do something.

/**
 * Characters that a terminal interprets, or that change the order of the text: control and format characters, line and paragraph
 * separators, and halves of surrogate pairs.
 */
const unsafe = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu

const escaped = (character: string): string => `\\u{${character.codePointAt(0)?.toString(16)}}`

/** Returns the text in one line. Unsafe characters are shown as escapes such as `\u{1b}`. */
export const cleanLine = (text: string): string => text.replace(unsafe, escaped)

/** Returns the text with all its lines. Line breaks and tabs stay; all other unsafe characters are shown as escapes. */
export const cleanLines = (text: string): string =>
  text.replaceAll('\r\n', '\n').replace(unsafe, (found) => (found === '\n' || found === '\t' ? found : escaped(found)))

/** Matches characters that JSON.stringify does not escape, although a terminal may interpret them. */
const unsafeInJson = /[\u007f-\u009f]|[\p{Cf}\p{Zl}\p{Zp}]/gu

/** Returns the value as JSON that is safe for a terminal. Unsafe characters become JSON escapes such as `\u009b`. */
export const asJson = (value: unknown): string =>
  JSON.stringify(value, null, 2).replace(unsafeInJson, (found) =>
    Array.from({ length: found.length }, (_, at) => `\\u${found.charCodeAt(at).toString(16).padStart(4, '0')}`).join(
      '',
    ),
  )
