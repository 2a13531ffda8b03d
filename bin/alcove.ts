// The command line. `./alcove` makes sure that it runs on our pinned version of Node.
import { enableCompileCache } from 'node:module'
import { defaultCacheDirectory } from '#src/up/config.ts'

// Programs without privileges must be able to read files made here, as in `./alcove`. Private files set their own mode.
process.umask(0o022)
// Halves the start time for root, who alone can write there. Has no effect for other users.
enableCompileCache(`${defaultCacheDirectory}/code/alcove`)
const { runCommandLine } = await import('#src/cli/command-line.ts')
await runCommandLine(process.argv)
