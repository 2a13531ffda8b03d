/** Maximum of stored output of each command in bytes, on the sandbox's disk. The file is only as large as the output written. */
export const keptOutputBytes = 16 * 1024 * 1024
