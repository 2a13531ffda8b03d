// A simulated user who uses one sandbox while programs of the server are killed. Commands and previews may fail only while the
// gate, or a program that the gate needs, is down. A kill of the runner must have no effect. The user's session and terminal must
// survive every kill.
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Answer, Client, Record_ } from './client.ts'

type Work = { what: string; fails: () => Promise<string | undefined> }

const port = 3100
const session = 'steady'
const count = 'cd /tmp; n=0; while [ ! -e stop ]; do n=$((n+1)); echo $n; sleep 0.2; done; echo end'
/**
 * Shell command that lists each terminal's shell with its start time. It lists only session leaders, so child processes of the
 * shells are left out.
 */
const terminals =
  'for p in /proc/[0-9]*; do case $(readlink $p/fd/0) in /dev/pts/*) set -- $(cat $p/stat 2>/dev/null); ' +
  '[ "/proc/$6" = "$p" ] && shift 21 && echo $p $1;; esac; done 2>/dev/null; true'

const seen = (answer: Answer | undefined): string =>
  answer === undefined ? 'no answer' : `${answer.status} ${JSON.stringify(answer.body).slice(0, 300)}`

export class Steady {
  readonly #client: Client
  readonly #record: Record_
  readonly #token: string
  #command = ''
  #terminals = ''
  #strikes = 0
  /**
   * True while calls of the simulated user may fail: a program that these calls need was killed, and not all calls succeed
   * yet.
   */
  #isTroubled = false
  #troubledUntil = 0
  #made = 0
  /** Number of the user's calls that have succeeded. */
  answered = 0
  readonly complaints: string[] = []

  private constructor(client: Client, record: Record_, token: string) {
    this.#client = client
    this.#record = record
    this.#token = token
  }

  static async begin(client: Client): Promise<Steady> {
    const made = (await client.sure('POST', '/sandbox', { name: 'steady', autoStopInterval: 0 })).body as Record_
    const preview = (await client.sure('GET', `/sandbox/${made.id}/ports/${port}/preview-url`)).body as {
      token: string
    }
    const steady = new Steady(client, made, preview.token)
    await steady.#open()
    return steady
  }

  get id(): string {
    return this.#record.id
  }

  async #open() {
    await this.#ask('POST', '/process/session', { sessionId: session })
    const run = (command: string) =>
      this.#ask('POST', `/process/session/${session}/exec`, { command, runAsync: true }) as Promise<{ cmdId: string }>
    await this.#ask('POST', '/process/execute', {
      command: `mkdir /tmp/served && echo served > /tmp/served/index.html && (setsid python3 -m http.server -d /tmp/served ${port} >/dev/null 2>&1 &)`,
    })
    this.#command = (await run(count)).cmdId
    await this.#ask('POST', '/process/pty', { id: 'terminal', cols: 80, rows: 24 })
    this.#terminals = await this.#output(terminals)
    assert.match(this.#terminals, /^\/proc\/\d+ \d+$/m)
    for (let tries = 0; (await this.#visit()) !== undefined; tries++) {
      assert.ok(tries < 100, 'the server inside never answered')
      await sleep(100)
    }
  }

  async #ask(method: string, path: string, body?: unknown): Promise<unknown> {
    const answer = await this.#client.toolbox(this.#record, method, path, body)
    assert.ok(answer !== undefined && answer.status < 300, `${method} ${path}: ${seen(answer)}`)
    return answer.body
  }

  async #output(command: string): Promise<string> {
    return String(((await this.#ask('POST', '/process/execute', { command })) as { result: string }).result)
  }

  /** Calls `strike`, which kills a program. The user's calls may fail until the program runs again. */
  async during(strike: () => Promise<unknown>): Promise<void> {
    this.#strikes += 1
    this.#isTroubled = true
    try {
      await strike()
    } finally {
      this.#strikes -= 1
    }
  }

  async run(isOver: () => boolean): Promise<void> {
    const execute = (command: () => string): Work['fails'] => {
      return async () => {
        const [word, given] = [String(this.#made++), command()]
        const answer = await this.#client.toolbox(this.#record, 'POST', '/process/execute', {
          command: `${given}; echo ${word}`,
          timeout: 30,
        })
        const { result } = (answer?.body ?? {}) as { result?: string }
        return answer?.status === 200 && result === `${word}\n` ? undefined : seen(answer)
      }
    }
    const works: Work[] = [
      { what: 'a short command', fails: execute(() => 'true') },
      { what: 'a long command', fails: execute(() => 'sleep 2') },
      { what: 'a preview', fails: () => this.#visit() },
    ]
    await Promise.all([...works.map((work) => this.#work(work, isOver)), this.#watch(isOver)])
  }

  async #visit(): Promise<string | undefined> {
    const { origin } = new URL(this.#record.toolboxProxyUrl)
    const headers = { 'x-daytona-preview-token': this.#token }
    const page = await this.#client.page(`${origin}/preview/${this.#record.id}/${port}/`, headers)
    return page?.text === 'served\n' ? undefined : `${page?.status} ${page?.text.slice(0, 300)}`
  }

  async #work({ what, fails }: Work, isOver: () => boolean) {
    while (!isOver()) {
      const begunAt = Date.now()
      const why = await fails()
      if (why === undefined) this.answered += 1
      else if (!this.#isTroubled && begunAt > this.#troubledUntil) this.complaints.push(`FELT by ${what}: ${why}`)
      await sleep(100)
    }
  }

  /** Waits until calls that began after the last kill have succeeded. After that, the user's calls must not fail. */
  async #watch(isOver: () => boolean) {
    while (!isOver()) {
      await sleep(50)
      if (!this.#isTroubled || this.#strikes > 0) continue
      // The gate may use control's cached answers for one second. After this longer wait, a success shows that control runs.
      await sleep(1100)
      const strikes = this.#strikes
      const record = await this.#client.once('GET', `/sandbox/${this.#record.id}`)
      const command = await this.#client.toolbox(this.#record, 'POST', '/process/execute', { command: 'true' })
      if (strikes + this.#strikes > 0 || record?.status !== 200 || command?.status !== 200) continue
      this.#troubledUntil = Date.now()
      this.#isTroubled = false
    }
  }

  /**
   * Checks that the user's terminal still runs, and that the user's session has lost no output. Call this method after the last
   * kill of a program.
   */
  async settle(): Promise<void> {
    try {
      assert.equal((await this.#client.get(this.#record.id))?.state, 'started')
      assert.equal(await this.#output(terminals), this.#terminals, 'the shell of the terminal is another one')
      const terminal = (await this.#ask('GET', '/process/pty/terminal')) as { active: boolean }
      assert.equal(terminal.active, true, 'the terminal is not active')
      await this.#output('touch /tmp/stop; sleep 1')
      const path = `/process/session/${session}/command/${this.#command}`
      const command = (await this.#ask('GET', path)) as { exitCode?: number }
      assert.equal(command.exitCode, 0, `the command of the session: ${JSON.stringify(command)}`)
      const { stdout } = (await this.#ask('GET', `${path}/logs`)) as { stdout: string }
      const lines = stdout.split('\n').filter(Boolean)
      assert.equal(lines.pop(), 'end')
      assert.deepEqual(
        lines,
        lines.map((_, index) => String(index + 1)),
        'lines are missing',
      )
    } catch (error) {
      this.complaints.push(`LOST in ${this.#record.name}: ${(error as Error).message}`)
    }
  }
}
