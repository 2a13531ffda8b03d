/** The largest file that is opened as text, in bytes. */
export const longestText = 2 * 1024 * 1024

export type FileText = { text: string; lineEnd: '\n' | '\r\n' }

/** Reads a file's bytes as text. Undefined: they are not text, so that saving would change what nobody has edited. */
export const readText = (bytes: Uint8Array): FileText | undefined => {
  if (bytes.includes(0)) return undefined
  let text: string
  try {
    // A mark of the byte order stays a character of the text, and is written again.
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
  // A lone carriage return stays a character, if line feeds end the lines.
  const isWindows = text.includes('\r\n') && !/(?<!\r)\n|\r(?!\n)/.test(text)
  return { text, lineEnd: isWindows ? '\r\n' : '\n' }
}
