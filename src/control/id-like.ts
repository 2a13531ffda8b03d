// Names that people choose may not be mistaken for what this server makes by itself: the id of a thing, or the token of a
// signed preview. Ids and tokens open things, and they are the only labels at which the content of previews is served.
import { signedToken } from '#src/wire/access.ts'

/** The text as host names and readers take it: compatible letters are one, case and invisible letters do not count. */
const folded = (text: string) =>
  text
    .normalize('NFKC')
    .replaceAll(/\p{Default_Ignorable_Code_Point}/gu, '')
    .trim()
    .toLowerCase()

/** An id is a UUID. With any other signs between, or none, or as a URN, it is none, but reads like one. */
export const isIdLike = (text: string): boolean =>
  /^[0-9a-f]{32}$/.test(
    folded(text)
      .replace(/^(?:urn:)?(?:uuid:)?/, '')
      // Some letters look like signs, such as the long dash of Japanese.
      .replaceAll(/[^\p{L}\p{N}]|\p{Lm}/gu, ''),
  )

export const isTokenLike = (text: string): boolean => signedToken.test(folded(text))
