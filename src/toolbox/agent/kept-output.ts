/** Of each command, on the sandbox's disk, and only as much as was written. */
export const keptOutputBytes = 16 * 1024 * 1024
