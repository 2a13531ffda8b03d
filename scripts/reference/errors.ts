import { type ProblemCode, problems, wordsOf } from '#src/problems.ts'
import { code, page, table } from './markdown.ts'

export const errorsPage = () =>
  page(
    'Errors',
    'Every refusal has the same body: `path`, `timestamp`, `statusCode`, `error`, `message` (one sentence), `code`, `source`, `method`. Decide by `code` or status, never by the sentence, which may say more than the one below. Older programs decide by words: every sentence has at least those of its row.',
    table(
      ['code', 'status', 'sentence', 'words in every sentence'],
      (Object.keys(problems) as ProblemCode[])
        .toSorted((one, other) => problems[one][0] - problems[other][0])
        .map((name) => {
          const [status, wireCode, sentence] = problems[name]
          return [code(wireCode), String(status), sentence, wordsOf(name).map(code).join(', ')]
        }),
    ),
  )
