// Content-Disposition with names of every kind, once in the form that all clients read and, where that could be misread,
// once more in the form that holds every name (RFC 6266, RFC 8187).

/** What must not get into a header. */
const control = /[\x00-\x1f\x7f]/g
const plain = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/

const quoted = (text: string): string => `"${text.replace(control, '_').replace(/["\\]/g, '\\$&')}"`

/** RFC 8187 leaves fewer characters as they are than a URI does. */
const extended = (text: string): string =>
  `UTF-8''${encodeURIComponent(text).replace(/[!'()*]/g, (letter) => `%${letter.charCodeAt(0).toString(16)}`)}`

const filenames = (filename: string, simple: string): string =>
  plain.test(filename) ? `filename=${quoted(filename)}` : `filename=${quoted(simple)}; filename*=${extended(filename)}`

/** `Content-Disposition` of an answer: HTTP's headers are Latin-1 at best, so the simple form is ASCII. */
export const attachment = (filename: string): string =>
  `attachment; ${filenames(filename, filename.replace(/[^\x20-\x7e]/g, '_'))}`

/** `Content-Disposition` of a part of a form, whose headers are UTF-8. */
export const formData = (name: string, filename: string): string =>
  `form-data; name=${quoted(name)}; ${filenames(filename, filename)}`
