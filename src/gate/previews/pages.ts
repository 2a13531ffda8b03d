// Pages of the gate for people who open a preview in a browser.
import { createHash } from 'node:crypto'
import { STATUS_CODES } from 'node:http'
import { escaped } from '#src/kit/escape.ts'
import type { Problem } from '#src/problems.ts'
import { NothingListens, NotStarted } from '../hindrance.ts'
import { acceptKey, type PreviewAddress, visibleUrl } from './address.ts'

export type Page = { body: string; headers: string[] }

/**
 * A script in the page that people see while a preview is not available. It requests the preview at growing intervals until
 * the answer changes, and then reloads the page. These requests do not count as activity, so an open page does not keep the
 * sandbox running.
 */
const lookAgain = `
const status = Number(document.body.dataset.status)
let seconds = 1
const look = async () => {
  seconds = Math.min(seconds * 1.2, 15)
  setTimeout(look, seconds * 1000)
  if (document.hidden) return
  const headers = { 'X-Daytona-Skip-Last-Activity-Update': 'true' }
  const answer = await fetch(location.href, { method: 'HEAD', headers, redirect: 'manual', cache: 'no-store' })
  // Ignore a 401: for a preview by path, the gate does not accept the cookie of this HEAD request.
  if (answer.status !== status && answer.status !== 401) location.reload()
}
setTimeout(look, 1000)
`

const hashOf = (script: string) => `'sha256-${createHash('sha256').update(script).digest('base64')}'`

type Content = {
  title: string
  html: string
  status: number
  looksAgain?: boolean
  /** True if pages of other sites may show this page in a frame. */
  mayBeFramed?: boolean
}

/**
 * Returns the content security policy. The page can only send its form and, with `looksAgain`, request itself again. Without
 * `mayBeFramed`, no other page can show this page in a frame and overlay it.
 */
const policyOf = ({ looksAgain = false, mayBeFramed = false }: Content) =>
  [
    "default-src 'none'",
    "style-src 'unsafe-inline'",
    "form-action 'self'",
    "base-uri 'none'",
    ...(looksAgain ? [`script-src ${hashOf(lookAgain)}`, "connect-src 'self'"] : []),
    ...(mayBeFramed ? [] : ["frame-ancestors 'none'"]),
  ].join('; ')

const pageOf = (content: Content): Page => {
  const { title, html, status, looksAgain = false } = content
  const body = `<!doctype html>
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
<body data-status="${status}">
<h1>${escaped(title)}</h1>
${html}
${looksAgain ? `<script>${lookAgain}</script>` : ''}
</body>
</html>
`
  return {
    body,
    headers: [
      'Content-Type',
      'text/html; charset=utf-8',
      'Content-Length',
      String(Buffer.byteLength(body)),
      'Cache-Control',
      'no-store',
      'X-Robots-Tag',
      'noindex',
      'X-Content-Type-Options',
      'nosniff',
      'Content-Security-Policy',
      policyOf(content),
      'Referrer-Policy',
      'same-origin',
    ],
  }
}

/**
 * Returns the page that warns people before they see a preview. The page's button sets a cookie that skips the warning. With
 * `mayBeFramed`, a page of another site may show the warning in a frame. Then the cookie must apply only in frames of the other
 * site.
 */
export const warningPage = (address: PreviewAddress, mayBeFramed: boolean): Page => {
  const url = visibleUrl(address)
  const action = `${url}${url.includes('?') ? '&' : '?'}${acceptKey}=true`
  return pageOf({
    title: 'You are about to see a preview',
    status: 200,
    mayBeFramed,
    html: `<p>This page is served by a program that somebody runs in a sandbox. Nobody has checked what it does. Do not enter
passwords or other secrets unless you know who made it and trust them.</p>
<form method="post" action="${escaped(action)}"><button>Show the preview</button></form>`,
  })
}

const paragraphs = (...texts: (string | undefined)[]) =>
  texts.flatMap((text) => (text === undefined ? [] : `<p>${escaped(text)}</p>`)).join('\n')

const advice: Partial<Record<Problem['code'], string>> = {
  unauthorized:
    'Ask somebody who may use the sandbox for an address with a token, or for a signed address. Then open that address.',
  not_found: 'The sandbox may have been deleted, or belong to somebody else.',
}

/** States from which a sandbox becomes `started` without anybody acting. */
const onTheWay: readonly string[] = [
  'creating',
  'restoring',
  'starting',
  'resuming',
  'pending_build',
  'building_snapshot',
  'pulling_snapshot',
  'resizing',
  'snapshotting',
  'forking',
]

const inWords = (state: string) => state.replaceAll('_', ' ')

const contentOf = (problem: Problem): Content => {
  const { status, message } = problem
  if (problem instanceof NothingListens) {
    const title = `Nothing listens on port ${problem.port} yet`
    const html = paragraphs(
      'The sandbox runs, but no server in it has this port open.',
      'This page checks again automatically, and shows the preview as soon as the server runs.',
    )
    return { title, html, status, looksAgain: true }
  }
  if (problem instanceof NotStarted) {
    const { state = 'not started' } = problem
    const title = `The sandbox is ${inWords(state)}`
    return onTheWay.includes(state)
      ? {
          title,
          html: paragraphs('This page checks again automatically until the sandbox is started.'),
          status,
          looksAgain: true,
        }
      : { title, html: paragraphs('The previews work again after somebody has started the sandbox.'), status }
  }
  const title = `${status} ${STATUS_CODES[status] ?? 'Error'}`
  return { title, html: paragraphs(message, advice[problem.code]), status }
}

export const refusalPage = (problem: Problem): Page => pageOf(contentOf(problem))
