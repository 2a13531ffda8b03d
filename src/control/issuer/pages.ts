// The pages of our own issuer: no scripts, no outside resources, and all text escaped.
import { createHash } from 'node:crypto'
import { escaped } from '#src/kit/escape.ts'

const style =
  'body{font:16px/1.5 system-ui,sans-serif;max-width:24rem;margin:12vh auto;padding:0 1rem;color:#1b1f24}' +
  'input,button{font:inherit;width:100%;box-sizing:border-box;padding:.6rem;margin:.3rem 0 1rem;border:1px solid #8c959f;' +
  'border-radius:.4rem}button{background:#1b1f24;color:#fff;cursor:pointer}button.no{background:#fff;color:#1b1f24}' +
  'code{font-size:1.4rem;letter-spacing:.1em}.wrong{color:#a40e26}'

/**
 * The content security policy: no scripts, no fetches, no framing. `form-action` also names redirect targets, because
 * browsers check them too.
 */
export const contentSecurityPolicy = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ')

/** Renders a page. `body` is trusted HTML. */
const page = (title: string, body: string): string =>
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">` +
  `<title>${escaped(title)}</title><style>${style}</style></head><body><h1>${escaped(title)}</h1>${body}</body></html>`

export const signInPage = (action: string, { email = '', complaint = '' } = {}): string =>
  page(
    'Sign in to Alcove',
    `${complaint === '' ? '' : `<p class="wrong" role="alert">${escaped(complaint)}</p>`}` +
      `<form method="post" action="${escaped(action)}">` +
      `<label>E-mail<input name="email" type="email" value="${escaped(email)}" maxlength="254" required ` +
      `autocomplete="username" autofocus></label>` +
      `<label>Password<input name="password" type="password" maxlength="256" required ` +
      `autocomplete="current-password"></label><button>Sign in</button></form>`,
  )

/** Renders the page where a device's code is entered. `form` comes from oidc-provider, with its own CSRF protection. */
export const codePage = (form: string, complaint: string): string =>
  page(
    'Sign in a device',
    `${complaint === '' ? '<p>Enter the code that your device shows.</p>' : `<p class="wrong">${escaped(complaint)}</p>`}` +
      // The input field has an inline script, which the content security policy would block.
      `${form.replaceAll(/ onfocus="[^"]*"/g, '')}<button type="submit" form="op.deviceInputForm">Continue</button>`,
  )

export const confirmPage = (form: string, userCode: string): string =>
  page(
    'Sign in a device',
    `<p>Does your own device show this code at this moment?</p><p><code>${escaped(userCode)}</code></p>` +
      `<p>It will be able to do everything that you can. If somebody sent you here, stop.</p>${form}` +
      `<button type="submit" form="op.deviceConfirmForm">Yes, sign it in</button>` +
      `<button class="no" type="submit" form="op.deviceConfirmForm" name="abort" value="yes">No, stop</button>`,
  )

export const messagePage = (title: string, text: string): string => page(title, `<p>${escaped(text)}</p>`)
