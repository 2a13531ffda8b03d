// What the proxy itself shows to people who open a preview with a browser.
import { STATUS_CODES } from 'node:http'
import { escaped } from '#src/kit/escape.ts'
import type { Problem } from '#src/problems.ts'
import { acceptKey, type PreviewAddress, visibleUrl } from './address.ts'

const page = (title: string, content: string) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 34rem; margin: 15vh auto; padding: 0 1.5rem }
h1 { font-size: 1.4rem }
button { font: inherit; padding: .5rem 1rem }
</style>
</head>
<body>
<h1>${escaped(title)}</h1>
${content}
</body>
</html>
`

type Framing = { mayBeFramed?: boolean }

export const pageHeaders = (body: string, { mayBeFramed = false }: Framing = {}): string[] => [
  'Content-Type',
  'text/html; charset=utf-8',
  'Content-Length',
  String(Buffer.byteLength(body)),
  'Cache-Control',
  'no-store',
  'X-Robots-Tag',
  'noindex',
  // The page can do nothing but send its own form. Nobody can lay anything over its button, except where what the button sets
  // counts for frames of that same site only.
  'Content-Security-Policy',
  `default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'${mayBeFramed ? '' : "; frame-ancestors 'none'"}`,
  'Referrer-Policy',
  'same-origin',
]

export const warningPage = (address: PreviewAddress): string => {
  const url = visibleUrl(address)
  const action = `${url}${url.includes('?') ? '&' : '?'}${acceptKey}=true`
  return page(
    'You are about to see a preview',
    `<p>This page is served by a program that somebody runs in a sandbox. Nobody has checked what it does. Do not enter
passwords or other secrets unless you know who made it and trust them.</p>
<form method="post" action="${escaped(action)}"><button>Show the preview</button></form>`,
  )
}

const advice: Partial<Record<Problem['code'], string>> = {
  unauthorized:
    'Open it through the address with its token, or a signed address, that somebody who may use the sandbox has given you.',
  not_found: 'It may have been deleted, or belong to somebody else.',
  conflict: 'Start it and open this page again.',
  bad_gateway: 'Start a server on this port and open this page again.',
}

export const refusalPage = (problem: Problem): string =>
  page(
    `${problem.status} ${STATUS_CODES[problem.status] ?? 'Error'}`,
    [problem.message, advice[problem.code]]
      .flatMap((text) => (text === undefined ? [] : `<p>${escaped(text)}</p>`))
      .join('\n'),
  )
