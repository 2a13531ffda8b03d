/** Maximum of output that is kept of each command, on the sandbox's disk. The file is only as large as the output written. */
export const keptOutputBytes = 16 * 1024 * 1024
