export const isRoot = process.getuid?.() === 0

/** Value for the option `skip` of a test that needs root: false for root, and otherwise the reason. */
export const needsRoot = isRoot ? false : 'needs root'
