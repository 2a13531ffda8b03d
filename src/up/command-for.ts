// Makes commands that messages show to the user. The commands contain full paths, so they work in any directory.
import { resolve } from 'node:path'

const launcher = resolve(import.meta.dirname, '../../alcove')

const quoted = (text: string): string => (/^[\w.:/-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`)

/** Returns a command about the server of a data directory, such as `/opt/alcove/alcove key --data /x`. */
export const commandFor = (command: string, directory: string): string =>
  `${quoted(launcher)} ${command} --data ${quoted(resolve(directory))}`
