// Writes `Content-Disposition` for any file name. All clients read `filename`. If a client could misread this name, `filename*` has
// the exact name (RFC 6266, RFC 8187).

/** Control characters, which must not get into a header. */
const control = /[\x00-\x1f\x7f]/g
const plain = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/

const quoted = (text: string): string => `"${text.replace(control, '_').replace(/["\\]/g, '\\$&')}"`

/** Escapes a text as in RFC 8187, which escapes more characters than a URI. */
const extended = (text: string): string =>
  `UTF-8''${encodeURIComponent(text).replace(/[!'()*]/g, (letter) => `%${letter.charCodeAt(0).toString(16)}`)}`

const filenames = (filename: string, simple: string): string =>
  plain.test(filename) ? `filename=${quoted(filename)}` : `filename=${quoted(simple)}; filename*=${extended(filename)}`

/**
 * Returns the header `Content-Disposition` of an answer. Its `filename` is ASCII, because clients disagree about other characters.
 */
export const attachment = (filename: string): string =>
  `attachment; ${filenames(filename, filename.replace(/[^\x20-\x7e]/g, '_'))}`

/** Returns the header of one part of a multipart form, where names are UTF-8. */
export const formData = (name: string, filename: string): string =>
  `form-data; name=${quoted(name)}; ${filenames(filename, filename)}`
