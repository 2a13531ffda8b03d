// A simulated browser for sign-ins. It stores cookies per origin. The method `go` follows no redirect, but returns the URL to which
// the redirect leads.
import type { TestControl } from '../control/harness.ts'

export type Page = {
  url: string
  status: number
  /** The URL to which the answer redirects. Undefined if the answer is not a redirect. */
  location: string | undefined
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: a test asserts on what it expects to be there
  body: any
  headers: Record<string, string | string[] | undefined>
}

const json = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export class Browser {
  readonly #control: TestControl
  readonly #jars = new Map<string, Map<string, string>>()
  accept = 'application/json'

  constructor(control: TestControl) {
    this.#control = control
  }

  /** Returns the cookies that the browser would send to `origin`. */
  cookies(origin: string): Map<string, string> {
    const jar = this.#jars.get(origin) ?? new Map<string, string>()
    this.#jars.set(origin, jar)
    return jar
  }

  #keep(origin: string, lines: readonly string[]) {
    const jar = this.cookies(origin)
    for (const line of lines) {
      const [pair = ''] = line.split(';')
      const at = pair.indexOf('=')
      const [name, value] = [pair.slice(0, at), pair.slice(at + 1)]
      if (value === '') jar.delete(name)
      else jar.set(name, value)
    }
  }

  async go(url: string, form?: Record<string, string>): Promise<Page> {
    const { origin, pathname, search } = new URL(url)
    const cookie = [...this.cookies(origin)].map(([name, value]) => `${name}=${value}`).join('; ')
    const headers = { accept: this.accept, ...(cookie === '' ? {} : { cookie }) }
    const page =
      origin === this.#control.parts.settings.publicUrl
        ? await this.#askControl(`${pathname}${search}`, headers)
        : await this.#askProvider(url, headers, form)
    const lines = page.headers['set-cookie'] ?? []
    this.#keep(origin, Array.isArray(lines) ? lines : [lines])
    const location = page.headers['location'] as string | undefined
    return { ...page, url, location: location && new URL(location, url).href, body: json(page.text) }
  }

  async #askControl(path: string, headers: Record<string, string>) {
    const reply = await this.#control.app.server.inject({ method: 'GET', url: path, headers })
    return { status: reply.statusCode, text: reply.body, headers: reply.headers as Page['headers'] }
  }

  async #askProvider(url: string, headers: Record<string, string>, form: Record<string, string> | undefined) {
    const sent = form && { method: 'POST', body: new URLSearchParams(form) }
    const reply = await fetch(url, { ...sent, headers, redirect: 'manual' })
    const plain: Page['headers'] = Object.fromEntries(reply.headers)
    plain['set-cookie'] = reply.headers.getSetCookie()
    return { status: reply.status, text: await reply.text(), headers: plain }
  }

  /**
   * Signs in at the identity provider: follows the provider's redirects and fills in its form. Stops at the redirect back to
   * control.
   */
  async signInAt(url: string, login: string): Promise<string> {
    const { publicUrl } = this.#control.parts.settings
    let page = await this.go(url)
    for (let steps = 0; steps < 10; steps += 1) {
      if (page.location?.startsWith(publicUrl) === true) return page.location
      const action = /action="([^"]+)"/.exec(page.text)?.[1]
      if (page.location !== undefined) page = await this.go(page.location)
      else if (action !== undefined) page = await this.go(new URL(action, page.url).href, { login })
      else throw new Error(`the provider answered ${page.status} at ${page.url}: ${page.text.slice(0, 500)}`)
    }
    throw new Error('the provider sends in circles')
  }
}
