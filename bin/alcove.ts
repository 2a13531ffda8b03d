// The command line. `./alcove` makes sure that it runs on our pinned version of Node.
import { enableCompileCache } from 'node:module'
import { defaultCacheDirectory } from '#src/up/config.ts'

// Programs without privileges must be able to read files made here, as in `./alcove`. Private files set their own mode.
process.umask(0o022)
// Caches compiled code, which halves the start time for root. Other users cannot write to this directory, so nothing
// changes for them.
enableCompileCache(`${defaultCacheDirectory}/code/alcove`)
const { runCommandLine } = await import('#src/cli/command-line.ts')
await runCommandLine(process.argv)
