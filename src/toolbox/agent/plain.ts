// Starts a program without a shell if a shell would only start the program. That takes half the time, and works in images without a
// shell.

/** Matches a word without any character that a shell interprets. */
export const plainWord = /^[\w@%+=:,./-]+$/

/** Builtins and keywords of shells, without `true` and `false`, whose programs do what the builtins do. */
const ofShell: ReadonlySet<string> = new Set(
  `. : alias bg bind break builtin caller case cd command compgen complete compopt continue coproc declare dirs disown do done
  echo elif else enable esac eval exec exit export fc fg fi for function getopts hash help history if in jobs kill let local
  logout mapfile popd printf pushd pwd read readarray readonly return select set shift shopt source suspend test then time
  times trap type typeset ulimit umask unalias unset until wait while`.split(/\s+/),
)

/** Whether a variable can make a shell run code before the command, or define a function that replaces the command. */
const preparesShell = (name: string) => name === 'ENV' || name === 'SHELLOPTS' || name.startsWith('BASH')

/** Returns the words of a command that needs no shell; `undefined` if the command may need a shell. */
export const plainWordsOf = (command: string, env: Readonly<Record<string, string>>): string[] | undefined => {
  const words = command.split(/[ \t]+/).filter((word) => word !== '')
  const [program] = words
  if (program === undefined || !words.every((word) => plainWord.test(word))) return undefined
  if (program.includes('=') || ofShell.has(program)) return undefined
  return Object.keys(env).some(preparesShell) ? undefined : words
}
