// Checks that a name does not look like an id, or like the token of a signed preview URL. Otherwise callers could
// mistake the name for the id or token of another sandbox.
import { signedToken } from '#src/wire/access.ts'

/**
 * Reduces a text to what a reader sees: variants of a letter become the plain letter, upper case becomes lower case,
 * and invisible characters are removed.
 */
const folded = (text: string) =>
  text
    .normalize('NFKC')
    .replaceAll(/\p{Default_Ignorable_Code_Point}/gu, '')
    .trim()
    .toLowerCase()

/**
 * Removes a URN prefix (`urn:uuid:`), and every character that is no letter or digit, such as the hyphens of an id.
 * Modifier letters (`Lm`) are removed too, because some look like hyphens, for example the Japanese long vowel mark.
 */
const bare = (text: string) =>
  folded(text)
    .replace(/^(?:urn:)?(?:uuid:)?/, '')
    .replaceAll(/[^\p{L}\p{N}]|\p{Lm}/gu, '')

const isHex = (text: string) => /^[0-9a-f]{32}$/.test(text)

/**
 * Letters that look alike. Each entry has a plain letter or digit, and after the colon the lower-case letters that look
 * like it. Ids consist of hexadecimal digits; the first six lines are for these digits.
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

/** Replaces each letter by the plain letter of `lookalikes` that it looks like, without accents. */
const byShape = (text: string) =>
  [...text.normalize('NFD').replaceAll(/\p{M}/gu, '')].map((letter) => shapes.get(letter) ?? letter).join('')

/**
 * Whether a text reads like a UUID, even if it is not written as one: with other separators, without separators, or as
 * a URN.
 */
export const isIdLike = (text: string): boolean => isHex(bare(text))

/**
 * Whether a new name looks like an id. Stricter than `isIdLike`: a letter that looks like a hexadecimal digit, such as
 * a Cyrillic `а`, counts as this digit. Searches by name use `isIdLike`, so that they still find older sandboxes whose
 * names only this check would refuse.
 */
export const looksLikeId = (text: string): boolean => isIdLike(text) || isHex(byShape(bare(text)))

export const isTokenLike = (text: string): boolean => {
  const plain = folded(text)
  return signedToken.test(plain) || signedToken.test(byShape(plain))
}
