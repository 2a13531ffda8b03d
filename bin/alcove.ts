// The command line. `./alcove` has made sure that this runs on the Node that we pin.
import { runCommandLine } from '#src/cli/command-line.ts'

await runCommandLine(process.argv)
