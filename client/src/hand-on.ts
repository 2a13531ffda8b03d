import type { Command } from 'commander'

/**
 * Gives the subcommand the options that the user has typed before its name. Ends with a usage error for options that the subcommand
 * does not have, and for unknown subcommands.
 */
export const handOn = (command: Command, subcommand: Command): void => {
  // Without this check, an unknown word would count as an argument of the default subcommand, and the error would be "too
  // many arguments".
  const [word] = command.args
  if (word !== undefined && !word.startsWith('-') && ![subcommand.name(), ...subcommand.aliases()].includes(word))
    command.error(`error: unknown command '${word}'`)
  for (const option of command.options) {
    const name = option.attributeName()
    if (command.getOptionValueSource(name) !== 'cli') continue
    if (!subcommand.options.some(({ long }) => long === option.long))
      command.error(`error: option '${option.flags}' is not for '${command.name()} ${subcommand.name()}'`)
    subcommand.setOptionValueWithSource(name, command.getOptionValue(name), 'cli')
  }
}
