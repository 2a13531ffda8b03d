// Adds an address to the host, on which one of our programs can listen, and removes it. It belongs to the sandboxes' address
// range.
import { runCommand } from '#src/kit/run-command.ts'

export const addHostAddress = (address: string) => runCommand(['ip', 'addr', 'replace', `${address}/32`, 'dev', 'lo'])

export const removeHostAddress = (address: string) =>
  runCommand(['ip', 'addr', 'del', `${address}/32`, 'dev', 'lo']).then(
    () => {},
    () => {},
  )
