// Adds an address of the pool's range to the host, for a program that listens on it, and removes it.
import { runCommand } from '#src/kit/run-command.ts'

export const addHostAddress = (address: string) => runCommand(['ip', 'addr', 'replace', `${address}/32`, 'dev', 'lo'])

export const removeHostAddress = (address: string) =>
  runCommand(['ip', 'addr', 'del', `${address}/32`, 'dev', 'lo']).then(
    () => {},
    () => {},
  )
