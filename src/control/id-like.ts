// A name that a user chooses must not look like an id, or like the token of a signed preview. Ids and tokens give access, and
// they are the only host labels at which previews are served.
import { signedToken } from '#src/wire/access.ts'

/**
 * Simplifies the text as a reader would: compatible letters become one letter; case and invisible letters are ignored.
 */
const folded = (text: string) =>
  text
    .normalize('NFKC')
    .replaceAll(/\p{Default_Ignorable_Code_Point}/gu, '')
    .trim()
    .toLowerCase()

/**
 * Removes the signs that may stand between the letters and digits of an id. Some letters look like such signs, for
 * example Japan's long dash.
 */
const bare = (text: string) =>
  folded(text)
    .replace(/^(?:urn:)?(?:uuid:)?/, '')
    .replaceAll(/[^\p{L}\p{N}]|\p{Lm}/gu, '')

const isHex = (text: string) => /^[0-9a-f]{32}$/.test(text)

/**
 * Each line: a letter, and the lower-case letters that look like it. The first six lines are the digits and letters of
 * ids.
 */
const lookalikes = [
  '0:oоοօ',
  '1:liіıӏι',
  '3:з 6:б',
  'a:аαɑ b:ьвβ c:сϲ',
  'd:ԁɗ e:еєεҽ',
  'f:ϝƒ',
  'g:ɡ h:һ j:ј k:кκ m:м n:ո p:рρ q:ԛ r:г s:ѕ t:тτ u:υս v:ѵν w:ԝ x:хχ y:уγ',
].flatMap((line) => line.split(' '))

const shapes = new Map(lookalikes.flatMap((entry) => [...entry.slice(2)].map((letter) => [letter, entry[0]!] as const)))

/** The text with each letter replaced by the Latin letter of that shape. Accents are ignored. */
const byShape = (text: string) =>
  [...text.normalize('NFD').replaceAll(/\p{M}/gu, '')].map((letter) => shapes.get(letter) ?? letter).join('')

/**
 * Whether a text reads like a UUID. A UUID with other separators, without separators, or as a URN is not a valid id but
 * reads like one.
 */
export const isIdLike = (text: string): boolean => isHex(bare(text))

/**
 * Whether a new name looks like an id. This check is stricter than `isIdLike`, which lookups use, so that older names
 * of this kind are still found.
 */
export const looksLikeId = (text: string): boolean => isIdLike(text) || isHex(byShape(bare(text)))

export const isTokenLike = (text: string): boolean => {
  const plain = folded(text)
  return signedToken.test(plain) || signedToken.test(byShape(plain))
}
