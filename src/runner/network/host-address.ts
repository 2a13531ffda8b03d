// Adds an address of the sandboxes' range to the host, so that a program of Alcove can listen on it, or removes the address.
import { runCommand } from '#src/kit/run-command.ts'

export const addHostAddress = (address: string) => runCommand(['ip', 'addr', 'replace', `${address}/32`, 'dev', 'lo'])

export const removeHostAddress = (address: string) =>
  runCommand(['ip', 'addr', 'del', `${address}/32`, 'dev', 'lo']).then(
    () => {},
    () => {},
  )
