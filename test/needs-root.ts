export const isRoot = process.getuid?.() === 0

/** Value for `skip` of a test that needs root: the reason, or false if we are root. */
export const needsRoot = isRoot ? false : 'needs root'
