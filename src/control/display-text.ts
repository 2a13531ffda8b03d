// Checks names and descriptions that users choose and that other people read in a web page or a mail.
import { Problem } from '#src/problems.ts'

const longest = 255

/** Returns the text without spaces around it. Throws 400 if the text is empty or too long, or could mislead a reader. */
export const readDisplayText = (field: string, given: string): string => {
  const text = given.trim()
  if (text === '') throw new Problem('bad_request', `${field} must not be empty`)
  if (text.length > longest) throw new Problem('bad_request', `${field} must not be longer than ${longest} characters`)
  if (/\p{Cc}|\p{Cs}|\p{Zl}|\p{Zp}/u.test(text))
    throw new Problem('bad_request', `${field} must not contain control characters`)
  // Characters that change the direction of text can make a name look like another name. A name of only invisible
  // characters looks empty.
  if (/[\u202a-\u202e\u2066-\u2069]/.test(text))
    throw new Problem('bad_request', `${field} must not contain characters that change the direction of text`)
  if (!/[\p{L}\p{N}\p{P}\p{S}]/u.test(text))
    throw new Problem('bad_request', `${field} must have at least one visible character`)
  if (/<\/?[a-z!][^>]*>/i.test(text)) throw new Problem('bad_request', `${field} must not contain HTML`)
  if (/\b[a-z][a-z\d+.-]*:\/\/|\bwww\./i.test(text))
    throw new Problem('bad_request', `${field} must not contain a link`)
  return text
}
