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

/** The letters and digits between which ids have signs. Some letters look like signs, such as the long dash of Japanese. */
const bare = (text: string) =>
  folded(text)
    .replace(/^(?:urn:)?(?:uuid:)?/, '')
    .replaceAll(/[^\p{L}\p{N}]|\p{Lm}/gu, '')

const isHex = (text: string) => /^[0-9a-f]{32}$/.test(text)

/** Small letters that look like the one before the colon. The first six lines are digits and letters of ids. */
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

/** The text by the shapes of its letters: their alphabets and accents do not count. */
const byShape = (text: string) =>
  [...text.normalize('NFD').replaceAll(/\p{M}/gu, '')].map((letter) => shapes.get(letter) ?? letter).join('')

/** An id is a UUID. With any other signs between, or none, or as a URN, it is none, but reads like one. */
export const isIdLike = (text: string): boolean => isHex(bare(text))

/** For new names. Wider than `isIdLike`, by which names are found: older names of this kind still are. */
export const looksLikeId = (text: string): boolean => isIdLike(text) || isHex(byShape(bare(text)))

export const isTokenLike = (text: string): boolean => {
  const plain = folded(text)
  return signedToken.test(plain) || signedToken.test(byShape(plain))
}
