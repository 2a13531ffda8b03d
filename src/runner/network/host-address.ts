// Adds or removes a host address in the sandboxes' range, on which a program of Alcove can listen.
import { runCommand } from '#src/kit/run-command.ts'

export const addHostAddress = (address: string) => runCommand(['ip', 'addr', 'replace', `${address}/32`, 'dev', 'lo'])

export const removeHostAddress = (address: string) =>
  runCommand(['ip', 'addr', 'del', `${address}/32`, 'dev', 'lo']).then(
    () => {},
    () => {},
  )
