// Signs in as a browser does: stores cookies, follows one redirect at a time, and fills in forms. Requests to control's public URL
// go to the address at which the test's control listens.
import { Agent, fetch } from 'undici'
import { testSettings } from './test-settings.ts'

export type Page = { status: number; headers: Headers; html: string; location: string | undefined; url: string }

export type Browser = {
  get: (url: string, headers?: Record<string, string>) => Promise<Page>
  post: (url: string, fields: Record<string, string>, headers?: Record<string, string>) => Promise<Page>
  /** Follows redirects until an answer is not a redirect, or until `stop` returns true for the next address. */
  follow: (page: Page, stop?: (url: string) => boolean) => Promise<Page>
  cookies: Map<string, string>
}

const publicUrl = testSettings.publicUrl

/** Opens a simulated browser. `address` is the loopback address from which the browser connects. */
export const openBrowser = (base: string, address = '127.0.0.1'): Browser => {
  const dispatcher = new Agent({ localAddress: address, pipelining: 0 })
  const cookies = new Map<string, string>()
  const paths = new Map<string, string>()

  const ask = async (method: string, given: string, headers: Record<string, string>, body?: string): Promise<Page> => {
    const url = new URL(given, publicUrl)
    const sent = [...cookies].filter(([name]) => url.pathname.startsWith(paths.get(name) ?? '/'))
    const reply = await fetch(url.href.replace(publicUrl, base), {
      method,
      dispatcher,
      redirect: 'manual',
      headers: { cookie: sent.map(([name, value]) => `${name}=${value}`).join('; '), ...headers },
      ...(body === undefined ? {} : { body }),
    })
    for (const line of reply.headers.getSetCookie()) {
      const [pair = '', ...attributes] = line.split('; ')
      const [name = '', value = ''] = pair.split(/=(.*)/)
      const path = attributes.find((attribute) => attribute.startsWith('path='))?.slice(5) ?? '/'
      if (value === '') cookies.delete(name)
      else {
        cookies.set(name, value)
        paths.set(name, path)
      }
    }
    const location = reply.headers.get('location')
    return {
      status: reply.status,
      headers: reply.headers,
      html: await reply.text(),
      location: location === null ? undefined : new URL(location, url).href,
      url: url.href,
    }
  }

  const get: Browser['get'] = (url, headers = {}) => ask('GET', url, headers)
  return {
    get,
    post: (url, fields, headers = {}) =>
      ask(
        'POST',
        url,
        { 'content-type': 'application/x-www-form-urlencoded', ...headers },
        new URLSearchParams(fields).toString(),
      ),
    follow: async (page, stop = () => false) => {
      let at = page
      for (let steps = 0; at.location !== undefined && !stop(at.location); steps += 1) {
        if (steps > 10) throw new Error(`it leads in circles: ${at.location}`)
        at = await get(at.location)
      }
      return at
    },
    cookies,
  }
}

/** Returns the `action` of the page's form, and the values that the page gives to the form's fields. */
export const formOf = ({ html }: Page): { action: string; fields: Record<string, string> } => {
  const [, action] = /<form[^>]*action="([^"]+)"/.exec(html) ?? []
  if (action === undefined) throw new Error(`there is no form: ${html}`)
  const fields = Object.fromEntries(
    [...html.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g)].map(([, name, value]) => [name, value]),
  ) as Record<string, string>
  return { action: action.replaceAll('&amp;', '&'), fields }
}
