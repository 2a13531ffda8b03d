/** Size of the largest file that is opened as text, in bytes. */
export const longestText = 2 * 1024 * 1024

export type FileText = { text: string; lineEnd: '\n' | '\r\n' }

/** Returns undefined if the bytes are not valid UTF-8, because saving would then change parts that nobody edited. */
export const readText = (bytes: Uint8Array): FileText | undefined => {
  if (bytes.includes(0)) return undefined
  let text: string
  try {
    // With `ignoreBOM`, a byte order mark stays in the text, so that it is still in the file after the text is saved.
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
  // Windows line ends (`\r\n`) only if every line has one. Otherwise lines end with `\n`, and each `\r` is part of the text.
  const isWindows = text.includes('\r\n') && !/(?<!\r)\n|\r(?!\n)/.test(text)
  return { text, lineEnd: isWindows ? '\r\n' : '\n' }
}
