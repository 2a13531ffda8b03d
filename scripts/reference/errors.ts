import { type ProblemCode, problems, wordsOf } from '#src/problems.ts'
import { code, page, table } from './markdown.ts'

export const errorsPage = () =>
  page(
    'Errors',
    'Every error has the same body, with the fields `path`, `timestamp`, `statusCode`, `error`, `message`, `code`, `source` and `method`. In your program, tell errors apart by `code` or by the status. Do not use `message`: its text can differ from the default message below. Programs for older SDKs search for words in the message. Each message contains at least the words in the last column of its row.',
    table(
      ['code', 'status', 'default message', 'words in every message'],
      (Object.keys(problems) as ProblemCode[])
        .toSorted((one, other) => problems[one][0] - problems[other][0])
        .map((name) => {
          const [status, wireCode, sentence] = problems[name]
          return [code(wireCode), String(status), sentence, wordsOf(name).map(code).join(', ')]
        }),
    ),
  )
