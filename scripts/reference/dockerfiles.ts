import { instructionsOf } from '#src/runner/images/definition/instructions.ts'
import { planOf } from '#src/runner/images/definition/plan.ts'
import { definitions } from '#src/runner/images/definition/testing/definitions.ts'
import { code, page, table } from './markdown.ts'

/** Lists the instructions and flags in a Dockerfile. For a mount (`--mount`), its type is listed too. */
const featuresOf = (dockerfile: string): string[] => {
  const features = instructionsOf(dockerfile).instructions.flatMap(({ name, flags, documents }) => [
    name,
    ...flags.map(
      (flag) => `${name} ${/^--mount=.*?type=\w+/.exec(flag)?.[0].replace(/=.*type=/, '=') ?? flag.split('=')[0]}`,
    ),
    ...(documents.length > 0 ? [`${name} <<`] : []),
  ])
  return [...new Set(features)].filter((each) => each !== 'FROM')
}

const stagesIn = (dockerfile: string): number =>
  instructionsOf(dockerfile).instructions.filter(({ name }) => name === 'FROM').length

/**
 * Matches the platform of this machine in an error message. The generated page has `linux/…` instead, because the
 * platform differs between machines.
 */
const platforms = /linux\/(?:amd64|arm64)/g

const answerTo = (dockerfile: string): string => {
  try {
    planOf(dockerfile, true)
    return 'accepted'
  } catch (error) {
    return (error as Error).message.replaceAll(platforms, 'linux/…')
  }
}

export const dockerfilesPage = (): string => {
  const rows = definitions.map(({ name, dockerfile }) => ({ name, dockerfile, answer: answerTo(dockerfile) }))
  const accepted = rows.filter(({ answer }) => answer === 'accepted').length
  return page(
    'Dockerfiles',
    `This page lists ${rows.length} short Dockerfiles that we wrote after common patterns, and whether Alcove accepts each: ${accepted} are accepted.`,
    '`test/sandboxes/dockerfiles.test.ts` builds ten of them. [choices.md](choices.md#images) explains what each instruction does in Alcove.',
    table(
      ['Pattern', 'Stages', 'Instructions', 'Result'],
      rows.map(({ name, dockerfile, answer }) => [
        name,
        String(stagesIn(dockerfile)),
        featuresOf(dockerfile).map(code).join(', '),
        answer,
      ]),
    ),
  )
}
