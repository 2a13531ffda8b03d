// Checks that a name which a user chooses does not look like an id, or like the token of a signed preview. Otherwise
// callers could take the name for the id or token of another sandbox.
import { signedToken } from '#src/wire/access.ts'

/**
 * Reduces a text to what a reader sees: variants of a letter become that letter; case and invisible characters are
 * ignored.
 */
const folded = (text: string) =>
  text
    .normalize('NFKC')
    .replaceAll(/\p{Default_Ignorable_Code_Point}/gu, '')
    .trim()
    .toLowerCase()

/**
 * Removes a URN prefix, and every character that is no letter or digit, such as the hyphens of an id. Modifier letters
 * (`Lm`), for example the Japanese long vowel mark, look like hyphens and are removed too.
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
 * Whether a name that a user now chooses looks like an id. Lookups by name use the less strict `isIdLike`. They
 * therefore find sandboxes whose names were chosen before this check existed.
 */
export const looksLikeId = (text: string): boolean => isIdLike(text) || isHex(byShape(bare(text)))

export const isTokenLike = (text: string): boolean => {
  const plain = folded(text)
  return signedToken.test(plain) || signedToken.test(byShape(plain))
}
