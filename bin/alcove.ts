// The command line. `./alcove` has made sure that this runs on the Node that we pin.
import { enableCompileCache } from 'node:module'
import { defaultCacheDirectory } from '#src/up/config.ts'

// Programs without privileges read the files that are made here, as in `./alcove`. Private files set their own mode.
process.umask(0o022)
// Halves the time to start for root, who alone can write there; for others nothing happens.
enableCompileCache(`${defaultCacheDirectory}/code/alcove`)
const { runCommandLine } = await import('#src/cli/command-line.ts')
await runCommandLine(process.argv)
