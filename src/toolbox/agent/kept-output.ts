/** Maximum number of output bytes stored for each command, in a file on the sandbox's disk. */
export const keptOutputBytes = 16 * 1024 * 1024
