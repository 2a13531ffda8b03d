// The command line of Alcove. `./alcove` starts this file with the version of Node that the lock file names.
import { enableCompileCache } from 'node:module'
import { defaultCacheDirectory } from '#src/up/config.ts'

// Programs without privileges must be able to read the files that this process makes, so its umask is that of
// `./alcove`. Files that must be private set their mode explicitly.
process.umask(0o022)
// Stores compiled code, which makes commands of root start twice as fast. Other users cannot write to this directory,
// so their commands start as they did without it.
enableCompileCache(`${defaultCacheDirectory}/code/alcove`)
const { runCommandLine } = await import('#src/cli/command-line.ts')
await runCommandLine(process.argv)
