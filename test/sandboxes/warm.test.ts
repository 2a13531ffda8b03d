// A warm sandbox is started before anybody needs it, and a create may claim it. The caller of the create must see no difference
// from a new sandbox, except that a warm sandbox is ready sooner.
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { createBox, until } from './box.ts'
import { type Platform, platform } from './harness.ts'

suite('a warm sandbox', () => {
  let alcove: Platform

  before(async () => {
    alcove = await platform({ own: true, env: { ALCOVE_MOST_WARM: '2' } })
  })
  after(async () => {
    await alcove?.[Symbol.asyncDispose]()
  })

  const list = async (query: string) =>
    (await alcove.api('GET', `/sandbox?${query}`)).body['items'] as { id: string; state: string; warmPoolId?: string }[]

  /** Waits until a warm sandbox is ready, and returns its id. */
  const ready = async (): Promise<string> => {
    let found: { id: string; state: string } | undefined
    await until(
      'a warm sandbox is ready',
      async () => {
        const all = await list('includeWarm=true')
        found = all.find(({ state, warmPoolId }) => warmPoolId !== undefined && state === 'started')
        return found !== undefined
      },
      60,
    )
    return found!.id
  }

  test('a warm sandbox that a create claims gets all settings of that create, including limits and network', async () => {
    await alcove.api('POST', '/secret', { name: 'key', value: 'its-value', hosts: ['api.example.com'] })
    await alcove.api('POST', '/warm-pools', { snapshot: 'default', pool: 1 })
    const id = await ready()
    await using box = await createBox(alcove, {
      name: 'asked-for',
      env: { COLOUR: 'blue' },
      labels: { 'code-toolbox-language': 'javascript' },
      memory: 2,
      disk: 2,
      networkBlockAll: true,
      secrets: [{ TOKEN: 'key' }],
    })
    assert.equal(box.id, id)
    assert.match(await box.run('echo $TOKEN'), /^alcove_secret_/)
    // The claimed sandbox must trust the certificates of the proxy for secrets, because the create gave it a secret.
    assert.match(
      await box.run('grep -c "Alcove: for secrets" $SSL_CERT_FILE /etc/ssl/certs/ca-certificates.crt'),
      /:1\n.*:1$/,
    )
    assert.equal(await box.run('echo $COLOUR'), 'blue')
    const { status } = await box.toolbox('POST', '/env', { set: { COLOUR: 'red' }, unset: ['IS_SANDBOX'] })
    assert.deepEqual([status, await box.run('echo $COLOUR,$IS_SANDBOX')], [200, 'red,'])
    const code = await box.toolbox('POST', '/process/code-run', { code: 'console.log(typeof process)' })
    assert.equal(String(code.body['result']).trim(), 'object')
    // The sandbox must have as much memory as the create asks for (2 GiB), although it was started with a different size.
    const inMemory = (mebibytes: number) => `python3 -c 'len(bytearray(${mebibytes} << 20))'`
    assert.equal((await box.try(inMemory(1500))).exitCode, 0)
    assert.notEqual((await box.try(inMemory(2500))).exitCode, 0)
    assert.notEqual((await box.try('head -c 2200M /dev/zero > ~/big')).exitCode, 0)
    assert.notEqual((await box.try('timeout 3 bash -c "exec 3<>/dev/tcp/192.0.2.1/80"')).exitCode, 0)
  })

  test('a claimed warm sandbox works even if the runner is killed directly after the claim', async () => {
    await ready()
    await using box = await createBox(alcove, { env: { COLOUR: 'green' } })
    await alcove.kill('runner')
    await until('it answers', async () => {
      const reply = await box
        .toolbox('POST', '/process/execute', { command: 'echo $COLOUR' })
        .catch(() => ({ status: 0, body: {} as Record<string, unknown> }))
      return reply.status === 200 && String(reply.body['result']).trim() === 'green'
    })
  })

  test('after creates from a snapshot, control starts warm sandboxes of the snapshot for later creates', async () => {
    const { body: pools } = await alcove.api('GET', '/warm-pools')
    for (const { id } of pools as unknown as { id: string }[]) await alcove.api('DELETE', `/warm-pools/${id}`)
    await using _first = await createBox(alcove)
    // Callers cannot list the warm sandboxes, because nobody owns them. So wait until a create has claimed a warm sandbox.
    const isClaimed = async () => {
      await using next = await createBox(alcove)
      assert.equal(await next.run('echo here'), 'here')
      const { body } = await alcove.api('GET', `/sandbox/${next.id}/events`)
      return JSON.stringify(body).includes('Claimed from a warm pool')
    }
    await until('a create takes one that was there before', isClaimed, 60)
  })
})
