export const isRoot = process.getuid?.() === 0

/**
 * Value for the option `skip` of a test that needs root. If the tests run as root, it is false. Otherwise it is the reason to skip
 * the test.
 */
export const needsRoot = isRoot ? false : 'needs root'
