// The command `alcove completion`: prints a script that completes commands and options in a shell. The script contains the
// definitions of the commands, so it starts no program when the user presses Tab.
import type { Command } from 'commander'
import type { shells } from './shells.ts'

type Node = { path: string[]; words: string[] }

const isShown = (command: Command): boolean => !(command as unknown as { _hidden: boolean })._hidden

const namesOf = (command: Command): string[] => [command.name(), ...command.aliases()]

/**
 * Lists all commands, each under its name and its aliases, with the words that the user may type after it: subcommands and options.
 */
const nodesOf = (command: Command, path: string[] = []): Node[] => {
  const subcommands = command.commands.filter(isShown)
  const options = command.options.filter(({ hidden }) => !hidden).flatMap(({ short, long }) => [short, long])
  const words = [
    ...subcommands.flatMap(namesOf),
    ...options.filter((name): name is string => name !== undefined),
    '--help',
  ]
  return [
    { path, words },
    ...subcommands.flatMap((below) => namesOf(below).flatMap((name) => nodesOf(below, [...path, name]))),
  ]
}

const keyOf = (path: readonly string[]): string => path.join(' ')

/**
 * Returns the branches of a shell's `case`. For each command, a branch puts the words that may follow the command into
 * `$choices`.
 */
const branchesOf = (nodes: readonly Node[]): string =>
  nodes.map(({ path, words }) => `    '${keyOf(path)}') choices='${words.join(' ')}' ;;`).join('\n')

/** Returns one pattern for a shell's `case` that matches any of the commands. */
const patternsOf = (nodes: readonly Node[]): string =>
  nodes
    .filter(({ path }) => path.length > 0)
    .map(({ path }) => `'${keyOf(path)}'`)
    .join('|')

/**
 * Shell code for bash and zsh that sets `at` to the typed command and subcommand. `words` is a shell expression for the words
 * before the cursor.
 */
const walk = (nodes: readonly Node[], words: string) => `  local at='' word choices=''
  for word in ${words}; do
    case $word in
      -*) continue ;;
    esac
    case "\${at:+$at }$word" in
      ${patternsOf(nodes)}) at="\${at:+$at }$word" ;;
      *) break ;;
    esac
  done
  case $at in
${branchesOf(nodes)}
  esac`

const bash = (nodes: readonly Node[]) => `# Completion of alcove for bash: source <(alcove completion bash)
_alcove() {
${walk(nodes, `"\${COMP_WORDS[@]:1:COMP_CWORD-1}"`)}
  COMPREPLY=($(compgen -W "$choices" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _alcove alcove
`

const zsh = (nodes: readonly Node[]) => `#compdef alcove
# Completion of alcove for zsh: source <(alcove completion zsh)
_alcove() {
${walk(nodes, `"\${(@)words[2,CURRENT-1]}"`)}
  compadd -- \${=choices}
  _files
}
compdef _alcove alcove
`

const fish = (nodes: readonly Node[]) => {
  const lines = nodes.flatMap(({ path, words }) =>
    words.map((word) => `complete -c alcove -n '__alcove_at "${keyOf(path)}"' -a '${word}'`),
  )
  const known = nodes.map(({ path }) => `"${keyOf(path)}"`).join(' ')
  return `# Completion of alcove for fish: alcove completion fish | source
function __alcove_at
  set -l at ''
  for word in (commandline -opc)[2..-1]
    string match -q -- '-*' $word; and continue
    set -l next (string trim -- "$at $word")
    contains -- $next ${known}; or break
    set at $next
  end
  test "$at" = "$argv[1]"
end
${lines.join('\n')}
`
}

/** Returns the completion script for a shell. */
export const completionFor = (program: Command, shell: (typeof shells)[number]): string =>
  ({ bash, zsh, fish })[shell](nodesOf(program))
