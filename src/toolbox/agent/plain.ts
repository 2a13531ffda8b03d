// Commands that a shell would do nothing to but start. Those are started without one, as make does: it takes half the time, and
// an image need not have a shell. Whatever could mean more to a shell than it says is left to the shell.

/** Letters that mean nothing to a shell wherever they stand. */
export const plainWord = /^[\w@%+=:,./-]+$/

/** What the shell does itself, or reads as its grammar. Of `true` and `false` the programs do the same. */
const ofShell: ReadonlySet<string> = new Set(
  `. : alias bg bind break builtin caller case cd command compgen complete compopt continue coproc declare dirs disown do done
  echo elif else enable esac eval exec exit export fc fg fi for function getopts hash help history if in jobs kill let local
  logout mapfile popd printf pushd pwd read readarray readonly return select set shift shopt source suspend test then time
  times trap type typeset ulimit umask unalias unset until wait while`.split(/\s+/),
)

/** By these a shell is told to do something before the command, or brings functions that may be called like it. */
const preparesShell = (name: string) => name === 'ENV' || name === 'SHELLOPTS' || name.startsWith('BASH')

/** The words of a command that needs no shell; `undefined`: it may. */
export const plainWordsOf = (command: string, env: Readonly<Record<string, string>>): string[] | undefined => {
  const words = command.split(/[ \t]+/).filter((word) => word !== '')
  const [program] = words
  if (program === undefined || !words.every((word) => plainWord.test(word))) return undefined
  if (program.includes('=') || ofShell.has(program)) return undefined
  return Object.keys(env).some(preparesShell) ? undefined : words
}
