export const isRoot = process.getuid?.() === 0

/** For `skip` of a test: why it cannot run here, or false. */
export const needsRoot = isRoot ? false : 'needs root'
