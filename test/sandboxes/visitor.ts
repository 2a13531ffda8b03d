// A user of the dashboard: Debian's Chromium, signed in to a real server. The class collects the browser's errors for assertions.
import assert from 'node:assert/strict'
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { caller, type Platform } from './harness.ts'

/** How long a test waits until something appears on a page, in ms. The time is long, because the machine may be busy. */
const patience = 30_000

export const openChromium = (): Promise<Browser> =>
  chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: [
      ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-sync'],
      ...['--disable-background-networking', '--disable-component-update'],
      '--host-resolver-rules=MAP *.localhost 127.0.0.1,MAP * ~NOTFOUND,EXCLUDE 127.0.0.1',
    ],
  })

export type Account = { email: string; password: string }

let accounts = 0

/** Makes a local account with an empty organization. */
export const makeAccount = async ({ api }: Platform, name: string): Promise<Account> => {
  accounts += 1
  const email = `${name}-${process.pid}-${accounts}@example.com`
  const made = await api('POST', '/admin/users', { email, name })
  assert.equal(made.status, 201, JSON.stringify(made.body))
  const { body } = await api('POST', '/admin/users/password', { email })
  return { email, password: String(body['password']) }
}

export class Visitor implements AsyncDisposable {
  readonly context: BrowserContext
  readonly page: Page
  /**
   * What the browser has reported: errors of scripts, violations of the content security policy, and other errors in the
   * console.
   */
  readonly complaints: string[] = []
  readonly #platform: Platform
  #key: string | undefined

  private constructor(platform: Platform, context: BrowserContext, page: Page) {
    this.#platform = platform
    this.context = context
    this.page = page
    this.watch(page)
  }

  /** Collects the errors that the browser reports on a page. */
  watch(page: Page): void {
    page.on('pageerror', (error) => this.complaints.push(`script: ${error.stack}`))
    page.on('console', (message) => {
      // The browser reports every answer with status 400 or more. Leave these reports out, because tests provoke such answers and
      // check what pages show.
      if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
        this.complaints.push(`console: ${message.text()}`)
    })
    page.on('request', (request) => {
      this.#key = request.headers()['authorization']?.replace('Bearer ', '') ?? this.#key
    })
  }

  /** Opens a new browser window in which nobody is signed in. */
  static async open(platform: Platform, browser: Browser, options: BrowserContextOptions = {}): Promise<Visitor> {
    const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, ...options })
    context.setDefaultTimeout(patience)
    return new Visitor(platform, context, await context.newPage())
  }

  /** Opens the dashboard and signs in with a password. Returns when the page with the list of sandboxes is shown. */
  async signIn({ email, password }: Account): Promise<void> {
    await this.page.goto(`${this.#platform.url}/dashboard/`)
    await this.page.getByLabel('E-mail').fill(email)
    await this.page.getByLabel('Password').fill(password)
    await this.page.getByRole('button', { name: 'Sign in' }).click()
    await this.page.getByRole('heading', { name: 'Sandboxes', level: 1 }).waitFor()
  }

  /** Opens a page of the dashboard by its address, such as `/keys`. */
  async go(path: string): Promise<void> {
    await this.page.goto(`${this.#platform.url}/dashboard${path}`)
    await this.page.getByRole('heading', { level: 1 }).first().waitFor()
  }

  /** Returns the access token that the page sent with its last API call. */
  get key(): string {
    assert.ok(this.#key, 'nobody is signed in')
    return this.#key
  }

  /** Makes an API call as the user who is signed in. */
  readonly api: Platform['api'] = (method, path, body) => caller(this.#platform.url, this.key)(method, path, body)

  async [Symbol.asyncDispose](): Promise<void> {
    await this.context.close()
  }
}
