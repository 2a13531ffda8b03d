import manifest from '../../package.json' with { type: 'json' }

/** The version of Alcove that this process runs. */
export const version: string = manifest.version

type Release = { major: number; minor: number }

const readRelease = (text: string): Release | undefined => {
  const [, major, minor] = /^(\d{1,9})\.(\d{1,9})(?![\d])/.exec(text) ?? []
  return major === undefined ? undefined : { major: Number(major), minor: Number(minor) }
}

/**
 * Whether programs of two versions work together. While a server is upgraded, its programs have different versions for some
 * time.
 */
export const worksWith = (one: string, other: string): boolean => {
  const [a, b] = [readRelease(one), readRelease(other)]
  return a !== undefined && b !== undefined && a.major === b.major && Math.abs(a.minor - b.minor) <= 1
}
