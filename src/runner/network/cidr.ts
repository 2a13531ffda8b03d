// IPv4 addresses and CIDR blocks, represented as numbers.

export type Cidr = { base: number; bits: number }

/** Parses `a.b.c.d` and `a.b.c.d/n`. The address bits after the prefix become 0. Returns undefined for any other text. */
export const parseCidr = (text: string): Cidr | undefined => {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})(?:\/(\d{1,2}))?$/.exec(text.trim())
  if (match === null) return undefined
  const [a, b, c, d] = match.slice(1, 5).map(Number) as [number, number, number, number]
  const bits = match[5] === undefined ? 32 : Number(match[5])
  if (Math.max(a, b, c, d) > 255 || bits > 32) return undefined
  const address = a * 2 ** 24 + b * 2 ** 16 + c * 2 ** 8 + d
  const size = 2 ** (32 - bits)
  return { base: address - (address % size), bits }
}

export const toText = ({ base, bits }: Cidr) =>
  `${[24, 16, 8, 0].map((shift) => (base >>> shift) & 255).join('.')}/${bits}`

const lastOf = ({ base, bits }: Cidr) => base + 2 ** (32 - bits) - 1

export const overlap = (a: Cidr, b: Cidr) => a.base <= lastOf(b) && b.base <= lastOf(a)

const contains = (outer: Cidr, inner: Cidr) => outer.bits <= inner.bits && overlap(outer, inner)

/**
 * Removes blocks that are inside other blocks. The remaining blocks do not overlap, because CIDR blocks never overlap only in part.
 */
export const withoutNested = (blocks: readonly Cidr[]) =>
  blocks.filter(
    (block, index) =>
      !blocks.some((other, at) => at !== index && contains(other, block) && (other.bits < block.bits || at < index)),
  )
