// The pages of our own issuer: no scripts, no outside resources, and all text escaped. These pages look like the dashboard.
import { createHash } from 'node:crypto'
import { escaped } from '#src/kit/escape.ts'

const style = `:root{color-scheme:light dark;--ground:#fbfbfa;--surface:#fff;--text:#1c1f1e;--quiet:#5b6360;--line:#d9dcda;
--accent:#0f766e;--on-accent:#fff;--wrong:#b42318}
@media(prefers-color-scheme:dark){:root{--ground:#101413;--surface:#171c1b;--text:#e6e9e8;--quiet:#9aa5a1;--line:#323a38;
--accent:#2dd4bf;--on-accent:#06201d;--wrong:#ff9a8d}}
*{box-sizing:border-box}
body{margin:0;min-height:100vh;min-height:100dvh;display:grid;place-items:center;padding:1rem;background:var(--ground);
color:var(--text);font:15px/1.5 system-ui,sans-serif}
main{width:100%;max-width:23rem;padding:1.75rem;background:var(--surface);border:1px solid var(--line);border-radius:.75rem}
.product{margin:0 0 1.25rem;color:var(--accent);font-weight:650;letter-spacing:.01em}
h1{margin:0 0 1rem;font-size:1.25rem;line-height:1.3}p{margin:0 0 1rem;overflow-wrap:anywhere}
label{display:block;margin:0 0 1rem;font-weight:550}
input:not([type=hidden]),button{display:block;width:100%;min-height:2.6rem;padding:.5rem .75rem;font:inherit;border-radius:.5rem}
input:not([type=hidden]){margin:.3rem 0 0;color:inherit;background:var(--ground);border:1px solid var(--quiet)}
form>input:not([type=hidden]){margin:0 0 1rem}
button{margin:.25rem 0 0;color:var(--on-accent);background:var(--accent);border:1px solid var(--accent);font-weight:600;cursor:pointer}
button.no{margin-top:.6rem;color:var(--text);background:none;border-color:var(--quiet)}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
code{font-size:1.4rem;letter-spacing:.1em}.wrong{color:var(--wrong)}.quiet{margin:1rem 0 0;color:var(--quiet);font-size:.93em}`

/**
 * The policy allows no scripts, no fetches and no framing. It has no `form-action`, because browsers would apply this
 * directive to the redirects after a form, too. Those redirects lead to other origins.
 */
export const contentSecurityPolicy = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ')

/** Renders a page. `body` is inserted as HTML, without escaping. */
const page = (title: string, body: string): string =>
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">` +
  `<title>${escaped(title)}</title><style>${style}</style></head><body><main><p class="product">Alcove</p>` +
  `<h1>${escaped(title)}</h1>${body}</main></body></html>`

const complain = (text: string): string => (text === '' ? '' : `<p class="wrong" role="alert">${escaped(text)}</p>`)

export const signInPage = (action: string, { email = '', complaint = '' } = {}): string => {
  // After a wrong password, the e-mail address is filled in already, so the password field gets the focus.
  const [first, second] = email === '' ? [' autofocus', ''] : ['', ' autofocus']
  return page(
    'Sign in to Alcove',
    `${complain(complaint)}<form method="post" action="${escaped(action)}">` +
      `<label>E-mail<input name="email" type="email" value="${escaped(email)}" maxlength="254" required ` +
      `autocomplete="username"${first}></label>` +
      `<label>Password<input name="password" type="password" maxlength="256" required ` +
      `autocomplete="current-password"${second}></label><button>Sign in</button></form>`,
  )
}

/**
 * Renders the page on which a user enters the code of a device. `form` comes from oidc-provider, with its own CSRF
 * protection.
 */
export const codePage = (form: string, complaint: string): string =>
  page(
    'Sign in a device',
    `${complaint === '' ? '<p>Enter the code that your device shows.</p>' : complain(complaint)}` +
      // Removes the inline script of the input field, which the content security policy would block.
      `${form.replaceAll(/ onfocus="[^"]*"/g, '')}<button type="submit" form="op.deviceInputForm">Continue</button>`,
  )

export const confirmPage = (form: string, userCode: string): string =>
  page(
    'Sign in a device',
    `<p>Does your own device show this code at this moment?</p><p><code>${escaped(userCode)}</code></p>` +
      `<p>The device will be able to do everything that you can. If somebody sent you here, stop.</p>${form}` +
      `<button type="submit" form="op.deviceConfirmForm">Yes, sign it in</button>` +
      `<button class="no" type="submit" form="op.deviceConfirmForm" name="abort" value="yes">No, stop</button>`,
  )

/**
 * Renders the page that asks for confirmation before a sign-out. `form` comes from oidc-provider, with its own CSRF
 * protection.
 */
export const signOutPage = (form: string): string =>
  page(
    'Sign out',
    `<p>Do you want to sign out of Alcove in this browser?</p>${form}` +
      `<button type="submit" form="op.logoutForm" name="logout" value="yes" autofocus>Sign out</button>`,
  )

export const messagePage = (title: string, text: string): string => page(title, `<p>${escaped(text)}</p>`)
