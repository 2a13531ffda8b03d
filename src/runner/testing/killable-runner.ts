// For tests: a runner in a process of its own, which the test can kill at any moment of a verb.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Order } from './killable-runner-program.ts'
import type { TestHost } from './test-host.ts'

export class KillableRunner {
  readonly #process: ChildProcess

  private constructor(child: ChildProcess) {
    this.#process = child
  }

  static async open({ instance, directory }: TestHost) {
    const child = fork(join(import.meta.dirname, 'killable-runner-program.ts'), [instance, directory], {
      stdio: 'inherit',
    })
    const runner = new KillableRunner(child)
    await runner.says('open')
    return runner
  }

  async says(what: string) {
    for await (const [message] of messagesOf(this.#process)) if (message === what) return
  }

  async asked(order: Order) {
    this.#process.send(order)
    await this.says('begun')
  }

  /** Requests a verb from the process, and waits until the process has completed the verb. */
  async does(order: Order) {
    await this.asked(order)
    await this.says('done')
  }

  async kill() {
    const exited = once(this.#process, 'exit')
    this.#process.kill('SIGKILL')
    await exited
  }
}

async function* messagesOf(child: ChildProcess): AsyncGenerator<unknown[]> {
  for (;;) {
    const answer = await Promise.race([once(child, 'message'), once(child, 'exit').then(() => undefined)])
    if (answer === undefined) throw new Error('the runner ended before it was killed')
    yield answer
  }
}
