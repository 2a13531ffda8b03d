// Functions for Markdown that all generated pages use: tables, whole pages and backticks.

const printedBy = '<!-- Printed by scripts/print-reference.ts from the code. -->'

export const table = (head: readonly string[], rows: readonly (readonly string[])[]) =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')

export const page = (title: string, ...parts: string[]) => `${[`# ${title}`, printedBy, ...parts].join('\n\n')}\n`

export const code = (text: string) => `\`${text}\``
