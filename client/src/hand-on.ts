import type { Command } from 'commander'

/** Passes options that stand before the name of a subcommand on to the subcommand. Refuses options that it does not have. */
export const handOn = (command: Command, subcommand: Command): void => {
  for (const option of command.options) {
    const name = option.attributeName()
    if (command.getOptionValueSource(name) !== 'cli') continue
    if (!subcommand.options.some(({ long }) => long === option.long))
      command.error(`error: option '${option.flags}' is not for '${command.name()} ${subcommand.name()}'`)
    subcommand.setOptionValueWithSource(name, command.getOptionValue(name), 'cli')
  }
}
