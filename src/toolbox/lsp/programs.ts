// The language servers that the toolbox can start. The toolbox tries the commands of a language in order. The image or the user
// installs the servers.

export const languages = ['python', 'typescript', 'javascript'] as const
export type Language = (typeof languages)[number]

type Programs = { commands: readonly (readonly string[])[]; install: string }

/** TypeScript from version 7 is a language server itself. For older versions, `typescript-language-server` provides one. */
const forScripts: Programs = {
  commands: [
    ['tsc', '--lsp', '--stdio'],
    ['typescript-language-server', '--stdio'],
  ],
  install: 'npm install -g typescript',
}

export const programsFor: Record<Language, Programs> = {
  python: {
    commands: [['pyright-langserver', '--stdio'], ['pylsp']],
    install: 'sudo apt-get install python3-pylsp, or npm install -g pyright',
  },
  typescript: forScripts,
  javascript: forScripts,
}

/** The language of a file, as the protocol names it. Default: the language of the server. */
export const languageOfFile = (path: string, language: Language): string => {
  const [, ending = ''] = /\.([a-z]+)$/.exec(path) ?? []
  const known: Record<string, string> = {
    py: 'python',
    ...{ ts: 'typescript', mts: 'typescript', cts: 'typescript', tsx: 'typescriptreact' },
    ...{ js: 'javascript', mjs: 'javascript', cjs: 'javascript', jsx: 'javascriptreact' },
  }
  return Object.hasOwn(known, ending) ? known[ending]! : language
}
