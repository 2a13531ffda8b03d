// Returns findings as a table for a terminal. The last line says whether the host can run sandboxes.
import type { Finding } from './finding.ts'

const marks = { ok: 'ok', warn: 'warn', missing: 'MISSING' } as const

export const renderFindings = (findings: readonly Finding[]): string => {
  const nameWidth = Math.max(0, ...findings.map(({ name }) => name.length))
  const markWidth = Math.max(...Object.values(marks).map((mark) => mark.length))
  const indent = ' '.repeat(markWidth + nameWidth + 4)
  const rows = findings.flatMap(({ name, status, found, costs, remedy }) => [
    `${marks[status].padEnd(markWidth)}  ${name.padEnd(nameWidth)}  ${found}`,
    ...(costs === undefined ? [] : [`${indent}costs: ${costs}`]),
    ...(remedy === undefined ? [] : [`${indent}remedy: ${remedy}`]),
  ])
  return `${[...rows, '', verdict(findings)].join('\n')}\n`
}

const verdict = (findings: readonly Finding[]) => {
  const missing = findings.filter(({ status }) => status === 'missing').map(({ name }) => name)
  return missing.length === 0
    ? 'This host can run sandboxes.'
    : `This host cannot run sandboxes yet: ${missing.join(', ')}.`
}
