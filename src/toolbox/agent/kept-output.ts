/**
 * Maximum number of output bytes that are stored for each command, in a file on the sandbox's disk. The file grows with the
 * output.
 */
export const keptOutputBytes = 16 * 1024 * 1024
