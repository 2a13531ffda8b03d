import type { Command } from 'commander'

/**
 * Passes options that stand before the name of a subcommand on to the subcommand. Refuses options that it does not have,
 * and words that are not the name of a subcommand.
 */
export const handOn = (command: Command, subcommand: Command): void => {
  // A word that is no subcommand would otherwise be an argument too many for the default one.
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
