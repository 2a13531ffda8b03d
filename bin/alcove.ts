// The command line of Alcove. `./alcove` starts this file with the version of Node that package-lock.json names.
import { enableCompileCache } from 'node:module'
import { defaultCacheDirectory } from '#src/up/config.ts'

// Programs without privileges must be able to read the files that this process makes. Files that must be private set
// their mode explicitly.
process.umask(0o022)
// Cached code makes the command start twice as fast if root runs it. Only root can write to the cache directory, so no other user
// can change this code.
enableCompileCache(`${defaultCacheDirectory}/code/alcove`)
const { runCommandLine } = await import('#src/cli/command-line.ts')
await runCommandLine(process.argv)
