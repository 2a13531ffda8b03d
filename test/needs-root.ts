export const isRoot = process.getuid?.() === 0

/** The option `skip` of tests that need root: false for root, and otherwise the reason to skip them. */
export const needsRoot = isRoot ? false : 'needs root'
