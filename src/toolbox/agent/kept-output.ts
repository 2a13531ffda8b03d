/**
 * Maximum number of output bytes that are stored for each command, on the sandbox's disk. The file is only as large as the
 * output.
 */
export const keptOutputBytes = 16 * 1024 * 1024
