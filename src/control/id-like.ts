// Checks that a name does not look like an id, or like the token of a signed preview URL. Otherwise callers could mistake the name
// for the id or token of another sandbox.
import { signedToken } from '#src/wire/access.ts'

/** Reduces a text to what a reader sees: plain lower-case letters, without invisible characters. */
const folded = (text: string) =>
  text
    .normalize('NFKC')
    .replaceAll(/\p{Default_Ignorable_Code_Point}/gu, '')
    .trim()
    .toLowerCase()

/**
 * Prepares a text for a comparison with ids: removes a URN prefix, and every character that is no letter or digit. Modifier letters
 * (`Lm`) are removed too, because they may look like hyphens.
 */
const bare = (text: string) =>
  folded(text)
    .replace(/^(?:urn:)?(?:uuid:)?/, '')
    .replaceAll(/[^\p{L}\p{N}]|\p{Lm}/gu, '')

const isHex = (text: string) => /^[0-9a-f]{32}$/.test(text)

/**
 * Each entry: a letter or digit, a colon, and the letters that look like that letter or digit. The first six lines are for
 * hexadecimal digits.
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

/** Removes accents and replaces lookalikes by plain letters or digits. For example, the letter l becomes 1. */
const byShape = (text: string) =>
  [...text.normalize('NFD').replaceAll(/\p{M}/gu, '')].map((letter) => shapes.get(letter) ?? letter).join('')

/** Whether a text reads like a UUID, with any separators or without, or as a URN. */
export const isIdLike = (text: string): boolean => isHex(bare(text))

/**
 * Whether a new name looks like an id. Letters that look like hexadecimal digits count as digits.
 * Searches by name use the less strict function `isIdLike`, because older sandboxes may have names with such letters.
 */
export const looksLikeId = (text: string): boolean => isIdLike(text) || isHex(byShape(bare(text)))

export const isTokenLike = (text: string): boolean => {
  const plain = folded(text)
  return signedToken.test(plain) || signedToken.test(byShape(plain))
}
