// The pages on which owners of an organization manage its webhook endpoints (the portal): server-rendered, without any
// script.
import { createHash } from 'node:crypto'
import type { AttemptRow, Endpoint } from '../endpoint-store.ts'
import { webhookEvents } from '../event.ts'
import { type Html, html } from './html.ts'
import { formWord, portalPath, type Session } from './tokens.ts'

const style = `body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1f24}
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}table{border-collapse:collapse;width:100%}
td,th{text-align:left;padding:.35rem .5rem;border-bottom:1px solid #d8dee4;overflow-wrap:anywhere}
input[type=url],input[type=text]{width:100%;box-sizing:border-box;padding:.35rem}label{display:block;margin:.4rem 0}
button{padding:.3rem .8rem}form.inline{display:inline}.bad{color:#a40e26}.note{background:#fff8c5;padding:.6rem}
code{background:#f3f4f6;padding:.1rem .3rem;overflow-wrap:anywhere}`

export const contentSecurityPolicy = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ')

const styleElement = html`<style>`.text + style + html`</style>`.text

const page = (title: string, ...content: Html[]): string =>
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">${
    html`<title>${title}</title>`.text
  }${styleElement}</head><body>${content.map(({ text }) => text).join('')}</body></html>`

export const messagePage = (title: string, sentence: string): string =>
  page(title, html`<h1>${title}</h1><p>${sentence}</p>`)

const hidden = (session: Session) => html`<input type="hidden" name="form" value="${formWord(session)}">`

const button = (session: Session, action: string, label: string) => html`
  <form class="inline" method="post" action="${portalPath}/${action}">${hidden(session)}<button>${label}</button></form>`

const fields = (endpoint?: Pick<Endpoint, 'url' | 'description' | 'events'>) => html`
  <label>URL <input type="url" name="url" required maxlength="2048" value="${endpoint?.url ?? 'https://'}"></label>
  <label>Description <input type="text" name="description" maxlength="255" value="${endpoint?.description ?? ''}"></label>
  <fieldset><legend>Events (none chosen: all)</legend>${webhookEvents.map(
    (event) =>
      html`<label><input type="checkbox" name="events" value="${event}"${
        endpoint?.events.includes(event) ? html` checked` : ''
      }> ${event}</label>`,
  )}</fieldset>`

const stateOf = ({ disabledAt, disabledReason, failingSince }: Endpoint): Html => {
  if (disabledAt !== null) return html`<span class="bad">disabled: ${disabledReason}</span>`
  return failingSince === null
    ? html`enabled`
    : html`<span class="bad">failing since ${failingSince.toISOString()}</span>`
}

export const listPage = (session: Session, endpoints: readonly Endpoint[]): string =>
  page(
    `Webhooks of ${session.organizationName}`,
    html`<h1>Webhooks of ${session.organizationName}</h1>`,
    endpoints.length === 0
      ? html`<p>No endpoint yet.</p>`
      : html`<table><tr><th>URL</th><th>Events</th><th>State</th></tr>${endpoints.map(
          (endpoint) =>
            html`<tr><td><a href="${portalPath}/endpoints/${endpoint.id}">${endpoint.url}</a><br>${
              endpoint.description
            }</td><td>${endpoint.events.join(', ') || 'all'}</td><td>${stateOf(endpoint)}</td></tr>`,
        )}</table>`,
    html`<h2>Add an endpoint</h2>
      <form method="post" action="${portalPath}/endpoints">${hidden(session)}${fields()}<button>Add</button></form>`,
  )

export const secretNote = (secret: string): Html => html`
  <p class="note">The secret of this endpoint, shown now and never again:<br><code>${secret}</code></p>`

export const endpointPage = (
  session: Session,
  endpoint: Endpoint,
  attempts: readonly AttemptRow[],
  note?: Html,
): string => {
  const at = `endpoints/${endpoint.id}`
  return page(
    'Webhook endpoint',
    html`<p><a href="${portalPath}">All endpoints</a></p><h1>${endpoint.url}</h1><p>${stateOf(endpoint)}</p>`,
    note ?? html``,
    html`<p>${button(
      session,
      `${at}/${endpoint.disabledAt === null ? 'disable' : 'enable'}`,
      endpoint.disabledAt === null ? 'Disable' : 'Enable',
    )}
      ${button(session, `${at}/rotate`, 'New secret')} ${button(session, `${at}/delete`, 'Delete')}</p>`,
    html`<h2>Settings</h2>
      <form method="post" action="${portalPath}/${at}">${hidden(session)}${fields(endpoint)}<button>Save</button></form>`,
    html`<h2>Last attempts</h2><table><tr><th>When</th><th>Event</th><th>Message</th><th>Result</th><th></th></tr>${attempts.map(
      (attempt) =>
        html`<tr><td>${attempt.at.toISOString()}</td><td>${attempt.event}</td><td>${attempt.messageId} (${
          attempt.number
        })</td><td>${
          attempt.isDelivered
            ? html`delivered, ${attempt.status}`
            : html`<span class="bad">${attempt.error ?? `The endpoint answered ${attempt.status}.`}</span>`
        }</td><td>${button(session, `${at}/resend/${attempt.messageId}`, 'Send again')}</td></tr>`,
    )}</table>`,
  )
}
